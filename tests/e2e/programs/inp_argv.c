// The program's arguments as inputs: a number out of one decides a branch in a thread, whose condition is known.
// RECORD: --symbolic-argv
// ARGS: 12 word
// STDOUT: ^big word 4\n$
// EVENT: ^main input
// EVENT: ^main/1 branch
// BINARY: no, inputs need expressions
// CASE plain:
// CASE other:
// INPUT: argv1="95"
// STDOUT: ^big word 4\n$
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number, size;
static const char* what = "?";

static void* run(void* argument) {
  if (number > 7)
    what = "big";
  else
    what = "small";
  return argument;
}

int main(int argc, char** argv) {
  pthread_t t;
  number = argc > 1 ? atoi(argv[1]) : 0;
  size = argc > 2 ? (int)strlen(argv[2]) : 0;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("%s %s %d\n", what, argc > 2 ? argv[2] : "", size);
  return 0;
}
