// A client that keeps one connection open and shares it between threads.
//
//   requests   take the connection under the lock
//   reload     closes it and opens a new one, under the lock, when the configuration changes
//   keepalive  pings it now and then, so that the server does not hang up
//
// The test sends requests, reloads once, and checks that everything went through. It passes: run it a thousand times.
// See for yourself what STEM says about it: scripts/demo.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct connection {
  int socket;
  int requests;
  time_t last_ping;
};

struct pool {
  pthread_mutex_t lock;
  struct connection* conn;  // NULL: not connected
  int reloads;
};

static struct pool pool = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};
static int next_socket = 3;

static struct connection* open_connection(void) {
  struct connection* c = calloc(1, sizeof *c);
  c->socket = next_socket++;
  return c;
}

// Stands for the network: how many bytes went out.
static int transmit(int socket, const char* text) { return socket >= 3 ? (int)strlen(text) : -1; }

// The connection in use; opened when it is first needed.
static int request(const char* text) {
  pthread_mutex_lock(&pool.lock);
  if (pool.conn == NULL) pool.conn = open_connection();
  pool.conn->requests++;
  int sent = transmit(pool.conn->socket, text);
  pthread_mutex_unlock(&pool.lock);
  return sent > 0;
}

// The configuration changed: the next request connects anew. (The old one is not freed here: somebody may still be
// sending on it.)
static void reload(void) {
  pthread_mutex_lock(&pool.lock);
  pool.conn = NULL;
  pool.reloads++;
  pthread_mutex_unlock(&pool.lock);
}

static void* keepalive(void* unused) {
  (void)unused;
  for (int i = 0; i < 3; i++) {
    if (pool.conn != NULL) {  // not connected: nothing to keep alive
      time_t now = time(NULL);
      pool.conn->last_ping = now;
    }
  }
  return NULL;
}

int main(void) {
  int good = request("hello");

  pthread_t pinger;
  pthread_create(&pinger, NULL, keepalive, NULL);

  // A client at work: by the time it reloads, the pings have long gone out.
  for (int i = 0; i < 20; i++) good += request("work");
  volatile double busy = 1;
  for (int i = 0; i < 300000; i++) busy = busy * 1.0000001;

  reload();
  good += request("again");

  pthread_join(pinger, NULL);
  printf("%d requests, %d reload: %s\n", good, pool.reloads, good == 22 ? "ok" : "FAILED");
  return good == 22 ? 0 : 1;
}
