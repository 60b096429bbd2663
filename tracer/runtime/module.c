/* Loaded objects and their site records. Each translation unit's constructor registers the whole array of its object; the
 * first call counts. A record names a site by the low 32 bits of its address, so no two objects may share those. */
#include <dlfcn.h>
#include <link.h>

#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

#define MAX_MODULES 1024

struct module {
  uint64_t begin, end, bias;
  char path[512];
};

static struct module* modules;
static uint32_t module_count;
static struct stem_lock modules_lock;

static void announce(struct stem_thread* self, const struct module* m) {
  stem_append(self, stem_head(STEM_RAW_Module, 0, m->bias), m->begin, (uint32_t)(m->end - m->begin), 0);
  stem_blob(self, STEM_BLOB_MODULE_PATH, m->path, __builtin_strlen(m->path));
}

void stem_modules_announce(struct stem_thread* self) {
  for (uint32_t i = 0; i < module_count; i++) announce(self, &modules[i]);
}

static int main_object(struct dl_phdr_info* info, size_t size, void* out) {
  (void)size;
  *(uint64_t*)out = info->dlpi_addr;
  return 1;
}

static void describe(struct module* m) {
  Dl_info info;
  struct link_map* map = 0;
  uint64_t program = 0;
  dl_iterate_phdr(main_object, &program);
  if (dladdr1((void*)m->begin, &info, (void**)&map, RTLD_DL_LINKMAP) && map) {
    m->bias = map->l_addr;
    struct stem_text text = {m->path, m->path + sizeof m->path};
    if (map->l_addr != program || (map->l_name && map->l_name[0])) {
      const char* name = map->l_name;
      if (name[0] != '/') { /* loaded by a relative name: as seen from here */
        long n = stem_sys(SYS_getcwd, m->path, sizeof m->path - 1, 0);
        if (n > 0) text.at += n - 1;
        stem_text_add(&text, "/");
      }
      stem_text_add(&text, name);
      return;
    }
  }
  m->bias = m->bias ? m->bias : program;
  long n = stem_sys(SYS_readlink, "/proc/self/exe", m->path, sizeof m->path - 1);
  if (n > 0) m->path[n] = 0;
}

STEM_EXPORT void __stem_register(void* sites_begin, void* sites_end) {
  uint64_t begin = (uint64_t)(uintptr_t)sites_begin, end = (uint64_t)(uintptr_t)sites_end;
  if (!stem_on || begin >= end) return;
  stem_lock(&modules_lock);
  if (!modules) modules = stem_pages(MAX_MODULES * sizeof *modules);
  for (uint32_t i = 0; i < module_count; i++) {
    struct module* m = &modules[i];
    if (m->begin == begin && m->end == end) {
      stem_unlock(&modules_lock);
      return;
    }
    uint32_t distance = (uint32_t)begin - (uint32_t)m->begin, back = (uint32_t)m->begin - (uint32_t)begin;
    int same = begin < m->end && m->begin < end; /* a library loaded again where another was */
    if (same)
      m->begin = m->end = 0;
    else if (m->end && (distance < m->end - m->begin || back < end - begin))
      stem_die("two libraries were loaded at addresses whose site numbers collide: run the program again");
  }
  if (module_count == MAX_MODULES) stem_die("more than 1024 instrumented libraries in one process");
  struct module* m = &modules[module_count];
  m->begin = begin;
  m->end = end;
  describe(m);
  module_count++;
  stem_unlock(&modules_lock);
  announce(stem_self(), m);
}
