/* What starting the collector (tracer/binary/launch.c) needs of Valgrind, and of the program's command line. */
#include "pub_tool_xarray.h"
#include "tracer/valgrind/tool.h"

const char* stem_host_env(const char* name) { return VG_(getenv)(name); }

int stem_host_hide_fd(int fd) { return VG_(safe_fd)(fd); }

void* stem_host_share(int fd, size_t bytes) {
  SysRes map = VG_(am_shared_mmap_file_float_valgrind)(bytes, VKI_PROT_READ | VKI_PROT_WRITE, fd, 0);
  return sr_isError(map) ? NULL : (void*)sr_Res(map);
}

void stem_launch(void) { bin_launch(VG_(args_the_exename)); }

static const char* argument(int index) {
  if (index == 0) return VG_(args_the_exename);
  return index <= VG_(sizeXA)(VG_(args_for_client)) ? *(HChar**)VG_(indexXA)(VG_(args_for_client), index - 1) : NULL;
}

void stem_write_meta(void) { bin_write_meta("valgrind", VG_(args_the_exename), argument); }
