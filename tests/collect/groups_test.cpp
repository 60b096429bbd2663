// Groups against the records that they stand for: the same file, byte by byte.
#include "tracer/launch/collect/groups.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "producer.h"
#include "trace/reader.h"
#include "tracer/launch/collect/translate.h"

using namespace stem;
using namespace stem::collect;
namespace fs = std::filesystem;

namespace {

std::string written(const Stream& stream) {
  std::string name = (fs::temp_directory_path() / "stem-groups-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  {
    trace::Writer writer(folder / "t", {}, false);
    Translator translator(writer);
    translator.records(stream.records.data(), stream.records.data() + stream.records.size());
    translator.finish();
    CHECK_FALSE(translator.broken());
  }
  std::ifstream in(folder / "t", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  trace::Recovery recovery;
  CHECK(trace::load(folder / "t", &recovery).events.size() > 0);
  fs::remove_all(folder);
  return bytes;
}

// A stretch of code: what it accesses, and how that goes on from one run to the next.
struct Access {
  bool write, constant, leaf;
  unsigned size;
  uint64_t addr, stride;
  int formula;  // of a write: 0 what was there, else x - y * z or a copy of the last reads
};

struct Code {
  std::vector<Access> accesses;
  bool branch;
  uint32_t number, site;
  std::string blob;
  uint32_t size, ids;
};

Code make_code(std::mt19937& random, uint32_t number) {
  auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  Code code;
  code.number = number;
  code.site = 1000 * (number + 1);
  code.branch = pick(4) != 0;
  for (unsigned n = 1 + pick(5); n; --n) {
    Access a{};
    a.write = pick(3) == 0;
    a.constant = pick(2);
    a.leaf = !a.write && pick(2);
    a.size = pick(3) ? 8 : 1u << pick(4);
    a.addr = 0x5000 + 8 * pick(12);
    a.stride = a.constant ? 0 : pick(4) == 0 ? 0 : a.size * (1 + pick(2));
    if (!a.constant && pick(4) == 0) a.stride = 0 - a.stride, a.addr += 512;
    if (pick(3) == 0) a.addr += 4096 - 0x100;
    a.formula = static_cast<int>(pick(3));
    code.accesses.push_back(a);
  }
  return code;
}

// Its records: as told (values and addresses are numbers of accesses), or with what they were.
std::vector<stem_rec> records_of(const Code& code, uint32_t next, const std::vector<uint64_t>* addresses,
                                 const std::vector<uint64_t>* values, uint64_t taken) {
  std::vector<stem_rec> out;
  std::vector<std::pair<size_t, uint32_t>> leaves;
  uint32_t site = code.site;
  auto value = [&](size_t i) { return values ? (*values)[i] : 1 + i; };
  for (size_t i = 0; i < code.accesses.size(); ++i) {
    const Access& a = code.accesses[i];
    uint32_t expr = 0;
    if (a.write && !leaves.empty()) {
      out.push_back({stem_expr_head(STEM_OP_Opaque, 8 * a.size, 8 * a.size, 0), value(i), leaves[0].second,
                     leaves.size() > 1 ? leaves.back().second : 0});
      expr = next++;
    }
    unsigned aux = a.size | (a.write ? 0 : a.leaf ? STEM_AUX_LEAF : STEM_AUX_PINNED);
    out.push_back({stem_head(a.write ? STEM_KIND_Write : STEM_KIND_Read, aux, addresses ? (*addresses)[i] : i),
                   value(i), expr, site++});
    if (a.leaf) leaves.emplace_back(i, next++);
    if (leaves.size() > 1 && i % 2) {
      for (auto& [read, id] : leaves) out.push_back({stem_head(STEM_KIND_Pin, 0, 0), value(read), id, site});
      leaves.clear();
      ++site;
    }
  }
  for (auto& [read, id] : leaves) out.push_back({stem_head(STEM_KIND_Pin, 0, 0), value(read), id, site});
  if (code.branch) out.push_back({stem_head(STEM_KIND_Branch, 0, 0), values ? taken : STEM_GROUP_TAKEN, 0, site + 1});
  return out;
}

void tell(Code& code, std::vector<stem_group_access>& layout) {
  const auto records = records_of(code, 1, nullptr, nullptr, 0);
  stem_group head{};
  for (const stem_rec& r : records) {
    const unsigned kind = r.head >> 48 & 0xff;
    head.ids += kind == STEM_RAW_Expr || (kind == STEM_KIND_Read && r.head >> 56 & STEM_AUX_LEAF);
  }
  unsigned at = 8;
  for (const Access& a : code.accesses) {
    stem_group_access access{a.constant ? a.addr : 0, 0, 0, static_cast<uint16_t>(a.size), a.write};
    if (!a.constant) access.at_addr = static_cast<uint16_t>(at), at += 8;
    access.at_value = static_cast<uint16_t>(at);
    at += a.size;
    layout.push_back(access);
  }
  code.size = head.size = (at + 23) / 24;
  code.ids = head.ids;
  head.accesses = static_cast<uint32_t>(layout.size());
  head.records = static_cast<uint32_t>(records.size());
  code.blob.assign(reinterpret_cast<const char*>(&head), sizeof head);
  code.blob.append(reinterpret_cast<const char*>(layout.data()), layout.size() * sizeof layout[0]);
  code.blob.append(reinterpret_cast<const char*>(records.data()), records.size() * sizeof records[0]);
}

}  // namespace

TEST_CASE("groups are the records that they stand for") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    Stream grouped, plain;
    for (Stream* stream : {&grouped, &plain}) {  // whose sites are addresses of our own code, so that events can be repeated
      stream->begin();
      stream->raw(STEM_RAW_Module, 0, 0, 1000, 8000);
      stream->blob(STEM_BLOB_MODULE_PATH, fs::read_symlink("/proc/self/exe").string());
    }
    std::vector<Code> codes;
    std::vector<std::vector<stem_group_access>> layouts;
    for (uint32_t i = 0; i < 3; ++i) {
      codes.push_back(make_code(random, i));
      layouts.emplace_back();
      tell(codes.back(), layouts.back());
      grouped.blob(STEM_BLOB_GROUP, codes.back().blob);
      plain.blob(STEM_BLOB_GROUP, codes.back().blob);
    }
    std::vector<uint8_t> memory(1 << 16);
    uint32_t next = 1;
    for (int outer = 0; outer < 40; ++outer) {
      const Code& code = codes[pick(3)];
      const unsigned rows = pick(3) ? 1 + pick(20) : 1;
      const uint64_t shift = 8 * pick(4);
      for (unsigned row = 0; row < rows; ++row) {
        std::vector<uint64_t> addresses, values;
        for (const Access& a : code.accesses) {
          const uint64_t addr = a.addr + (a.constant ? 0 : shift + row * a.stride);
          uint64_t value = 0;
          std::memcpy(&value, &memory[addr], a.size);
          if (pick(200) == 0) value ^= 1;  // something unseen wrote
          if (a.write) {
            value = a.formula == 0 ? value + 1 : a.formula == 1 && !values.empty() ? values.back() : outer;
            if (pick(30) == 0) value = random();
            if (a.size < 8) value &= (1ull << 8 * a.size) - 1;
          }
          std::memcpy(&memory[addr], &value, a.size);
          addresses.push_back(addr);
          values.push_back(value);
        }
        const uint64_t taken = row + 1 < rows;
        std::vector<stem_rec> record(code.size);
        record[0].head = stem_group_head(code.number, code.size) | taken << 32;
        for (size_t i = 0; i < code.accesses.size(); ++i) {
          const stem_group_access& a = layouts[code.number][i];
          if (a.at_addr) std::memcpy(reinterpret_cast<char*>(record.data()) + a.at_addr, &addresses[i], 8);
          std::memcpy(reinterpret_cast<char*>(record.data()) + a.at_value, &values[i], a.size);
        }
        grouped.records.insert(grouped.records.end(), record.begin(), record.end());
        const auto ordinary = records_of(code, next, &addresses, &values, taken);
        plain.records.insert(plain.records.end(), ordinary.begin(), ordinary.end());
        next += code.ids;
      }
    }
    grouped.exit(0);
    plain.exit(0);
    CHECK((written(grouped) == written(plain)));
  }
}

TEST_CASE("a group that makes no sense is refused") {
  std::mt19937 random(1);
  Code code = make_code(random, 0);
  std::vector<stem_group_access> layout;
  tell(code, layout);
  CHECK(Group::parse(code.blob));
  for (size_t at = 0; at < code.blob.size(); ++at) {
    std::string damaged = code.blob;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    if (auto group = Group::parse(damaged)) {
      std::vector<stem_rec> record(group->size), out;
      out.resize(group->records.size());
      group->expand(record.data(), 1, out.data());
    }
    CHECK_FALSE(Group::parse(code.blob.substr(0, at)));
  }
}
