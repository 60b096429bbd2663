/* Start-up: the one function of the runtime that runs by itself, before every constructor of the program and its libraries.
 *
 * Nothing asked for (neither STEM_RECORD nor STEM_PLAN): stem_on stays 0, the hot page stays zero, so every hook goes the
 * slow way, sees that, and does the plain operation; threads run freely. */
#include <link.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <unistd.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

int stem_on;
int stem_launched;
int stem_parallel;
enum stem_mode stem_mode;
char** stem_argv;
char** stem_envp;

uint32_t stem_id_step = 1;
_Thread_local struct stem_tls __stem_tls = {.next_id = 1, .id_step = 1};
_Thread_local struct stem_thread* stem_current;

static const char* const mode_names[] = {"default", "random", "pct", "guided", "parallel"};

static void read_mode(void) {
  const char* mode = stem_option("mode");
  if (!mode) return;
  for (int i = 0; i < 5; i++)
    if (__builtin_strcmp(mode, mode_names[i]) == 0) {
      stem_mode = (enum stem_mode)i;
      stem_parallel = i == STEM_MODE_PARALLEL;
      return;
    }
  stem_die("the mode must be default, random, pct, guided or parallel");
}

/* --- who we are: trace::Meta ---------------------------------------------------------------------------------------------------- */

static int note_build_id(struct dl_phdr_info* info, size_t size, void* out) {
  (void)size;
  struct stem_text* text = out;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    const char* at = (const char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const char* end = at + info->dlpi_phdr[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr)* note = (const void*)at;
      const char* name = at + sizeof *note;
      const unsigned char* id = (const unsigned char*)name + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && __builtin_memcmp(name, "GNU", 4) == 0)
        for (unsigned b = 0; b < note->n_descsz; b++) {
          stem_text_number(text, id[b] >> 4, 16);
          stem_text_number(text, id[b] & 15, 16);
        }
      at = (const char*)id + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return 1; /* the first object is the program itself */
}

static void json_path(struct stem_text* text, long system_call, const char* link) {
  static char path[4096];
  long n = system_call == SYS_getcwd ? stem_sys(SYS_getcwd, path, sizeof path, 0) - 1 : stem_sys(SYS_readlink, link, path, sizeof path);
  stem_text_json(text, path, n > 0 ? (size_t)n : 0);
}

static void write_meta(struct stem_thread* self) {
  size_t room = 131072; /* paths and options, escaped */
  for (char** a = stem_argv; a && *a; a++) room += 6 * __builtin_strlen(*a) + 8;
  char* buffer = stem_pages(room);
  struct stem_text text = {buffer, buffer + room};
  stem_text_add(&text, "{\"recorder\":\"compiled\",\"program\":");
  json_path(&text, SYS_readlink, "/proc/self/exe");
  stem_text_add(&text, ",\"build_id\":\"");
  dl_iterate_phdr(note_build_id, &text);
  stem_text_add(&text, "\",\"argv\":[");
  for (char** a = stem_argv; a && *a; a++) {
    if (a != stem_argv) stem_text_add(&text, ",");
    stem_text_json(&text, *a, __builtin_strlen(*a));
  }
  stem_text_add(&text, "],\"cwd\":");
  json_path(&text, SYS_getcwd, 0);
  stem_text_add(&text, ",\"mode\":\"");
  stem_text_add(&text, mode_names[stem_mode]);
  stem_text_add(&text, "\",\"seed\":");
  stem_text_number(&text, stem_option_number("seed", 1), 10);
  stem_text_add(&text, ",\"semantics\":");
  stem_text_add(&text, stem_id_step ? "true" : "false");
  stem_text_add(&text, ",\"options\":{"); /* what a replay must declare again */
  if (stem_is_forked) stem_text_add(&text, "\"forked\":\"1\"");
  static const char* const declared[] = {"symbolic-argv", "symbolic-stdin", "symbolic-file"};
  for (unsigned i = 0, n = stem_is_forked != 0; i < sizeof declared / sizeof *declared; i++) {
    const char* value = stem_option(declared[i]);
    if (!value) continue;
    if (n++) stem_text_add(&text, ",");
    stem_text_json(&text, declared[i], __builtin_strlen(declared[i]));
    stem_text_add(&text, ":");
    stem_text_json(&text, value, __builtin_strlen(value));
  }
  stem_text_add(&text, "}}");
  stem_blob(self, STEM_BLOB_META, buffer, (uint64_t)(text.at - buffer));
  stem_pages_free(buffer, room);
}

/* --- beginning ------------------------------------------------------------------------------------------------------------------ */


/* The first records of a stream, and of the main thread. Also in a forked child. */
void stem_begin(struct stem_thread* self) {
  if (stem_environment(STEM_RECORD_ENV)) stem_recording_open();
  stem_stream_open(self);
  stem_sched_init();
  stem_on = 1;
  write_meta(self);
  stem_thread_define(self, self);
  stem_modules_announce(self);
  if (!stem_parallel) stem_append(self, stem_head(STEM_RAW_Switch, 0, 0), 0, 0, 0);
  stem_visible(self, STEM_KIND_Start, 0, 0, 0, 0, 0);
  stem_event(self, STEM_KIND_Start, 0, 0, 0, 0, 0);
  stem_done(self);
}

/* Without the launcher nobody has switched address randomisation off, and a replay could not compare addresses of the
 * environment: once more, without it. Nothing has run yet; where it is forbidden, we go on as we are. */
static void fix_addresses(char** argv, char** envp) {
  static char path[4096];
  long now = stem_sys(SYS_personality, 0xffffffff, 0, 0);
  if (now < 0 || now & ADDR_NO_RANDOMIZE || stem_sys(SYS_personality, now | ADDR_NO_RANDOMIZE, 0, 0) < 0) return;
  if (!(stem_sys(SYS_personality, 0xffffffff, 0, 0) & ADDR_NO_RANDOMIZE)) return;
  long n = stem_sys(SYS_readlink, "/proc/self/exe", path, sizeof path - 1);
  if (n > 0) stem_sys(SYS_execve, path, argv, envp);
}

static void start(int argc, char** argv, char** envp) {
  (void)argc;
  stem_argv = argv;
  stem_envp = envp;
  stem_plan_open(envp);
  int asked = stem_environment(STEM_RECORD_ENV) || stem_environment(STEM_PLAN_ENV);
  if (!asked) return;
  stem_launched = stem_environment(STEM_PLAN_ENV) != 0;
  if (!stem_launched) fix_addresses(argv, envp);
  read_mode();
  stem_id_step = stem_option_number("expressions", 1) != 0;
  __stem_tls.next_id = __stem_tls.id_step = stem_id_step;
  stem_threads_init();
  struct stem_thread* self = stem_thread_new(0, "main");
  self->tid = stem_gettid();
  self->handle = pthread_self();
  self->tls = &__stem_tls;
  stem_current = self;
  stem_main_thread(self);
  stem_end_init();
  stem_fault_init();
  stem_fork_init();
  stem_begin(self);
  if (stem_library_init) stem_library_init();
}

__attribute__((section(".preinit_array"), used)) static void (*const at_start)(int, char**, char**) = start;
