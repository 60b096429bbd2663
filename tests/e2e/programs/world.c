// What comes from outside is recorded and fed back: time, clocks, getrandom, rand, process ids, the environment, a file,
// a pipe. The branches depend on it, so a replay that got other answers would differ.
// STDIN: seven\n
// STDOUT: ^seven
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static unsigned long mix;

static void* run(void* argument) {
  struct timespec now;
  struct timeval tv;
  unsigned noise = 0;
  char line[16] = "";
  char buffer[8] = "";
  int ends[2];
  clock_gettime(CLOCK_REALTIME, &now);
  mix = mix * 31 + (unsigned long)now.tv_nsec;
  gettimeofday(&tv, 0);
  mix = mix * 31 + (unsigned long)tv.tv_usec;
  mix = mix * 31 + (unsigned long)time(0);
  if (getrandom(&noise, sizeof noise, 0) == sizeof noise) mix = mix * 31 + noise;
  srand(noise);
  mix = mix * 31 + (unsigned long)rand();
  mix = mix * 31 + (unsigned long)getpid();
  const char* home = getenv("HOME");
  mix = mix * 31 + (home ? strlen(home) : 1);
  if (fgets(line, sizeof line, stdin)) fputs(line, stdout);
  if (pipe(ends) == 0 && write(ends[1], "abc", 4) == 4 && read(ends[0], buffer, 4) == 4) mix = mix * 31 + (unsigned long)buffer[1];
  for (int i = 0; i < 16; ++i)
    if (mix >> i & 1) mix += 3;
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("%lu\n", mix);
  return 0;
}
