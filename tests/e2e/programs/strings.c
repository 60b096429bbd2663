// Library functions that touch shared memory are events of the memory they touch.
// STDOUT: ^hello world 5 1\n$
// EVENT: ^main/1 write
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[32];
static char* copy;
static int found;

static void* run(void* argument) {
  memset(text, 0, sizeof text);
  strcpy(text, "hello");
  strcat(text, " world");
  copy = strdup(text);
  return argument;
}

static void* look(void* argument) {
  if (strchr(copy, 'w') && memcmp(copy, text, 11) == 0) found = 1;
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  pthread_create(&t, 0, look, 0);
  pthread_join(t, 0);
  printf("%s %d %d\n", copy, (int)strcspn(text, " "), found);
  free(copy);
  return 0;
}
