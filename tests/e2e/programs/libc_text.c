// Text in shared memory: formatting, scanning, numbers, searching, comparing. What is written into it is recorded as writes.
// STDOUT: ^id=7 name=stem size=12 7 4711 255 1 red,green 3 9 0\n$
// EVENT: ^main/1 write line
// EVENT: ^main/2 read line
// EVENT: ^main/2 write number
// BINARY: no, what the C library writes is external
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char line[64], list[32], first[8], word[16];
static int number, length, equal, tokens;
static long decimal, hexadecimal;

static void* writer(void* argument) {
  snprintf(line, sizeof line, "id=%d name=%s size=%zu", 7, "stem", sizeof(int) * 3);
  strcpy(list, "red,green,blue");
  return argument;
}

static void* reader(void* argument) {
  char copy[32], *save = 0;
  sscanf(line, "id=%d name=%15s", &number, word);
  decimal = strtol("4711 rest", 0, 10);
  hexadecimal = strtol("0xff", 0, 16);
  equal = strcasecmp(word, "STEM") == 0;
  strncpy(copy, list, sizeof copy - 1);
  copy[sizeof copy - 1] = 0;
  for (char* token = strtok_r(copy, ",", &save); token; token = strtok_r(0, ",", &save)) ++tokens;
  char* last = strrchr(list, ',');
  length = (int)(last - list);
  *last = 0;
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, writer, 0);
  pthread_join(t, 0);
  pthread_create(&t, 0, reader, 0);
  pthread_join(t, 0);
  printf("%s %d %ld %ld %d %s %d %d %d\n", line, number, decimal, hexadecimal, equal, list, tokens, length, atoi("x") + (strstr(list, "blue") != 0));
  return first[0];
}
