// Looks into ELF files and along the PATH: whether STEM is inside a program, and where things are.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trace/site_record.h"
#include "tracer/launch/launch.h"
#include "util/error.h"

namespace stem::launch {

namespace {

// A read-only view of a file.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) user_error("cannot read {}: {}", path, std::strerror(errno));
    struct stat info {};
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      void* address = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (address != MAP_FAILED) data_ = static_cast<const char*>(address), size_ = info.st_size;
    }
    close(fd);
  }
  ~Mapped() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  // The object at an offset, or nothing when the file is too short for it.
  template <typename Type>
  const Type* at(uint64_t offset) const {
    if (offset > size_ || size_ - offset < sizeof(Type) || offset % alignof(Type)) return nullptr;
    return reinterpret_cast<const Type*>(data_ + offset);
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= size_) return {};
    return {data_ + offset, strnlen(data_ + offset, size_ - offset)};
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// Calls use(name, header) for each section until it returns true.
template <typename Use>
bool each_section(const Mapped& file, Use use) {
  const Elf64_Ehdr* header = file.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return false;
  auto section = [&](uint64_t index) { return file.at<Elf64_Shdr>(header->e_shoff + index * sizeof(Elf64_Shdr)); };
  const Elf64_Shdr* names = section(header->e_shstrndx);
  if (!names) return false;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr* one = section(i);
    if (one && use(file.text(names->sh_offset + one->sh_name), *one)) return true;
  }
  return false;
}

}  // namespace

bool is_instrumented(const std::string& program) {
  Mapped file(program);
  return each_section(file, [](std::string_view name, const Elf64_Shdr&) { return name == STEM_SITES_SECTION || name == STEM_BITCODE_SECTION; });
}

ElfFacts elf_facts(const std::string& program) {
  Mapped file(program);
  ElfFacts facts;
  facts.script = file.text(0).starts_with("#!");
  const Elf64_Ehdr* header = file.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64) return facts;
  facts.elf = true;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const Elf64_Phdr* segment = file.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
    facts.dynamic |= segment && segment->p_type == PT_INTERP;
  }
  facts.debug = each_section(file, [](std::string_view name, const Elf64_Shdr&) { return name == ".debug_info" || name == ".zdebug_info"; });
  each_section(file, [&](std::string_view, const Elf64_Shdr& section) {
    if (section.sh_type != SHT_DYNSYM) return false;
    const Elf64_Shdr* names = file.at<Elf64_Shdr>(header->e_shoff + section.sh_link * sizeof(Elf64_Shdr));
    for (uint64_t at = 0; names && at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const Elf64_Sym* symbol = file.at<Elf64_Sym>(section.sh_offset + at);
      if (!symbol) break;
      const std::string_view name = file.text(names->sh_offset + symbol->st_name);
      facts.threads |= symbol->st_shndx == SHN_UNDEF && (name == "pthread_create" || name == "thrd_create" || name.starts_with("_ZNSt6thread15_M_start_thread"));
    }
    return true;
  });
  const std::string id = facts.debug ? "" : build_id(program);
  if (id.size() > 2) facts.debug = access(("/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug").c_str(), R_OK) == 0;
  return facts;
}

std::string build_id(const std::string& program) {
  Mapped file(program);
  std::string id;
  each_section(file, [&](std::string_view name, const Elf64_Shdr& section) {
    if (name != ".note.gnu.build-id") return false;
    const Elf64_Nhdr* note = file.at<Elf64_Nhdr>(section.sh_offset);
    if (!note) return true;
    uint64_t start = section.sh_offset + sizeof *note + (note->n_namesz + 3) / 4 * 4;
    for (unsigned i = 0; i < note->n_descsz; ++i)
      if (const uint8_t* byte = file.at<uint8_t>(start + i)) id += fmt::format("{:02x}", *byte);
    return true;
  });
  return id;
}

std::string find_program(const std::string& name) {
  auto runs = [](const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  if (name.empty()) return "";
  if (name.find('/') != std::string::npos) {
    struct stat info {};
    if (stat(name.c_str(), &info) != 0) return "";
    if (S_ISDIR(info.st_mode)) user_error("cannot run {}: it is a folder", name);
    if (!runs(name)) user_error("cannot run {}: it is not executable (chmod +x?)", name);
    return name;
  }
  const char* path = std::getenv("PATH");
  std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (size_t start = 0; start <= folders.size();) {
    size_t end = std::min(folders.find(':', start), folders.size());
    std::string folder = folders.substr(start, end - start);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (runs(candidate)) return candidate;
    start = end + 1;
  }
  return "";
}

std::string library_folder() {
  if (const char* given = std::getenv("STEM_LIBDIR")) return given;
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/usr/local/lib/stem" : (self.parent_path().parent_path() / "lib" / "stem").string();
}

}  // namespace stem::launch
