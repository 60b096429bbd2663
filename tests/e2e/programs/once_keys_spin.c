// pthread_once, thread-specific data with destructors, spinlocks with trylock.
// STDOUT: ^1 60 3 16\n$
// COUNT: 1 once-begin
// COUNT: 1 once-end
// COUNT: 2 once-pass
// EVENT: lock spin
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static pthread_spinlock_t spin;
static int initialised, sum, destroyed, busy;

static void destroy(void* value) {
  __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
  free(value);
}

static void initialise(void) {
  ++initialised;
  pthread_key_create(&key, destroy);
}

static void* run(void* argument) {
  pthread_once(&once, initialise);
  int* mine = malloc(sizeof *mine);
  *mine = (int)(long)argument;
  pthread_setspecific(key, mine);
  pthread_spin_lock(&spin);
  sum += *(int*)pthread_getspecific(key);
  pthread_spin_unlock(&spin);
  return 0;
}

static void* try_it(void* argument) {
  busy = pthread_spin_trylock(&spin);
  return argument;
}

int main(void) {
  pthread_t t[3];
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  for (long i = 0; i < 3; ++i) pthread_create(&t[i], 0, run, (void*)(10 * (i + 1)));
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  pthread_spin_lock(&spin);
  pthread_create(&t[0], 0, try_it, 0);
  pthread_join(t[0], 0);
  pthread_spin_unlock(&spin);
  printf("%d %d %d %d\n", initialised, sum, destroyed, busy);
  return 0;
}
