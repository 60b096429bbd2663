/* Stateful: a device works through three commands; a watchdog sends it back to idle.
 *
 * BUG (atomicity violation behind three rare inputs): the device releases the lock between seeing that it is armed and firing. Needs
 * the commands that unlock and arm it, then FIRE, and the watchdog in between. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define COMMANDS 3
enum { IDLE, UNLOCKED, ARMED, FIRED };
enum { FIRE = 77 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int state = IDLE;
static unsigned serial = 0x1f;
static unsigned char commands[COMMANDS] = {1, 1, 1};

static void fire(void) {
  assert(state == ARMED);
  state = FIRED;
}

static void step(unsigned char command) {
  pthread_mutex_lock(&lock);
  if (state == IDLE) {
    if ((command ^ serial) == 0xd2)
      state = UNLOCKED;
  } else if (state == UNLOCKED) {
    if (command * 3u == serial + 200)
      state = ARMED;
  } else if (state == ARMED && command == FIRE) {
#ifdef BUG
    pthread_mutex_unlock(&lock); /* whoever listens to the alarm may ask for the state */
    pthread_mutex_lock(&lock);
#endif
    fire();
  }
  pthread_mutex_unlock(&lock);
}

static void* device(void* unused) {
  for (int i = 0; i < COMMANDS; i++)
    step(commands[i]);
  return unused;
}

static void* watchdog(void* unused) {
  pthread_mutex_lock(&lock);
  state = IDLE;
  pthread_mutex_unlock(&lock);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  stem_input(commands, sizeof commands, "commands");
  pthread_create(&threads[0], NULL, device, NULL);
  pthread_create(&threads[1], NULL, watchdog, NULL);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  return 0;
}
