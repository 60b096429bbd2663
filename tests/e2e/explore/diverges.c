// Each run finds another number in a file, read behind the recorder's back: what is solved for one run does not hold in the next.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stem.h>
#include <sys/syscall.h>
#include <unistd.h>

static int seen;

static void* guess(void* unused) {
  static int number;
  long file = syscall(SYS_open, "number", O_RDWR | O_CREAT, 0600);
  syscall(SYS_read, file, &number, sizeof number);
  int next = number + 1;
  syscall(SYS_lseek, file, 0, SEEK_SET);
  syscall(SYS_write, file, &next, sizeof next);
  syscall(SYS_close, file);
  if (stem_input_int("a") == number + 1000) seen = 1;
  return unused;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, guess, 0);
  pthread_join(t, 0);
  return seen == 5;
}
