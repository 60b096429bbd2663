// SIGSEGV in a thread: the fault is an event, everything before it is in the trace.
// EXIT: SIGSEGV
// OUTCOME: signalled 11
// EVENT: ^main/1 write n:\d+ = 3
// EVENT: ^main/1 fault
#include <pthread.h>

static int n;
static int* volatile nothing;

static void* run(void* argument) {
  n = 3;
  *nothing = 1;
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  return n;
}
