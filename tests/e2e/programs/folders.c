// Folders: what opendir and readdir answered is fed back, also when the folder has changed since; an entry stays valid until the next one of
// the same folder.
// STDOUT: ^before 0 outer 2 inner 2 kept 1 after 1\n$
// BINARY: no, folders are read as they are
// NO-EVENT: external .*name
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char names[4][256];
static int outer, inner, kept = 1;

static void *list(void *argument) {
  DIR *a = opendir("made");
  for (struct dirent *e; (e = readdir(a));) {
    if (e->d_name[0] == '.') continue;
    char name[256];
    strcpy(name, e->d_name);
    DIR *b = opendir("made");
    inner = 0;
    for (struct dirent *f; (f = readdir(b));) inner += f->d_name[0] != '.';
    closedir(b);
    kept &= strcmp(e->d_name, name) == 0;
    strcpy(names[outer++], e->d_name);
  }
  closedir(a);
  return argument;
}

int main(void) {
  pthread_t t;
  DIR *before = opendir("made");
  int found = before != NULL;
  mkdir("made", 0755);
  close(open("made/one", O_CREAT | O_WRONLY, 0644));
  close(open("made/two", O_CREAT | O_WRONLY, 0644));
  pthread_create(&t, NULL, list, NULL);
  pthread_join(t, NULL);
  unlink("made/one"); /* made is there when the run is repeated */
  printf("before %d outer %d inner %d kept %d after %d\n", found, outer, inner, kept, access("made/two", F_OK) == 0);
  return 0;
}
