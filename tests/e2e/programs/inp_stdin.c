// Standard input as an input: what was read, or what the run is given under its name.
// RECORD: --symbolic-stdin 64
// STDIN: hello\n
// BINARY: no, inputs need expressions
// CASE read:
// STDOUT: ^lower 5\n$
// EVENT: ^main/1 input
// EVENT: ^main/1 branch
// CASE given:
// INPUT: stdin="HI"
// STDOUT: ^upper 2\n$
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char text[64];
static int length;
static const char* kind;

static void* run(void* argument) {
  length = (int)read(0, text, sizeof text - 1);
  if (length > 0 && text[length - 1] == '\n') text[--length] = 0;
  kind = text[0] >= 'a' ? "lower" : "upper";
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("%s %d\n", kind, length);
  return 0;
}
