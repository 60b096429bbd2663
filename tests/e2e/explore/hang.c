// Hangs on one input, crashes on another.
#include <pthread.h>
#include <stem.h>

static int request, *answer;
static volatile int local;

static void* serve(void* unused) {
  if (request == 77)
    for (;;) local++;
  if (request == 99) answer = 0;
  *answer = request;
  return unused;
}

int main(void) {
  pthread_t t;
  int place;
  answer = &place;
  request = stem_input_int("request");
  pthread_create(&t, 0, serve, 0);
  pthread_join(t, 0);
  return 0;
}
