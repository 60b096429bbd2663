// What static analysis says may happen, in a form that answers about single sites and pairs and can be kept in a file:
// a run that shows anything else has met a bug in static analysis (or in the recorder), and the run is its witness.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace stem::analysis {

constexpr uint64_t kInitialKey = 0;  // "key" of the initial definition

class Facts {
 public:
  enum class Memory : uint8_t { Other, Global, Stack, Heap };
  struct Object {
    Memory memory = Memory::Other;
    bool external = false;
    uint64_t site = 0;  // key of the site that allocates it, 0 for globals
    std::string name;   // of globals: linkage name
  };
  struct Extent {
    uint32_t object, begin, end;
  };
  struct Set {
    bool unknown = false;
    std::vector<Extent> extents;  // sorted by object
  };
  struct Site {
    uint64_t key = 0;
    bool branch = false;
    bool unseen = false;            // a call of code we do not see: what that does is told here, and may be anything
    std::vector<uint32_t> threads;  // classes that may execute it
    std::vector<uint32_t> reads, writes;  // sets
  };
  struct Thread {
    std::string entry,
        written;  // linkage name, as the programmer would write it; both empty: whatever unseen code starts
    bool many = false;
  };

  std::vector<Object> objects;
  std::vector<Set> sets;
  std::vector<Site> sites;     // of code that some thread may run, sorted by key
  std::vector<uint64_t> dead;  // keys of sites that no thread may run
  std::vector<Thread> threads;
  std::vector<std::pair<uint64_t, uint64_t>> refuted;      // (definition, use): no order of the two is possible; sorted
  std::vector<std::pair<uint64_t, uint32_t>> overwritten;  // (use, object): the initial value cannot reach it; sorted

  const Site* site(uint64_t key) const;
  bool is_dead(uint64_t key) const;
  // The objects that a piece of memory of a run may be: by the site that allocated it, or by linkage name.
  std::vector<uint32_t> allocated_at(uint64_t key) const;
  std::vector<uint32_t> globals(const std::string& name) const;

  bool may_read(const Site& site, uint32_t object) const { return site.unseen || touches(site.reads, object); }
  bool may_write(const Site& site, uint32_t object) const { return site.unseen || touches(site.writes, object); }
  // May a read at `use` of this object take its value from a write at `def`? (kInitialKey: what the object began with)
  bool may_flow(const Site& def, const Site& use, uint32_t object) const;
  bool initial_may_reach(const Site& use, uint32_t object) const;

  void finish();  // sorts and indexes; after filling in by hand

  std::string to_bytes() const;
  // Nothing if these are not the bytes of this version, or damaged.
  static std::optional<Facts> from_bytes(const std::string& bytes);

 private:
  bool touches(const std::vector<uint32_t>& sets, uint32_t object) const;
  void extents(const std::vector<uint32_t>& sets, uint32_t object, std::vector<Extent>& out) const;

  std::unordered_map<uint64_t, uint32_t> by_key_;
  std::unordered_multimap<uint64_t, uint32_t> by_site_;
  std::unordered_multimap<std::string, uint32_t> by_name_;
};

}  // namespace stem::analysis
