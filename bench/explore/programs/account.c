/* Account: two tellers withdraw from one account while a third pays in.
 *
 * BUG (atomicity violation on a rare input): a withdrawal above LIMIT is audited between the check of the balance and the
 * withdrawal, and the audit does not hold the lock. Needs an amount above LIMIT, and another withdrawal during the audit. */
#include <assert.h>
#include <pthread.h>
#include <stem.h>

#define LIMIT 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 1000;
static int audited;

static void audit(int amount) {
  audited += amount;
}

static int withdraw(int amount) {
  pthread_mutex_lock(&lock);
  if (balance < amount) {
    pthread_mutex_unlock(&lock);
    return 0;
  }
  if (amount > LIMIT) {
#ifdef BUG
    pthread_mutex_unlock(&lock); /* audits take long */
    audit(amount);
    pthread_mutex_lock(&lock);
#else
    audit(amount);
#endif
  }
  balance -= amount;
  assert(balance >= 0);
  pthread_mutex_unlock(&lock);
  return 1;
}

static void* teller(void* amount) {
  withdraw(*(int*)amount);
  return NULL;
}

static void* depositor(void* amount) {
  pthread_mutex_lock(&lock);
  balance += *(int*)amount;
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t first, second, third;
  int counter = 50, cash_machine = 80, deposit = 20;
  stem_input(&counter, sizeof counter, "counter");
  stem_input(&cash_machine, sizeof cash_machine, "cash_machine");
  if (counter <= 0 || cash_machine <= 0)
    return 0; /* nothing to do */

  pthread_create(&first, NULL, teller, &counter);
  pthread_create(&second, NULL, teller, &cash_machine);
  pthread_create(&third, NULL, depositor, &deposit);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  pthread_join(third, NULL);
  assert(balance >= 0 && balance <= 1020);
  return 0;
}
