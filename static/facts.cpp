// The file is a magic number, then every vector as its length and its elements, numbers of eight bytes, in the order of
// the class; at its end the hash of all before. It is a cache: whatever is wrong with it, the answer is to analyse
// again.
#include "static/facts.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace stem::analysis {

namespace {

constexpr uint64_t kMagic = 0x31305354434146ull;  // "FACTS01"; another meaning of the bytes needs another number

class Out {
 public:
  void number(uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(const std::string& value) {
    number(value.size());
    bytes += value;
  }
  template <typename T, typename F>
  void list(const std::vector<T>& values, F&& each) {
    number(values.size());
    for (const T& value : values) each(value);
  }
  std::string bytes;
};

class In {
 public:
  In(const char* at, const char* end) : at_(at), end_(end) {}
  uint64_t number() {
    uint64_t value = 0;
    if (end_ - at_ < 8) return bad_ = true, 0;
    std::memcpy(&value, at_, sizeof value);
    at_ += 8;
    return value;
  }
  uint32_t small() { return static_cast<uint32_t>(number()); }
  std::string text() {
    const uint64_t size = number();
    if (size > static_cast<uint64_t>(end_ - at_)) return bad_ = true, "";
    std::string value(at_, size);
    at_ += size;
    return value;
  }
  template <typename T, typename F>
  void list(std::vector<T>& values, F&& each) {
    const uint64_t size = number();
    if (size > static_cast<uint64_t>(end_ - at_) / 8) {
      bad_ = true;
      return;
    }
    values.reserve(size);
    for (uint64_t i = 0; i < size && !bad_; ++i) values.push_back(each());
  }
  bool good() const { return !bad_ && at_ == end_; }

 private:
  const char *at_, *end_;
  bool bad_ = false;
};

}  // namespace

std::string Facts::to_bytes() const {
  Out out;
  auto number = [&](uint64_t value) { out.number(value); };
  out.number(kMagic);
  out.list(objects, [&](const Object& o) {
    number(static_cast<uint64_t>(o.memory) << 1 | o.external);
    number(o.site);
    out.text(o.name);
  });
  out.list(sets, [&](const Set& s) {
    number(s.unknown);
    out.list(s.extents, [&](const Extent& e) { number(e.object), number(uint64_t{e.begin} << 32 | e.end); });
  });
  out.list(sites, [&](const Site& s) {
    number(s.key);
    number(uint64_t{s.unseen} << 1 | s.branch);
    for (const auto* list : {&s.threads, &s.reads, &s.writes}) out.list(*list, number);
  });
  out.list(dead, number);
  out.list(threads, [&](const Thread& t) { out.text(t.entry), out.text(t.written), number(t.many); });
  out.list(refuted, [&](const auto& pair) { number(pair.first), number(pair.second); });
  out.list(overwritten, [&](const auto& pair) { number(pair.first), number(pair.second); });
  out.number(XXH3_64bits(out.bytes.data(), out.bytes.size()));
  return std::move(out.bytes);
}

std::optional<Facts> Facts::from_bytes(const std::string& bytes) {
  if (bytes.size() < 16) return std::nullopt;
  uint64_t hash;
  std::memcpy(&hash, bytes.data() + bytes.size() - 8, 8);
  if (XXH3_64bits(bytes.data(), bytes.size() - 8) != hash) return std::nullopt;
  In in(bytes.data(), bytes.data() + bytes.size() - 8);
  if (in.number() != kMagic) return std::nullopt;
  Facts facts;
  auto small = [&] { return in.small(); };
  in.list(facts.objects, [&] {
    Object o;
    const uint64_t bits = in.number();
    o.memory = static_cast<Memory>(bits >> 1 & 3);
    o.external = bits & 1;
    o.site = in.number();
    o.name = in.text();
    return o;
  });
  in.list(facts.sets, [&] {
    Set s;
    s.unknown = in.number();
    in.list(s.extents, [&] {
      const uint32_t object = in.small();
      const uint64_t range = in.number();
      return Extent{object, static_cast<uint32_t>(range >> 32), static_cast<uint32_t>(range)};
    });
    return s;
  });
  in.list(facts.sites, [&] {
    Site s;
    s.key = in.number();
    const uint64_t bits = in.number();
    s.branch = bits & 1;
    s.unseen = bits >> 1 & 1;
    for (auto* list : {&s.threads, &s.reads, &s.writes}) in.list(*list, small);
    return s;
  });
  in.list(facts.dead, [&] { return in.number(); });
  in.list(facts.threads, [&] {
    Thread t;
    t.entry = in.text();
    t.written = in.text();
    t.many = in.number();
    return t;
  });
  in.list(facts.refuted, [&] {
    const uint64_t def = in.number();
    return std::pair{def, in.number()};
  });
  in.list(facts.overwritten, [&] {
    const uint64_t use = in.number();
    return std::pair{use, in.small()};
  });
  if (!in.good()) return std::nullopt;
  facts.finish();
  return facts;
}

void Facts::finish() {
  for (auto* list : {&dead}) std::sort(list->begin(), list->end());
  std::sort(refuted.begin(), refuted.end());
  std::sort(overwritten.begin(), overwritten.end());
  std::sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) { return a.key < b.key; });
  by_key_.clear();
  by_site_.clear();
  by_name_.clear();
  for (uint32_t i = 0; i < sites.size(); ++i) by_key_.emplace(sites[i].key, i);
  for (uint32_t i = 0; i < objects.size(); ++i) {
    if (objects[i].site) by_site_.emplace(objects[i].site, i);
    if (objects[i].memory == Memory::Global) by_name_.emplace(objects[i].name, i);
  }
}

const Facts::Site* Facts::site(uint64_t key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &sites[found->second];
}

bool Facts::is_dead(uint64_t key) const { return std::binary_search(dead.begin(), dead.end(), key); }

std::vector<uint32_t> Facts::allocated_at(uint64_t key) const {
  std::vector<uint32_t> found;
  for (auto [at, end] = by_site_.equal_range(key); at != end; ++at) found.push_back(at->second);
  return found;
}

std::vector<uint32_t> Facts::globals(const std::string& name) const {
  std::vector<uint32_t> found;
  for (auto [at, end] = by_name_.equal_range(name); at != end; ++at) found.push_back(at->second);
  return found;
}

void Facts::extents(const std::vector<uint32_t>& which, uint32_t object, std::vector<Extent>& out) const {
  for (uint32_t id : which) {
    const Set& set = sets.at(id);
    auto at = std::lower_bound(set.extents.begin(), set.extents.end(), object,
                               [](const Extent& e, uint32_t wanted) { return e.object < wanted; });
    for (; at != set.extents.end() && at->object == object; ++at) out.push_back(*at);
    if (set.unknown && objects.at(object).external) out.push_back({object, 0, UINT32_MAX});
  }
}

bool Facts::touches(const std::vector<uint32_t>& which, uint32_t object) const {
  std::vector<Extent> found;
  extents(which, object, found);
  return !found.empty();
}

bool Facts::may_flow(const Site& def, const Site& use, uint32_t object) const {
  if (std::binary_search(refuted.begin(), refuted.end(), std::pair{def.key, use.key})) return false;
  if (def.unseen || use.unseen) return true;
  std::vector<Extent> written, read;
  extents(def.writes, object, written);
  extents(use.reads, object, read);
  for (const Extent& w : written)
    for (const Extent& r : read)
      if (w.begin < r.end && r.begin < w.end) return true;
  return false;
}

bool Facts::initial_may_reach(const Site& use, uint32_t object) const {
  return !std::binary_search(overwritten.begin(), overwritten.end(), std::pair{use.key, object});
}

}  // namespace stem::analysis
