#include "trace/compare.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "trace/names.h"
#include "trace/shadow.h"
#include "trace/text.h"

namespace stem::trace {

namespace {

// One of the two runs: its next event, and what lies where in its memory.
class Side {
 public:
  explicit Side(Reader& reader) : reader(reader), names(reader) {}

  Reader& reader;
  ReaderNames names;
  std::optional<Shadow> written;  // what was written since its object began; only for a second look

  bool next(bool visible_only) {
    while (true) {
      Reader::Item item = reader.next();
      while (objects_ < reader.object_count()) {
        const ObjectStore::Entry* o = reader.object_entry(objects_);
        if (o && o->born == kNone) place(objects_);
        ++objects_;
      }
      if (item == Reader::Item::End) return false;
      if (item == Reader::Item::Expr) continue;
      if (reader.event().kind == Kind::Alloc) {
        place(reader.event().object);
        if (written) written->forget(reader.event().addr, reader.event().value, reader.event().flags & kZeroed);
      }
      if (reader.event().kind == Kind::Free)
        if (auto freed = live_.find(reader.event().addr); freed != live_.end()) freed->second.freed = true;
      if (!visible_only || is_visible(reader.event().kind)) return true;
    }
  }

  void note_write(const Event& e) {
    if (written && (e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External))
      written->set(e.addr, e.size, 0);
  }

  // Whether nobody has written the bytes of a read that are set in `bits` since its object began: padding of a copied
  // struct, which holds what the stack held before.
  bool is_fresh(const Event& read, uint64_t bits) {
    if (!written || read.object == kNone || written->evicted()) return false;
    const Object o = reader.object(read.object);
    if ((o.kind != ObjectKind::Stack && o.kind != ObjectKind::Heap) || o.zeroed) return false;
    const uint8_t known = written->get(read.addr, read.size).known;
    for (unsigned i = 0; i < read.size; ++i)
      if ((bits >> (8 * i) & 0xff) && known >> i & 1) return false;
    return true;
  }

  struct Place {
    std::string identity;
    uint64_t offset = 0;
    bool named = true;  // false: memory that nobody described, where offsets mean nothing; or that was freed, and may be so by now
    bool operator==(const Place&) const = default;
  };
  std::optional<Place> place_of(uint64_t address) const {
    auto after = live_.upper_bound(address);
    if (after == live_.begin()) return std::nullopt;
    auto& [base, o] = *std::prev(after);
    if (address - base > o.size) return std::nullopt;  // one past the end belongs to it
    Object object = reader.object(o.id);
    return Place{object.identity, address - base, object.kind != ObjectKind::Unknown && !o.freed};
  }
  // Object and offset of an event's address.
  Place place(const Event& e) const {
    if (e.object == kNone) return {};
    Object o = reader.object(e.object);
    return {o.identity, e.addr - o.base, o.kind != ObjectKind::Unknown};
  }

 private:
  struct Live {
    uint64_t size;
    uint32_t id;
    bool freed = false;
  };
  void place(uint32_t id) {
    const ObjectStore::Entry* o = reader.object_entry(id);
    if (!o || o->base + o->size < o->base) return;
    auto at = live_.lower_bound(o->base);
    if (at != live_.begin() && o->base - std::prev(at)->first < std::prev(at)->second.size) --at;
    while (at != live_.end() && at->first < o->base + o->size) at = live_.erase(at);
    live_[o->base] = {o->size, id, false};
  }

  std::map<uint64_t, Live> live_;
  uint32_t objects_ = 0;
};

class Comparison {
 public:
  Comparison(Reader& a, Reader& b, const CompareOptions& options, bool closely = false) : a_(a), b_(b), options_(options) {
    if (closely) a_.written.emplace();
  }

  bool of_value() const { return of_value_; }  // a read that differs in nothing but its value: worth a second look

  std::optional<Difference> run() {
    for (uint64_t index = 0;; ++index) {
      bool more_a = a_.next(options_.visible_only), more_b = b_.next(options_.visible_only);
      if (!more_a && !more_b) return endings(index);
      if (more_a != more_b) {
        Side& longer = more_a ? a_ : b_;
        return Difference{index,
                          fmt::format("the {} run ends here; the {} goes on with {}", more_a ? "second" : "first",
                                      more_a ? "first" : "second", what(longer, longer.reader.event()))};
      }
      std::string why = differ(a_.reader.event(), b_.reader.event());
      if (!why.empty() && livelocked(a_) != livelocked(b_) && both_livelock()) return std::nullopt;
      if (!why.empty()) return Difference{index, why};
      a_.note_write(a_.reader.event());
    }
  }

 private:
  static bool livelocked(const Side& side) {
    return side.reader.event().kind == Kind::Exit &&
           side.reader.event().value2 == static_cast<uint64_t>(Outcome::Livelock);
  }

  // A livelock goes on for ever: at which round its recording was stopped means nothing. Reads both to their ends.
  bool both_livelock() {
    Event kept[2] = {a_.reader.event(), b_.reader.event()};
    while (a_.next(false)) kept[0] = a_.reader.event();
    while (b_.next(false)) kept[1] = b_.reader.event();
    return kept[0].value2 == kept[1].value2 && kept[0].kind == Kind::Exit && kept[1].kind == Kind::Exit &&
           kept[0].value2 == static_cast<uint64_t>(Outcome::Livelock);
  }

  static std::string what(const Side& side, const Event& e) {
    std::string on = subject(e, side.names);
    return fmt::format("{}: {}{}{}", describe(side.names.thread(e.thread), side.names.site(e.site)), kind_name(e.kind),
                       on.empty() ? "" : " of ", on);
  }

  std::string differ(const Event& x, const Event& y) {
    const Thread &tx = a_.names.thread(x.thread), &ty = b_.names.thread(y.thread);
    auto both = [&] { return fmt::format("the first run has {}; the second {}", what(a_, x), what(b_, y)); };
    if (tx.path != ty.path || x.kind != y.kind || a_.names.site(x.site).key != b_.names.site(y.site).key ||
        x.size != y.size)
      return both();
    if (x.flags != y.flags) return fmt::format("{} differs in its flags", what(a_, x));
    bool thread_value = x.kind == Kind::Create || x.kind == Kind::Join || x.kind == Kind::Detach;
    if (x.object != kNone || y.object != kNone) {
      Side::Place px = a_.place(x), py = b_.place(y);
      if (px != py && !same_unnamed(x, y))
        return both() +
               fmt::format(" ({} at offset {}, and {} at offset {})", px.identity, px.offset, py.identity, py.offset);
      deltas_.insert(x.addr - y.addr);
    } else if (x.addr != y.addr && !deltas_.count(x.addr - y.addr)) {
      return fmt::format("{} is about other memory", what(a_, x));
    }
    if (thread_value) {
      const std::string &cx = a_.names.thread(static_cast<ThreadId>(x.value)).path,
                        &cy = b_.names.thread(static_cast<ThreadId>(y.value)).path;
      return cx == cy ? ""
                      : fmt::format("{} is about {} in the first run, about {} in the second", what(a_, x), cx, cy);
    }
    if (!same_value(x, x.value, y.value)) {
      of_value_ = x.kind == Kind::Read;
      return fmt::format("{} has value {} in the first run, {} in the second", what(a_, x), x.value, y.value);
    }
    if (!same_value(x, x.value2, y.value2))
      return fmt::format("{} writes {} in the first run, {} in the second", what(a_, x), x.value2, y.value2);
    return "";
  }

  bool same_value(const Event& e, uint64_t x, uint64_t y) {
    if (x == y) return true;
    // What lay in memory before it was used is no part of a run, nor are copies of it; a branch on it would be.
    if (e.kind == Kind::External && e.flags & kFresh && garbage_.size() < 1u << 16) return garbage_.emplace(x, y), true;
    if (e.kind == Kind::Read && garbage_.size() < 1u << 16 && a_.is_fresh(e, x ^ y)) return garbage_.emplace(x, y), true;
    if ((e.kind == Kind::Read || e.kind == Kind::Write || e.kind == Kind::Pin) && garbage_.count({x, y})) return true;
    if (e.kind == Kind::Wake || e.kind == Kind::Signal) {
      return x && y &&
             a_.names.thread(static_cast<ThreadId>(x - 1)).path == b_.names.thread(static_cast<ThreadId>(y - 1)).path;
    }
    bool may_point = e.size == 8 || e.kind == Kind::Wait || e.kind == Kind::Pin || e.kind == Kind::Branch;
    if (!may_point) return false;
    auto px = a_.place_of(x), py = b_.place_of(y);
    if (px && py && (*px == *py || px->named || py->named)) return *px == *py;
    // Into something that the run never touched (a function, a constant): moved as far as something else of its kind
    // was.
    if (deltas_.count(x - y)) return true;
    // Into memory that nobody described (a pthread_t, the C library's own): each must stand for the same one
    // throughout.
    if ((px && px->named) != (py && py->named) || !may_be_address(x) || !may_be_address(y) || unnamed_.size() > 1u << 16) return false;
    return unnamed_.try_emplace(x, y).first->second == y;
  }

  // Memory without a name (the environment's strings, above all) lies elsewhere when the environment has another
  // length: the same address of one run must be the same address of the other throughout.
  bool same_unnamed(const Event& x, const Event& y) {
    if (x.object == kNone || y.object == kNone || a_.place(x).named || b_.place(y).named || unnamed_.size() > 1u << 16)
      return false;
    return unnamed_.try_emplace(x.addr, y.addr).first->second == y.addr;
  }

  // Programs, libraries, mappings and stacks; the stack of main that Valgrind lays out, which ends at 0x1fff001000; what a replay
  // gives in place of the C library's memory (tracer/runtime/pages.c).
  static bool may_be_address(uint64_t value) {
    return (value >= 0x500000000000 && value < 0x800000000000) || (value >= 0x1ff0000000 && value < 0x2000000000) ||
           (value >= 0x100000000000 && value < 0x110000000000);
  }

  std::optional<Difference> endings(uint64_t index) const {
    const Reader &x = a_.reader, &y = b_.reader;
    if (x.outcome() == y.outcome() && x.exit_code() == y.exit_code()) return std::nullopt;
    return Difference{index, fmt::format("the first run {} with {}, the second {} with {}", outcome_name(x.outcome()),
                                         x.exit_code(), outcome_name(y.outcome()), y.exit_code())};
  }

  Side a_, b_;
  bool of_value_ = false;
  CompareOptions options_;
  std::set<uint64_t> deltas_;  // how far objects of the two runs lie apart
  std::map<uint64_t, uint64_t> unnamed_;
  std::set<std::pair<uint64_t, uint64_t>> garbage_;  // values of memory that nobody was seen to write, in the two runs
};

}  // namespace

std::optional<Difference> compare(Reader& first, Reader& second, const CompareOptions& options) {
  Comparison quick(first, second, options);
  auto difference = quick.run();
  if (!difference || !quick.of_value()) return difference;
  Reader again(first.path()), also(second.path());
  return Comparison(again, also, options, true).run();
}

std::optional<Difference> compare(const std::string& first, const std::string& second, const CompareOptions& options) {
  Reader a(first), b(second);
  return compare(a, b, options);
}

}  // namespace stem::trace
