#include "tracer/launch/collect/modules.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "trace/code_key.h"
#include "trace/site_record.h"
#include "util/error.h"

namespace stem::collect {

namespace {
constexpr uint64_t kMaxInitial = 1 << 20;  // larger initialised variables start as unknown
}

Image::Image(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat st;
  if (::fstat(fd, &st) == 0 && st.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr))) {
    void* map = ::mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) data_ = static_cast<const uint8_t*>(map), size_ = static_cast<uint64_t>(st.st_size);
  }
  ::close(fd);
  if (!data_) return;
  Elf64_Ehdr header;
  std::memcpy(&header, data_, sizeof header);
  auto fits = [&](uint64_t offset, uint64_t count, uint64_t each) { return offset <= size_ && count <= (size_ - offset) / each; };
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return;
  if (!fits(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr)) || !fits(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr))) return;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr p;
    std::memcpy(&p, data_ + header.e_phoff + i * sizeof p, sizeof p);
    if (p.p_type == PT_LOAD && fits(p.p_offset, p.p_filesz, 1)) segments_.push_back({p.p_vaddr, p.p_offset, p.p_filesz, p.p_memsz});
  }
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr s;
    std::memcpy(&s, data_ + header.e_shoff + i * sizeof s, sizeof s);
    if (s.sh_type != SHT_RELA || !(s.sh_flags & SHF_ALLOC) || !fits(s.sh_offset, s.sh_size, 1)) continue;
    for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= s.sh_size; k += sizeof(Elf64_Rela)) {
      Elf64_Rela r;
      std::memcpy(&r, data_ + s.sh_offset + k, sizeof r);
      relocations_.push_back({r.r_offset, static_cast<uint64_t>(r.r_addend), ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE});
    }
  }
  std::sort(relocations_.begin(), relocations_.end(), [](const Relocation& a, const Relocation& b) { return a.address < b.address; });
}

Image::~Image() {
  if (data_) ::munmap(const_cast<uint8_t*>(data_), size_);
}

Image::Initial Image::initial(uint64_t address, uint64_t size, uint64_t bias) const {
  Initial result;
  for (const Segment& s : segments_) {
    if (address < s.address || address - s.address >= s.memory_size || size > s.memory_size - (address - s.address)) continue;
    uint64_t at = address - s.address;
    if (at >= s.file_size) {
      result.zero = true;
      return result;
    }
    if (size > kMaxInitial) return result;
    result.bytes.assign(size, 0);
    std::memcpy(result.bytes.data(), data_ + s.offset + at, std::min(size, s.file_size - at));
    auto r = std::lower_bound(relocations_.begin(), relocations_.end(), address > 7 ? address - 7 : 0,
                              [](const Relocation& a, uint64_t b) { return a.address < b; });
    for (; r != relocations_.end() && r->address < address + size; ++r) {
      if (!r->relative || r->address < address || r->address + 8 > address + size) {
        result.bytes.clear();
        return result;
      }
      uint64_t value = bias + r->addend;
      std::memcpy(result.bytes.data() + (r->address - address), &value, 8);
    }
    if (std::all_of(result.bytes.begin(), result.bytes.end(), [](uint8_t b) { return b == 0; })) {
      result.zero = true;
      result.bytes.clear();
    }
    return result;
  }
  return result;
}

void Modules::add(const std::string& path, uint64_t bias, uint64_t sites_begin, uint64_t sites_size) {
  // A library loaded again, or where another was.
  for (Module& m : modules_) {
    if (m.path == path && m.bias == bias && m.sites_begin == sites_begin && m.sites_size == sites_size) return;
  }
  Module module{path, bias, sites_begin, sites_size, nullptr, nullptr, nullptr, {}};
  try {
    module.program = std::make_unique<trace::Program>(trace::Program::open(path));
    module.image = std::make_unique<Image>(path);
    if (!module.program->instrumented()) {
      module.debug = std::make_unique<DebugInfo>(path);
      if (!module.debug->present()) problems_.push_back(fmt::format("{} has no debug information: its lines and variables have no names (compile with -g)", path));
    }
  } catch (const UserError& error) {
    problems_.push_back(fmt::format("the names in {} cannot be read: {}", path, error.what()));
  }
  modules_.push_back(std::move(module));
}

std::string Modules::build_id(const std::string& executable) const {
  std::error_code error;
  for (const Module& m : modules_)
    if (m.program && std::filesystem::equivalent(m.path, executable, error)) return m.program->build_id();
  return modules_.empty() || !modules_[0].program ? "" : modules_[0].program->build_id();
}

const trace::ProgramSite* Modules::site(uint32_t low) const {
  for (auto m = modules_.rbegin(); m != modules_.rend(); ++m) {
    uint32_t distance = low - static_cast<uint32_t>(m->sites_begin);
    if (distance >= m->sites_size || !m->program) continue;
    if (m->debug) {
      auto [known, added] = m->code_sites.try_emplace(low);
      if (added) known->second = code_site(*m, m->sites_begin + distance);
      return &known->second;
    }
    auto found = m->program->sites().find(m->sites_begin + distance - m->bias);
    if (found != m->program->sites().end()) return &found->second;
  }
  return nullptr;
}

std::optional<uint32_t> Modules::site_with_key(uint64_t key) const {
  for (auto m = modules_.rbegin(); m != modules_.rend(); ++m) {
    if (!m->program) continue;
    for (uint64_t at = 0; m->debug && at < m->sites_size; ++at)
      if (stem_code_key(m->path.c_str(), m->sites_begin + at - m->bias) == key) return static_cast<uint32_t>(m->sites_begin + at);
    for (const auto& [address, site] : m->program->sites())
      if (site.key == key) return static_cast<uint32_t>(address + m->bias);
  }
  return std::nullopt;
}

// Its layout is that of the function's frame: fields by their distance from the end, the canonical frame address.
trace::ProgramSite Modules::code_site(const Module& module, uint64_t address) {
  const uint64_t offset = address - module.bias;
  trace::ProgramSite site = module.debug->place(offset);
  site.key = stem_code_key(module.path.c_str(), offset);
  site.kind = STEM_SITE_CODE;
  std::string members;
  int64_t size = 0;
  const auto locals = module.debug->locals(offset);
  for (const auto& local : locals) size = std::max(size, -local.offset);
  size = (size + 15) / 16 * 16;
  for (const auto& local : locals) {
    if (local.offset >= 0) continue;
    const std::string name = local.name.substr(local.name.rfind("::") + 2);
    members += fmt::format("{}{}@{}+{}", members.empty() ? "" : ",", name, size + local.offset, local.size);
    members += local.layout.substr(std::min(local.layout.find_first_not_of("0123456789"), local.layout.size()));
  }
  if (!members.empty()) site.layout = fmt::format("{}{{{}}}", size, members);
  return site;
}

std::optional<Modules::Global> Modules::code_global(const Module& module, uint64_t address) const {
  const auto& globals = module.debug->globals();
  const uint64_t offset = address - module.bias;
  auto after = std::upper_bound(globals.begin(), globals.end(), offset, [](uint64_t a, const trace::ProgramVariable& v) { return a < v.address; });
  if (after == globals.begin()) return std::nullopt;
  const trace::ProgramVariable& v = *std::prev(after);
  if (offset - v.address >= v.size) return std::nullopt;
  return Global{&v, v.address + module.bias, module.image.get(), module.bias};
}

std::optional<Modules::Global> Modules::global(uint64_t address) const {
  for (auto m = modules_.rbegin(); m != modules_.rend(); ++m) {
    if (!m->program || address < m->bias) continue;
    if (m->debug) {
      if (auto global = code_global(*m, address)) return global;
      continue;
    }
    const trace::ProgramVariable* v = m->program->variable_at(address - m->bias);
    if (v && !v->tls && v->address && v->size) return Global{v, v->address + m->bias, m->image.get(), m->bias};
  }
  return std::nullopt;
}

std::string Modules::function(uint64_t return_address) const {
  for (const Module& m : modules_) {
    if (!m.program || return_address <= m.bias) continue;
    const trace::ProgramFunction* f = m.program->function_at(return_address - 1 - m.bias);
    if (!f) continue;
    int status = f->name.starts_with("_Z") ? 0 : -1;  // a function called t is not an unsigned short
    if (status != 0) return f->name;
    std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(f->name.c_str(), nullptr, nullptr, &status), std::free);
    std::string name = status == 0 && plain ? plain.get() : f->name;
    if (status == 0) name = name.substr(0, name.find('('));
    return name;
  }
  return "";
}

}  // namespace stem::collect
