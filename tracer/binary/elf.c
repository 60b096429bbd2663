/* What a module's file says of itself: symbols, debug information in it or where Debian's -dbgsym packages put it. Read
 * from the disk, because sections are not in memory; a few reads when a module is seen first. */
#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "trace/site_record.h"
#include "tracer/binary/engine.h"
#include "tracer/runtime/sys.h"

static int read_at(int fd, void* to, uint64_t size, uint64_t offset) {
  return stem_sys4(SYS_pread64, fd, to, size, offset) == (long)size;
}

static int same(const char* a, const char* b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

/* .note.gnu.build-id: a header of twelve bytes, "GNU", the id. */
static int has_debug_file(int fd, const Elf64_Shdr* note) {
  unsigned char bytes[16 + 64];
  char path[64 + 2 * 64] = "/usr/lib/debug/.build-id/";
  uint64_t size = note->sh_size < sizeof bytes ? note->sh_size : sizeof bytes;
  if (size < 18 || !read_at(fd, bytes, size, note->sh_offset)) return 0;
  char* to = path + sizeof "/usr/lib/debug/.build-id/" - 1;
  for (uint64_t i = 16; i < size; i++) {
    *to++ = "0123456789abcdef"[bytes[i] >> 4];
    *to++ = "0123456789abcdef"[bytes[i] & 15];
    if (i == 16) *to++ = '/';
  }
  for (const char* end = ".debug"; *end;) *to++ = *end++;
  *to = 0;
  return stem_sys4(SYS_access, path, 4 /* R_OK */, 0, 0) == 0;
}

struct bin_elf bin_elf(const char* path) {
  struct bin_elf facts = {0, 0, 0, 0, 0};
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  Elf64_Shdr names, section;
  int fd = (int)stem_sys4(SYS_open, path, O_RDONLY | O_CLOEXEC, 0, 0);
  if (fd < 0) return facts;
  char magic[2] = "";
  facts.script = read_at(fd, magic, 2, 0) && magic[0] == '#' && magic[1] == '!';
  if (!read_at(fd, &header, sizeof header, 0) || *(const uint32_t*)header.e_ident != 0x464c457f ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
    header.e_phnum = header.e_shnum = 0;
  for (unsigned i = 0; i < header.e_phnum && read_at(fd, &segment, sizeof segment, header.e_phoff + i * sizeof segment);
       i++)
    if (segment.p_type == PT_INTERP) facts.program = 1;
  if (header.e_shstrndx < header.e_shnum &&
      read_at(fd, &names, sizeof names, header.e_shoff + header.e_shstrndx * sizeof names))
    for (unsigned i = 0;
         i < header.e_shnum && read_at(fd, &section, sizeof section, header.e_shoff + i * sizeof section); i++) {
      char name[20] = "";
      uint64_t left = section.sh_name < names.sh_size ? names.sh_size - section.sh_name : 0;
      read_at(fd, name, left < sizeof name - 1 ? left : sizeof name - 1, names.sh_offset + section.sh_name);
      if (same(name, STEM_SITES_SECTION) || same(name, STEM_BITCODE_SECTION)) facts.instrumented = 1;
      if (section.sh_type == SHT_SYMTAB) facts.symbols = 1;
      if (same(name, ".debug_info") || same(name, ".zdebug_info")) facts.debug = 1;
      if (same(name, ".note.gnu.build-id") && has_debug_file(fd, &section)) facts.debug = 1;
    }
  stem_sys4(SYS_close, fd, 0, 0, 0);
  return facts;
}
