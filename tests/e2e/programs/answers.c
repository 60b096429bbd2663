// Functions that answer behind a pointer: what they leave there is a write at the call, whether the variable is local, global or
// on the heap. Nothing here is read from an "initial value", nothing is external.
// NO-EVENT: external
// STDOUT: ^42 5 0 x 2 10 0 1970-01-02 /dev/null 127\.0\.0\.1 12 1\n$
// EVENT: ^main write main::thread:\d+
// EVENT: ^main write handles\[\]:\d+
// EVENT: ^main write main::result:\d+ = 42$
// EVENT: ^main write main::count:\d+ = 5$
// EVENT: ^main sem-init s:\d+ = 5$
// EVENT: ^main write main::old:\d+ = 0$
// EVENT: ^main write main::type:\d+
// EVENT: ^main write main::ends\[\]
// EVENT: ^main write main::before
// EVENT: ^main write main::mask
// EVENT: ^main write main::broken
// EVENT: ^main write main::date
// EVENT: ^main write main::path
// EVENT: ^main write heap\(main
// EVENT: ^main write main::status
// EVENT: ^main write main::end:
// EVENT: ^main write main::timer
// BINARY: no, what the C library writes is external
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_t handles[2];
static sem_t s;

static void* run(void* argument) { return argument; }

static void handler(int sig) { (void)sig; }

int main(void) {
  pthread_t thread;
  void* result;
  pthread_create(&thread, 0, run, (void*)42L);
  pthread_create(&handles[1], 0, run, 0);
  pthread_join(thread, &result);
  pthread_join(handles[1], 0);

  int count, old, type;
  sem_init(&s, 0, 5);
  sem_getvalue(&s, &count);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);

  int ends[2], pair[2];
  char letter = 0;
  if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
  if (write(ends[1], "x", 1) != 1 || read(ends[0], &letter, 1) != 1) return 1;

  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, &before);
  sigset_t set, mask;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, &mask);
  struct itimerval off, timer;
  memset(&off, 0, sizeof off);
  setitimer(ITIMER_REAL, &off, &timer);

  time_t day = 86400;
  struct tm broken;
  char date[32], path[64];
  gmtime_r(&day, &broken);
  strftime(date, sizeof date, "%Y-%m-%d", &broken);
  if (!realpath("/dev/../dev/null", path)) return 1;
  char* address = malloc(64);
  struct in_addr local;
  inet_pton(AF_INET, "127.0.0.1", &local);
  inet_ntop(AF_INET, &local, address, 64);

  int status;
  pid_t child = fork();
  if (child == 0) execl("/bin/true", "true", (char*)0);
  waitpid(child, &status, 0);
  char* end;
  long number = strtol("12z", &end, 10);
  int pending = sigismember(&mask, SIGUSR2);
  printf("%ld %d %d %c %d %d %d %s %s %s %ld %d\n", (long)result, count, old, letter, broken.tm_mday, (int)(before.sa_handler == SIG_DFL) + 9,
         status + (int)timer.it_value.tv_sec + pending, date, path, address, number, *end == 'z');
  free(address);
  return type;
}
