// Signals a thread sends itself, to another thread, to the process from a timer; a handler with siginfo, a mask that holds one
// back, sigwait.
// STDOUT: ^raised 12 timer 14 other 10 held 0 1 waited 23\n$
// COUNT: 4 signal-in
// COUNT: 4 signal-out
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t raised, timer, other, held;
static int before, waited, go;

static void on_raise(int number) { raised = number; }
static void on_timer(int number, siginfo_t* info, void* context) { timer = info->si_signo; }
static void on_other(int number) { other = number; }
static void on_held(int number) { held = 1; }

static void* run(void* argument) {
  while (!other) usleep(1000);
  return argument;
}

static void* waiter(void* argument) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  sigwait(&set, &waited);
  return argument;
}

int main(void) {
  pthread_t t;
  sigset_t set;
  struct sigaction action = {0};
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  pthread_sigmask(SIG_BLOCK, &set, 0);

  signal(SIGUSR2, on_raise);
  raise(SIGUSR2);

  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGALRM, &action, 0);
  struct itimerval in = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &in, 0);
  while (!timer) pause();

  signal(SIGUSR1, on_other);
  pthread_create(&t, 0, run, 0);
  pthread_kill(t, SIGUSR1);
  pthread_join(t, 0);

  signal(SIGUSR2, on_held);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, 0);
  raise(SIGUSR2);
  before = held;
  pthread_sigmask(SIG_UNBLOCK, &set, 0);
  while (!held) go++;

  pthread_create(&t, 0, waiter, 0);
  pthread_kill(t, SIGURG);
  pthread_join(t, 0);
  printf("raised %d timer %d other %d held %d %d waited %d\n", raised, timer, other, before, held, waited);
  return 0;
}
