/* Lazy initialisation: whoever needs the table first fills it; a flag tells the others that it is there.
 *
 * BUG (double-checked initialisation): the flag is set before the last entry is written. The second user has a backlog to work off
 * first, so it comes long after the first. Needs the second user between the flag and the last entry. */
#include <assert.h>
#include <pthread.h>

#define ENTRIES 4
#define BACKLOG 24

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;
static int table[ENTRIES];
static int backlog = BACKLOG;

static const int* get_table(void) {
  if (!ready) {
    pthread_mutex_lock(&lock);
    if (!ready) {
      for (int i = 0; i < ENTRIES - 1; i++)
        table[i] = i * i + 1;
#ifdef BUG
      ready = 1;
      table[ENTRIES - 1] = 100;
#else
      table[ENTRIES - 1] = 100;
      ready = 1;
#endif
    }
    pthread_mutex_unlock(&lock);
  }
  return table;
}

static void* first_user(void* unused) {
  assert(get_table()[0] == 1);
  return unused;
}

static void* second_user(void* unused) {
  while (backlog > 0)
    backlog--;
  assert(get_table()[ENTRIES - 1] == 100);
  return unused;
}

int main(void) {
  pthread_t first, second;
  pthread_create(&first, NULL, first_user, NULL);
  pthread_create(&second, NULL, second_user, NULL);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  assert(backlog == 0);
  return 0;
}
