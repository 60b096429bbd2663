// Reads an ELF file through libelf, and everything in it through one bounds-checked view by virtual address.
#include "trace/program.h"

#include "trace/site_record.h"
#include "util/error.h"

#include <fcntl.h>
#include <gelf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace stem::trace {

namespace {

constexpr size_t kMaxString = 1 << 20;
constexpr uint64_t kMaxModule = 1ull << 32;

struct Section {
  std::string name;
  uint64_t address = 0, offset = 0, size = 0, link = 0, entry = 0;
  uint32_t type = 0;
};

struct Segment {
  uint64_t address = 0, offset = 0, size = 0;
};

// The file in memory, its sections and its loaded segments. Nothing outside the file is ever touched.
class Image {
 public:
  explicit Image(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) user_error("cannot open {}: {}", path, std::strerror(errno));
    struct stat status {};
    if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) fail("not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
    if (size_ < sizeof(Elf64_Ehdr)) fail("not an ELF file");
    void* map = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (map == MAP_FAILED) fail(std::strerror(errno));
    data_ = static_cast<const char*>(map);
    read_headers();
  }
  ~Image() { release(); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  const std::vector<Section>& sections() const { return sections_; }

  const Section* section(std::string_view name) const {
    for (const Section& s : sections_)
      if (s.name == name) return &s;
    return nullptr;
  }

  std::string_view bytes(const Section& section) const {
    if (section.type == SHT_NOBITS || section.offset > size_ || section.size > size_ - section.offset) return {};
    return {data_ + section.offset, section.size};
  }

  // At most `limit` bytes that are loaded at `address`; empty if it lies in no segment.
  std::string_view at(uint64_t address, uint64_t limit) const {
    for (const Segment& s : segments_) {
      if (address < s.address || address - s.address >= s.size) continue;
      const uint64_t inside = address - s.address;
      return {data_ + s.offset + inside, std::min(limit, s.size - inside)};
    }
    return {};
  }

  std::string string_at(uint64_t address) const {
    const std::string_view view = at(address, kMaxString);
    const size_t end = view.find('\0');
    return end == std::string_view::npos ? std::string() : std::string(view.substr(0, end));
  }

  std::string build_id() const {
    for (const Section& s : sections_) {
      if (s.type != SHT_NOTE) continue;
      std::string_view rest = bytes(s);
      while (rest.size() >= 12) {
        uint32_t name_size, size, type;
        std::memcpy(&name_size, rest.data(), 4);
        std::memcpy(&size, rest.data() + 4, 4);
        std::memcpy(&type, rest.data() + 8, 4);
        const uint64_t name_end = 12 + (uint64_t{name_size} + 3) / 4 * 4;
        const uint64_t end = name_end + (uint64_t{size} + 3) / 4 * 4;
        if (end > rest.size()) break;
        if (type == NT_GNU_BUILD_ID && rest.substr(12, name_size) == std::string_view("GNU\0", 4)) return hex(rest.substr(name_end, size));
        rest.remove_prefix(end);
      }
    }
    return {};
  }

 private:
  static std::string hex(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
  }

  [[noreturn]] void fail(const char* why) {
    release();
    user_error("{}: {}", path_, why);
  }

  void release() {
    if (data_) munmap(const_cast<char*>(data_), size_);
    if (fd_ >= 0) close(fd_);
    data_ = nullptr;
    fd_ = -1;
  }

  void read_headers() {
    if (elf_version(EV_CURRENT) == EV_NONE) fail("libelf is too old");
    if (std::memcmp(data_, ELFMAG, SELFMAG) != 0) fail("not an ELF file");
    const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_memory(const_cast<char*>(data_), size_), elf_end);
    GElf_Ehdr header;
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF || !gelf_getehdr(elf.get(), &header)) fail("not a readable ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) fail("not an ELF file for a 64-bit little-endian machine");
    size_t count = 0, names = 0;
    if (elf_getphdrnum(elf.get(), &count) == 0) {
      for (size_t i = 0; i < count; ++i) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf.get(), static_cast<int>(i), &segment)) break;
        if (segment.p_type != PT_LOAD || segment.p_offset >= size_) continue;
        segments_.push_back({segment.p_vaddr, segment.p_offset, std::min(segment.p_filesz, size_ - segment.p_offset)});
      }
    }
    if (elf_getshdrstrndx(elf.get(), &names) != 0) return;
    for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf.get(), scn)) != nullptr;) {
      GElf_Shdr s;
      if (!gelf_getshdr(scn, &s)) continue;
      const char* name = elf_strptr(elf.get(), names, s.sh_name);
      sections_.resize(std::max(sections_.size(), elf_ndxscn(scn) + 1));
      sections_[elf_ndxscn(scn)] = {name ? name : "", s.sh_addr, s.sh_offset, s.sh_size, s.sh_link, s.sh_entsize, s.sh_type};
    }
  }

  std::string path_;
  int fd_ = -1;
  const char* data_ = nullptr;
  uint64_t size_ = 0;
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
};

// The field `relative` of the record at `record` points to this address; 0 if absent.
template <typename Record>
uint64_t target(uint64_t address, const Record& record, const int32_t& relative) {
  if (relative == 0) return 0;
  const auto inside = reinterpret_cast<const char*>(&relative) - reinterpret_cast<const char*>(&record);
  return address + static_cast<uint64_t>(inside) + static_cast<uint64_t>(static_cast<int64_t>(relative));
}

template <typename Record>
std::string text(const Image& image, uint64_t address, const Record& record, const int32_t& relative) {
  const uint64_t where = target(address, record, relative);
  return where ? image.string_at(where) : std::string();
}

std::map<uint64_t, ProgramSite> read_sites(const Image& image) {
  std::map<uint64_t, ProgramSite> sites;
  const Section* section = image.section(STEM_SITES_SECTION);
  if (!section) return sites;
  const std::string_view bytes = image.bytes(*section);
  for (uint64_t at = 0; bytes.size() - at >= sizeof(stem_site); at += sizeof(stem_site)) {
    stem_site record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (record.key == 0 || record.version != STEM_RECORD_VERSION) continue;
    const uint64_t address = section->address + at;
    ProgramSite site;
    site.key = record.key;
    site.kind = record.kind;
    site.line = record.line;
    site.column = record.column;
    site.file = text(image, address, record, record.file);
    site.function = text(image, address, record, record.function);
    site.linkage = text(image, address, record, record.linkage);
    site.text = text(image, address, record, record.text);
    site.path = text(image, address, record, record.path);
    site.layout = text(image, address, record, record.layout);
    sites.emplace_hint(sites.end(), address, std::move(site));
  }
  return sites;
}

struct Symbols {
  std::vector<ProgramFunction> functions;
  std::map<std::string, std::pair<uint64_t, uint64_t>> objects;  // name -> address, size
};

Symbols read_symbols(const Image& image) {
  Symbols symbols;
  for (const uint32_t wanted : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}}) {
    for (const Section& section : image.sections()) {
      if (section.type != wanted || section.link >= image.sections().size()) continue;
      const std::string_view table = image.bytes(section), names = image.bytes(image.sections()[section.link]);
      for (uint64_t at = 0; table.size() - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, table.data() + at, sizeof symbol);
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size()) continue;
        const std::string_view rest = names.substr(symbol.st_name);
        const size_t end = rest.find('\0');
        if (end == std::string_view::npos) continue;
        std::string name(rest.substr(0, end));
        const unsigned type = ELF64_ST_TYPE(symbol.st_info);
        if (type == STT_FUNC) symbols.functions.push_back({symbol.st_value, symbol.st_size, std::move(name)});
        else if (type == STT_OBJECT) symbols.objects.emplace(std::move(name), std::pair{symbol.st_value, symbol.st_size});
      }
    }
    if (!symbols.functions.empty()) break;  // .dynsym only where the file was stripped
  }
  std::sort(symbols.functions.begin(), symbols.functions.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return symbols;
}

std::vector<ProgramVariable> read_variables(const Image& image, const Symbols& symbols) {
  std::vector<ProgramVariable> variables;
  const Section* section = image.section(STEM_VARS_SECTION);
  if (!section) return variables;
  const std::string_view bytes = image.bytes(*section);
  for (uint64_t at = 0; bytes.size() - at >= sizeof(stem_variable); at += sizeof(stem_variable)) {
    stem_variable record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (record.version != STEM_RECORD_VERSION) continue;
    const uint64_t address = section->address + at;
    ProgramVariable variable;
    variable.address = target(address, record, record.address);
    variable.size = record.size;
    variable.line = record.line;
    variable.tls = record.flags & STEM_VARIABLE_TLS;
    variable.constant = record.flags & STEM_VARIABLE_CONST;
    variable.name = text(image, address, record, record.name);
    variable.display = text(image, address, record, record.display);
    variable.file = text(image, address, record, record.file);
    variable.layout = text(image, address, record, record.layout);
    if (variable.address == 0 && !variable.tls) {
      if (const auto found = symbols.objects.find(variable.name); found != symbols.objects.end()) variable.address = found->second.first;
    }
    variables.push_back(std::move(variable));
  }
  std::stable_sort(variables.begin(), variables.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  // An inline variable is described by every translation unit that has it.
  const auto same = [](const auto& a, const auto& b) { return a.address == b.address && a.name == b.name; };
  variables.erase(std::unique(variables.begin(), variables.end(), same), variables.end());
  return variables;
}

// Walks the frames of .stem.bc; returns false where they stop making sense.
template <typename Visit>
bool walk_bitcode(std::string_view rest, Visit visit) {
  while (!rest.empty()) {
    stem_bitcode header;
    if (rest.size() < sizeof header) return false;
    std::memcpy(&header, rest.data(), sizeof header);
    rest.remove_prefix(sizeof header);
    if (header.magic != STEM_BITCODE_MAGIC || header.size > rest.size() || header.raw_size > kMaxModule) return false;
    if (!visit(header, rest.substr(0, header.size))) return false;
    rest.remove_prefix(std::min<uint64_t>(rest.size(), (header.size + 7) / 8 * 8));
  }
  return true;
}

template <typename Item>
const Item* containing(const std::vector<Item>& items, uint64_t address) {
  auto after = std::upper_bound(items.begin(), items.end(), address, [](uint64_t a, const Item& item) { return a < item.address; });
  while (after != items.begin()) {
    --after;
    if (address - after->address < after->size) return &*after;
    if (after->size != 0) break;
  }
  return nullptr;
}

}  // namespace

Program Program::open(const std::string& path) {
  const Image image(path);
  Program program;
  program.path_ = path;
  program.build_id_ = image.build_id();
  program.sites_ = read_sites(image);
  Symbols symbols = read_symbols(image);
  program.variables_ = read_variables(image, symbols);
  program.functions_ = std::move(symbols.functions);
  if (const Section* section = image.section(STEM_BITCODE_SECTION)) {
    const std::string_view bytes = image.bytes(*section);
    program.bitcode_section_.assign(bytes.begin(), bytes.end());
    walk_bitcode(bytes, [&](const stem_bitcode&, std::string_view) { return ++program.bitcode_count_ != 0; });
  }
  return program;
}

const ProgramVariable* Program::variable_at(uint64_t address) const {
  const ProgramVariable* variable = containing(variables_, address);
  return variable && variable->address != 0 ? variable : nullptr;
}

const ProgramFunction* Program::function_at(uint64_t address) const { return containing(functions_, address); }

std::vector<Bitcode> Program::bitcode() const {
  std::vector<Bitcode> modules;
  const bool whole = walk_bitcode({bitcode_section_.data(), bitcode_section_.size()}, [&](const stem_bitcode& header, std::string_view stored) {
    Bitcode module;
    if (header.size == header.raw_size) {
      module.bytes.assign(stored.begin(), stored.end());
    } else {
      // The frame's own idea of its size must agree before memory is set aside for it.
      if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != header.raw_size) return false;
      module.bytes.resize(header.raw_size);
      const size_t got = ZSTD_decompress(module.bytes.data(), module.bytes.size(), stored.data(), stored.size());
      if (ZSTD_isError(got) || got != header.raw_size) return false;
    }
    if (XXH3_64bits(module.bytes.data(), module.bytes.size()) != header.hash) return false;
    modules.push_back(std::move(module));
    return true;
  });
  if (!whole) user_error("{}: the bitcode inside is damaged (module {}); build it again with stem-cc", path_, modules.size() + 1);
  return modules;
}

}  // namespace stem::trace
