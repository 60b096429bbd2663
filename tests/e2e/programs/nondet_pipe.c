// Calls that block let others run: a thread waits on an empty pipe, on a socket, in poll, until another thread writes.
// STDOUT: ^ping pong 1 xyz\n$
// EVENT: nondet
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int request[2], reply[2];
static char got[8], answer[8], late[8];
static int ready;

static void* server(void* argument) {
  if (read(request[0], got, 5) != 5) return 0;
  if (send(reply[1], "pong", 5, 0) != 5) return 0;
  struct pollfd p = {request[0], POLLIN, 0};
  ready = poll(&p, 1, 10000);
  if (read(request[0], late, 4) != 4) return 0;
  return argument;
}

int main(void) {
  pthread_t t;
  if (pipe(request) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, reply) != 0) return 1;
  pthread_create(&t, 0, server, 0);
  if (write(request[1], "ping", 5) != 5) return 1;
  if (recv(reply[0], answer, 5, 0) != 5) return 1;
  if (write(request[1], "xyz", 4) != 4) return 1;
  pthread_join(t, 0);
  printf("%s %s %d %s\n", got, answer, ready, late);
  return 0;
}
