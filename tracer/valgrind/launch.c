/* What starting the collector (tracer/binary/launch.c) needs of Valgrind, and of the program's command line. */
#include "pub_tool_xarray.h"
#include "tracer/valgrind/tool.h"

const char* stem_host_env(const char* name) { return VG_(getenv)(name); }

int stem_host_hide_fd(int fd) { return VG_(safe_fd)(fd); }

void* stem_host_share(int fd, size_t bytes) {
  SysRes map = VG_(am_shared_mmap_file_float_valgrind)(bytes, VKI_PROT_READ | VKI_PROT_WRITE, fd, 0);
  return sr_isError(map) ? NULL : (void*)sr_Res(map);
}

Bool stem_launch(void) {
  if (!bin_is_wanted(VG_(args_the_exename))) return False;
  bin_launch(VG_(args_the_exename));
  return True;
}

void stem_launch_again(void) { bin_launch(VG_(args_the_exename)); }

static Bool has_variable(Addr environment, const HChar* name) {
  for (; stem_readable(environment, 8); environment += 8) {
    Addr entry = *(Addr*)environment;
    UInt n = 0;
    if (!entry) break;
    while (name[n] && stem_readable(entry + n, 1) && ((HChar*)entry)[n] == name[n]) n++;
    if (!name[n] && stem_readable(entry + n, 1) && ((HChar*)entry)[n] == '=') return True;
  }
  return False;
}

/* A program that stem-cc compiled records itself; a static one cannot be looked into; without our environment the tool
 * would not know where to put anything. */
Bool stem_is_followed(Addr path, Addr environment) {
  if (!stem_readable(path, 1) || !has_variable(environment, STEM_RECORD_ENV)) return False;
  struct bin_elf facts = bin_elf((const HChar*)path);
  return facts.script || (facts.program && !facts.instrumented);
}

static const char* argument(int index) {
  if (index == 0) return VG_(args_the_exename);
  return index <= VG_(sizeXA)(VG_(args_for_client)) ? *(HChar**)VG_(indexXA)(VG_(args_for_client), index - 1) : NULL;
}

void stem_write_meta(void) { bin_write_meta("valgrind", VG_(args_the_exename), argument); }
