/* Parallel file scanner: main reads the files, workers take them from a list and count how often a pattern occurs.
 *
 * BUG (atomicity violation on a rare input): a pattern of one character is counted on a fast path, which adds to the total
 * without the lock. Needs such a pattern, and two workers that add at the same time. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <stem.h>

#define WORKERS 2
#define FILES 4
#define MOST 64

struct text {
  char bytes[MOST];
  size_t length;
};

static struct text texts[FILES];
static int files, next_file;
static char pattern[4] = "ing";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static int occurrences(const struct text* t, size_t length) {
  int found = 0;
  for (size_t i = 0; i + length <= t->length; i++) {
    size_t same = 0;
    while (same < length && t->bytes[i + same] == pattern[same])
      same++;
    found += same == length;
  }
  return found;
}

static void scan(const struct text* t) {
#ifdef BUG
  if (pattern[1] == 0) {
    for (size_t i = 0; i < t->length; i++)
      if (t->bytes[i] == pattern[0])
        total++;
    return;
  }
#endif
  int found = occurrences(t, strnlen(pattern, sizeof pattern));
  pthread_mutex_lock(&lock);
  total += found;
  pthread_mutex_unlock(&lock);
}

static void* worker(void* unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    int file = next_file;
    if (file < files)
      next_file = file + 1;
    pthread_mutex_unlock(&lock);
    if (file >= files)
      return unused;
    scan(&texts[file]);
  }
}

int main(int argc, char** argv) {
  pthread_t threads[WORKERS];
  for (; files < argc - 1 && files < FILES; files++) {
    FILE* file = fopen(argv[files + 1], "r");
    if (file == NULL) {
      perror(argv[files + 1]);
      return 2;
    }
    texts[files].length = fread(texts[files].bytes, 1, MOST, file);
    fclose(file);
  }
  stem_input(pattern, sizeof pattern, "pattern");
  if (pattern[0] == 0)
    return 2; /* nothing to look for */
  for (int i = 0; i < WORKERS; i++)
    pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], NULL);

  int expected = 0;
  for (int i = 0; i < files; i++)
    expected += occurrences(&texts[i], strnlen(pattern, sizeof pattern));
  assert(total == expected);
  return 0;
}
