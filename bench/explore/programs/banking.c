/* Banking: transfers between accounts, each with a lock of its own, taken in the order of the accounts.
 *
 * BUG (lock-order deadlock on a rare input): a large transfer locks the paying account first, to check it before anything else.
 * Needs a large amount in the transfer against the order, and both transfers between their two locks. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stem.h>

#define ACCOUNTS 3
#define LARGE 10000

struct account {
  pthread_mutex_t lock;
  int balance;
};

static struct account accounts[ACCOUNTS];
static atomic_int under_way; /* for the operator's screen */

static void transfer(struct account* from, struct account* to, int amount) {
  struct account *first = from < to ? from : to, *second = from < to ? to : from;
#ifdef BUG
  if (amount >= LARGE) {
    first = from;
    second = to;
  }
#endif
  pthread_mutex_lock(&first->lock);
  under_way++;
  pthread_mutex_lock(&second->lock);
  if (from->balance >= amount) {
    from->balance -= amount;
    to->balance += amount;
  }
  under_way--;
  pthread_mutex_unlock(&second->lock);
  pthread_mutex_unlock(&first->lock);
}

static void* salaries(void* amount) {
  transfer(&accounts[0], &accounts[1], 120);
  transfer(&accounts[0], &accounts[1], *(int*)amount);
  return NULL;
}

static void* rents(void* amount) {
  transfer(&accounts[1], &accounts[0], 300);
  transfer(&accounts[1], &accounts[0], *(int*)amount);
  return NULL;
}

int main(void) {
  pthread_t first, second;
  int salary = 200, rent = 90;
  stem_input(&salary, sizeof salary, "salary");
  stem_input(&rent, sizeof rent, "rent");
  if (salary < 0 || rent < 0)
    return 0;
  for (int i = 0; i < ACCOUNTS; i++) {
    pthread_mutex_init(&accounts[i].lock, NULL);
    accounts[i].balance = 20000;
  }
  pthread_create(&first, NULL, salaries, &salary);
  pthread_create(&second, NULL, rents, &rent);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  int total = 0;
  for (int i = 0; i < ACCOUNTS; i++)
    total += accounts[i].balance;
  assert(total == ACCOUNTS * 20000);
  return 0;
}
