// A consumer that does not wait for the producer: forced before it, it dereferences a null pointer.
// CASE before:
// SCHEDULE: main:5 main/2:2
// EXIT: SIGSEGV
// OUTCOME: signalled 11
// EVENT: ^main/2 read message:\d+ = 0
// EVENT: fault
// CASE after:
// SCHEDULE: main:5 main/1:3 main/2:3
// STDOUT: ^x\n$
#include <pthread.h>
#include <stdio.h>

static const char* message;

static void* produce(void* argument) {
  message = "x";
  return argument;
}

static void* consume(void* argument) {
  putchar(*message);
  putchar('\n');
  return argument;
}

int main(void) {
  pthread_t t[2];
  pthread_create(&t[0], 0, produce, 0);
  pthread_create(&t[1], 0, consume, 0);
  pthread_join(t[0], 0);
  pthread_join(t[1], 0);
  return 0;
}
