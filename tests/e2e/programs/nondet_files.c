// Files: written again on replay, read as they were: this program changes the very file that it reads.
// STDOUT: ^line 1 of 2\|2 42 \d+ 1 15 \d+\n$
// EVENT: nondet
// BINARY: no, files are read as they are
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char first[32];
static int lines, number, ended, size, runs;
static unsigned char noise;

static void* run(void* argument) {
  struct stat st;
  char* line = 0;
  size_t room = 0;
  int old = open("count.txt", O_RDWR | O_CREAT, 0600);
  char digits[16] = "";
  if (read(old, digits, sizeof digits - 1) > 0) runs = atoi(digits);
  lseek(old, 0, SEEK_SET);
  dprintf(old, "%d\n", runs + 1);
  close(old);
  FILE* out = fopen("lines.txt", "w");
  fputs("line 1 of 2\n42\n", out);
  fclose(out);
  FILE* in = fopen("lines.txt", "r");
  if (fgets(first, sizeof first, in)) first[strcspn(first, "\n")] = '|';
  ++lines;
  if (getline(&line, &room, in) > 0) ++lines, number = atoi(line);
  free(line);
  ended = getc(in) == EOF && feof(in);
  fclose(in);
  stat("lines.txt", &st);
  size = (int)st.st_size;
  int random = open("/dev/urandom", O_RDONLY);
  if (read(random, &noise, 1) == 1 && noise & 1) ++noise;
  close(random);
  return argument;
}

int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("%s%d %d %d %d %d %d\n", first, lines, number, runs, ended, size, noise);
  return 0;
}
