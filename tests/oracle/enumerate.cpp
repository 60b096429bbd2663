#include "oracle/enumerate.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <unordered_map>

#include "oracle/values.h"
#include "util/error.h"

namespace stem::oracle {

using trace::Event;
using trace::Kind;
using trace::Op;

namespace {

using Place = std::pair<uint32_t, uint64_t>;  // object, address: a byte of memory or a synchronisation object

bool reads(const Event& e) { return e.kind == Kind::Read || e.kind == Kind::Rmw; }
bool writes(const Event& e) { return e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External; }
bool binds(const Event& e) { return e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert; }

struct Byte {
  uint8_t bits = 0;
  bool known = false;
  uint32_t writer = predictor::kInitial;
};

// One execution so far.
struct State {
  std::vector<uint32_t> position;    // by thread: how many of its events have executed
  std::vector<Byte> memory;          // by number of the byte
  std::vector<Value> read;           // by event: what it read
  std::set<uint32_t> signalled;      // Wake events that a signal or broadcast has enabled
};

// What a synchronisation object is to one thread after some of its events.
struct Hold {
  int depth = 0;                   // mutex
  int reading = 0, writing = 0;    // read-write lock
  int count = 0;                   // semaphore: posts minus waits
};

class Enumerator {
 public:
  Enumerator(const trace::Trace& trace, size_t limit) : trace_(trace), events_(trace.events), limit_(limit) {
    threads_.resize(trace.threads.size());
    for (uint32_t i = 0; i < events_.size(); ++i) threads_[events_[i].thread].push_back(i);
    number_bytes();
    replay_recording();
    find_last_uses();
    tabulate_holds();
  }

  bool run(const InputVector& inputs, Truth& truth) {
    inputs_ = &inputs;
    truth_ = &truth;
    seen_.clear();
    State start;
    start.position.resize(threads_.size());
    start.memory = initial_;
    start.read.resize(events_.size());
    visit(start);
    return !exhausted_;
  }

 private:
  // --- what the recording says, once -----------------------------------------------------------------------------------
  std::vector<uint32_t> bytes_of(const Event& e) const {
    std::vector<uint32_t> bytes;
    for (unsigned i = 0; i < e.size; ++i) bytes.push_back(byte_.at({e.object, e.addr + i}));
    return bytes;
  }

  void number_bytes() {
    for (const Event& e : events_)
      if (reads(e) || writes(e))
        for (unsigned i = 0; i < e.size; ++i) byte_.try_emplace({e.object, e.addr + i}, byte_.size());
  }

  // Memory at the start, and where each read took its bytes from.
  void replay_recording() {
    initial_.resize(byte_.size());
    std::vector<bool> touched(byte_.size());
    std::vector<uint32_t> writer(byte_.size(), predictor::kInitial);
    source_.resize(events_.size());
    for (auto& [place, number] : byte_) {
      if (place.first == trace::kNone) continue;
      const trace::Object& object = trace_.objects[place.first];
      const uint64_t offset = place.second - object.base;
      if (object.zeroed) initial_[number].known = touched[number] = true;
      if (offset < object.initial.size())
        initial_[number] = {object.initial[offset], true, predictor::kInitial}, touched[number] = true;
    }
    for (uint32_t i = 0; i < events_.size(); ++i) {
      const Event& e = events_[i];
      if (!reads(e) && !writes(e)) continue;
      const auto bytes = bytes_of(e);
      for (unsigned k = 0; k < bytes.size(); ++k) {
        if (reads(e) && !touched[bytes[k]])
          initial_[bytes[k]] = {static_cast<uint8_t>(e.value >> 8 * k), true, predictor::kInitial};
        touched[bytes[k]] = true;
        source_[i].push_back(writer[bytes[k]]);
        if (writes(e)) writer[bytes[k]] = i;
      }
    }
  }

  // The events whose expressions a read is part of: it need not be remembered beyond the last of them.
  void leaves(trace::ExprId id, std::set<uint32_t>& out) const {
    if (!id) return;
    const trace::Expr& e = trace_.exprs[id];
    if (e.op == Op::Read) out.insert(static_cast<uint32_t>(e.value));
    leaves(e.a, out), leaves(e.b, out), leaves(e.c, out);
  }

  void find_last_uses() {
    uses_.resize(events_.size());
    for (uint32_t i = 0; i < events_.size(); ++i) {
      std::set<uint32_t> used;
      leaves(events_[i].expr, used);
      for (uint32_t read : used) uses_[read].push_back(i);
    }
    place_in_thread_.resize(events_.size());
    for (const auto& thread : threads_)
      for (uint32_t i = 0; i < thread.size(); ++i) place_in_thread_[thread[i]] = i;
  }

  // What each thread holds of each synchronisation object after each of its events.
  void tabulate_holds() {
    std::map<Place, int> count;
    std::set<Place> initialised;
    std::map<const Event*, int> raise;  // by how much an initialisation changes the count: its order with all uses is fixed
    for (const Event& e : events_) {
      const Place place{e.object, e.addr};
      if (e.kind == Kind::SemInit) {
        raise[&e] = static_cast<int>(e.value) - count[place];
        count[place] = static_cast<int>(e.value);
        initialised.insert(place);
      }
      if (e.kind == Kind::SemPost) ++count[place];
      if (e.kind == Kind::SemWait) --count[place];
      if (e.kind == Kind::SemWait && count[place] < 0 && !initialised.count(place)) ++start_count_[place], ++count[place];
    }
    holds_.resize(threads_.size());
    for (size_t t = 0; t < threads_.size(); ++t) {
      std::map<Place, Hold> now;
      holds_[t].push_back(now);
      for (uint32_t i : threads_[t]) {
        const Event& e = events_[i];
        const Place place{e.object, e.addr};
        if (e.kind == Kind::Lock || e.kind == Kind::Unlock) now[place].depth = static_cast<int>(e.value);
        if (e.kind == Kind::Wait) now[{mutex_object(e), e.value}].depth = 0;
        if (e.kind == Kind::AtomicBegin) ++now[kAtomicSection].depth;
        if (e.kind == Kind::AtomicEnd) --now[kAtomicSection].depth;
        if (e.kind == Kind::RdLock) ++now[place].reading;
        if (e.kind == Kind::WrLock) now[place].writing = 1;
        if (e.kind == Kind::RwUnlock) now[place].writing ? now[place].writing = 0 : --now[place].reading;
        if (e.kind == Kind::SemInit) now[place].count += raise.at(&e);
        if (e.kind == Kind::SemPost) ++now[place].count;
        if (e.kind == Kind::SemWait) --now[place].count;
        holds_[t].push_back(now);
      }
    }
  }

  // A Wait names its mutex by address only; it is the object of the thread's Locks of that address.
  uint32_t mutex_object(const Event& wait) const {
    for (const Event& e : events_)
      if (e.kind == Kind::Lock && e.thread == wait.thread && e.addr == wait.value) return e.object;
    return trace::kNone;
  }

  // --- the state --------------------------------------------------------------------------------------------------------
  bool done(const State& s, uint32_t event) const {
    return place_in_thread_[event] < s.position[events_[event].thread];
  }
  bool all_done(const State& s, uint32_t thread) const { return s.position[thread] == threads_[thread].size(); }
  bool finished(const State& s) const {
    for (uint32_t t = 0; t < threads_.size(); ++t)
      if (!all_done(s, t)) return false;
    return true;
  }

  Hold hold(const State& s, uint32_t thread, Place place) const {
    const auto& now = holds_[thread][s.position[thread]];
    auto it = now.find(place);
    return it == now.end() ? Hold{} : it->second;
  }
  template <typename Holds>
  bool some_thread(const State& s, Place place, Holds holds) const {
    for (uint32_t t = 0; t < threads_.size(); ++t)
      if (holds(hold(s, t, place), t)) return true;
    return false;
  }
  int semaphore(const State& s, Place place) const {
    auto start = start_count_.find(place);
    int count = start == start_count_.end() ? 0 : start->second;
    for (uint32_t t = 0; t < threads_.size(); ++t) count += hold(s, t, place).count;
    return count;
  }

  Value evaluate_now(const State& s, trace::ExprId id) const {
    return evaluate(
        trace_, id,
        [&](const trace::Expr& e) { return e.op == Op::Read ? s.read[e.value] : input_bits(e, *inputs_); },
        [&](const trace::Expr& e) { return recorded_leaf(e); });
  }
  Value recorded_leaf(const trace::Expr& e) const {
    if (e.op == Op::Read) return {events_[e.value].value & mask(e.width), true};
    InputVector recorded;
    for (const auto& input : trace_.inputs) recorded.push_back(input.bytes);
    return input_bits(e, recorded);
  }
  static Value input_bits(const trace::Expr& e, const InputVector& inputs) {
    Value value;
    for (unsigned k = 0; k < e.width; k += 8)
      value.bits |= static_cast<uint64_t>(inputs.at(e.value >> 32).at((e.value & 0xffffffff) + k / 8)) << k;
    value.bits &= mask(e.width);
    return value;
  }

  Value read_now(const State& s, const Event& e) const {
    Value value;
    const auto bytes = bytes_of(e);
    for (unsigned k = 0; k < bytes.size(); ++k) {
      value.bits |= static_cast<uint64_t>(s.memory[bytes[k]].bits) << 8 * k;
      value.known &= s.memory[bytes[k]].known;
    }
    return value.known ? value : Value{0, false};
  }

  // --- may this event happen now? The conditions that hold for r too -------------------------------------------------------
  bool possible(const State& s, uint32_t index) const {
    const Event& e = events_[index];
    const Place place{e.object, e.addr};
    for (uint32_t i = 0; i < events_.size(); ++i) {
      const Event& other = events_[i];
      if (other.kind == Kind::Exit && done(s, i)) return false;
      if (other.kind == Kind::Create && other.value == e.thread && !done(s, i)) return false;
      const bool same_object = e.object != trace::kNone && other.object == e.object && i != index;
      if (same_object && other.kind == Kind::Alloc && trace_.objects[e.object].born == i && !done(s, i)) return false;
      if (same_object && other.kind == Kind::Free && index < i && done(s, i)) return false;
      const bool init = other.kind == Kind::SemInit || other.kind == Kind::BarrierInit;
      const bool is_init = e.kind == Kind::SemInit || e.kind == Kind::BarrierInit;
      if ((init || is_init) && i < index && Place{other.object, other.addr} == place && !done(s, i)) return false;
    }
    const auto held_by_other = [&](const Hold& h, uint32_t t) { return h.depth > 0 && t != e.thread; };
    const auto held = [&](const Hold& h, uint32_t) { return h.depth > 0; };
    const auto held_shared_or_not = [&](const Hold& h, uint32_t) { return h.reading > 0 || h.writing > 0; };
    const auto held_for_writing = [&](const Hold& h, uint32_t) { return h.writing > 0; };
    const bool busy = e.value == EBUSY || e.value == ETIMEDOUT;
    switch (e.kind) {
      case Kind::Join: return all_done(s, static_cast<uint32_t>(e.value));
      case Kind::Lock: return !some_thread(s, place, held_by_other);
      case Kind::AtomicBegin: return !some_thread(s, kAtomicSection, held_by_other);
      case Kind::LockFail: return !busy || some_thread(s, place, held);
      case Kind::RdLock: return !some_thread(s, place, held_for_writing);
      case Kind::WrLock: return !some_thread(s, place, held_shared_or_not);
      case Kind::RdLockFail: return !busy || some_thread(s, place, held_for_writing);
      case Kind::WrLockFail: return !busy || some_thread(s, place, held_shared_or_not);
      case Kind::Wake: return e.flags & (trace::kTimeout | trace::kSpurious) || s.signalled.count(index);
      case Kind::SemWait: return semaphore(s, place) > 0;
      case Kind::SemFail: return (e.value != EAGAIN && e.value != ETIMEDOUT) || semaphore(s, place) == 0;
      case Kind::BarrierArrive:
      case Kind::BarrierLeave: return barrier_open(s, index);
      case Kind::OncePass: return once_over(s, index, Kind::OnceEnd);
      case Kind::OnceBegin: return once_over(s, index, Kind::OnceBegin);
      case Kind::Start: case Kind::End: case Kind::Create: case Kind::Detach: case Kind::Yield: case Kind::Read:
      case Kind::Write: case Kind::Rmw: case Kind::External: case Kind::Alloc: case Kind::Free: case Kind::Unlock:
      case Kind::RwUnlock: case Kind::Wait: case Kind::Signal: case Kind::Broadcast: case Kind::SemInit:
      case Kind::SemPost: case Kind::BarrierInit: case Kind::OnceEnd: case Kind::AtomicEnd: case Kind::Branch:
      case Kind::Pin: case Kind::Assert: case Kind::Input: case Kind::Nondet: case Kind::SignalIn: case Kind::SignalOut:
      case Kind::Fork: case Kind::Fault: case Kind::Exit: return true;
    }
    return true;
  }

  bool barrier_open(const State& s, uint32_t index) const {
    const Event& e = events_[index];
    uint32_t serial = trace::kNone;  // thread that was told so
    for (const Event& other : events_)
      if (other.kind == Kind::BarrierLeave && same_generation(e, other) && other.flags & trace::kSerial) serial = other.thread;
    for (uint32_t i = 0; i < events_.size(); ++i) {
      const Event& other = events_[i];
      if (other.kind != Kind::BarrierArrive || other.object != e.object || other.addr != e.addr || i == index) continue;
      const bool must_precede = e.kind == Kind::BarrierLeave ? other.value == e.value
                                                             : other.value < e.value ||
                                                                   (other.value == e.value && serial == e.thread);
      // A reinitialised barrier counts its generations anew; the order with the initialisation settles that.
      if (must_precede && same_life(i, index) && !done(s, i)) return false;
    }
    return true;
  }
  static bool same_generation(const Event& a, const Event& b) {
    return a.object == b.object && a.addr == b.addr && a.value == b.value;
  }
  bool same_life(uint32_t a, uint32_t b) const {
    for (uint32_t i = std::min(a, b); i < std::max(a, b); ++i)
      if (events_[i].kind == Kind::BarrierInit && events_[i].object == events_[a].object && events_[i].addr == events_[a].addr)
        return false;
    return true;
  }

  bool once_over(const State& s, uint32_t index, Kind kind) const {
    for (uint32_t i = 0; i < index; ++i)
      if (events_[i].kind == kind && events_[i].object == events_[index].object && events_[i].addr == events_[index].addr &&
          !done(s, i))
        return false;
    return true;
  }

  // --- may it happen as recorded? What does not bind r ---------------------------------------------------------------------
  bool keeps_path(const State& s, uint32_t index) const {
    const Event& e = events_[index];
    if (binds(e) && e.expr) {
      const Value value = evaluate_now(s, e.expr);
      if (!value.known || value.bits != (e.value & mask(trace_.exprs[e.expr].width))) return false;
    }
    if (reads(e)) {
      const Value value = read_now(s, e);
      if (e.flags & trace::kPinned && (!value.known || value.bits != (e.value & mask(8 * e.size)))) return false;
      const auto bytes = bytes_of(e);
      for (unsigned k = 0; k < bytes.size(); ++k)
        if (e.flags & trace::kTainted && s.memory[bytes[k]].writer != source_[index][k]) return false;
    }
    return true;
  }

  // The pins that directly follow a read-modify-write are part of it.
  bool own_pins_hold(const State& after, uint32_t rmw) const {
    const auto& thread = threads_[events_[rmw].thread];
    for (size_t k = place_in_thread_[rmw] + 1; k < thread.size() && events_[thread[k]].kind == Kind::Pin; ++k)
      if (!keeps_path(after, thread[k])) return false;
    return true;
  }

  // --- and what it does ----------------------------------------------------------------------------------------------------
  void execute(State& s, uint32_t index) const {
    const Event& e = events_[index];
    const auto bytes = reads(e) || writes(e) ? bytes_of(e) : std::vector<uint32_t>{};
    if (reads(e)) s.read[index] = read_now(s, e);
    if (writes(e)) {
      Value value{e.kind == Kind::Rmw ? e.value2 : e.value, true};
      if (e.expr) value = evaluate_now(s, e.expr);
      for (unsigned k = 0; k < bytes.size(); ++k)
        s.memory[bytes[k]] = {static_cast<uint8_t>(value.known ? value.bits >> 8 * k : 0), value.known, index};
    }
    if (e.kind == Kind::Wake) s.signalled.erase(index);
    if (e.kind == Kind::Broadcast)
      for (uint32_t wake : blocked(s, e)) s.signalled.insert(wake);
    ++s.position[e.thread];
  }

  // The Wake events of the threads blocked on a condition variable that nobody has signalled yet.
  std::vector<uint32_t> blocked(const State& s, const Event& signal) const {
    std::vector<uint32_t> wakes;
    for (size_t t = 0; t < threads_.size(); ++t) {
      const uint32_t at = s.position[t];
      if (at == 0 || at == threads_[t].size()) continue;
      const Event& wait = events_[threads_[t][at - 1]];
      const uint32_t wake = threads_[t][at];
      if (wait.kind == Kind::Wait && wait.addr == signal.addr && wait.object == signal.object &&
          events_[wake].kind == Kind::Wake && !s.signalled.count(wake))
        wakes.push_back(wake);
    }
    return wakes;
  }

  // --- all executions ------------------------------------------------------------------------------------------------------
  std::string key(const State& s) const {
    std::string key;
    const auto add = [&](uint64_t word) { key.append(reinterpret_cast<const char*>(&word), 8); };
    for (uint32_t p : s.position) key.push_back(static_cast<char>(p));
    for (const Byte& b : s.memory) add(static_cast<uint64_t>(b.writer) << 16 | b.known << 8 | b.bits);
    for (uint32_t w : s.signalled) add(w);
    key.push_back('/');
    for (uint32_t i = 0; i < events_.size(); ++i)
      if (std::any_of(uses_[i].begin(), uses_[i].end(), [&](uint32_t use) { return done(s, i) && !done(s, use); }))
        add(s.read[i].bits), key.push_back(s.read[i].known);
    return key;
  }

  // Returns whether the whole trace can still execute from here.
  bool visit(State s) {
    // Branches, pins and inputs have no effect, and whether they hold is settled when they come up: execute them at once.
    for (uint32_t t = 0; t < threads_.size(); ++t)
      while (!all_done(s, t)) {
        const uint32_t next = threads_[t][s.position[t]];
        const bool effectless = binds(events_[next]) || events_[next].kind == Kind::Input;
        if (!effectless || !possible(s, next)) break;
        if (!keeps_path(s, next)) {
          if (evaluate_now(s, events_[next].expr).known) truth_->alternates.insert(next);
          break;
        }
        execute(s, next);
      }
    auto [memo, fresh] = seen_.try_emplace(key(s), false);
    if (!fresh) return memo->second;
    if (++truth_->states > limit_) exhausted_ = true;
    if (exhausted_) return false;
    bool completes = finished(s);
    for (uint32_t t = 0; t < threads_.size(); ++t)
      if (!all_done(s, t) && possible(s, threads_[t][s.position[t]]))
        completes |= try_event(s, threads_[t][s.position[t]]);
    return seen_[key(s)] = completes;
  }

  bool try_event(const State& s, uint32_t index) {
    const Event& e = events_[index];
    std::set<EventPair> pairs;
    if (reads(e))
      for (uint32_t byte : bytes_of(e)) pairs.insert({s.memory[byte].writer, index});
    truth_->prefix.insert(pairs.begin(), pairs.end());
    if (!keeps_path(s, index)) return false;

    State after = s;
    execute(after, index);
    if (e.kind == Kind::Rmw && !own_pins_hold(after, index)) return false;
    bool completes = visit(after);
    if (e.kind == Kind::Signal)
      for (uint32_t wake : blocked(s, e)) {
        State woken = after;
        woken.signalled.insert(wake);
        completes |= visit(woken);
      }
    if (completes) truth_->full.insert(pairs.begin(), pairs.end());
    return completes;
  }

  static constexpr Place kAtomicSection{trace::kNone - 1, 0};

  const trace::Trace& trace_;
  const std::vector<Event>& events_;
  const size_t limit_;
  std::vector<std::vector<uint32_t>> threads_;        // by thread: its events
  std::vector<uint32_t> place_in_thread_;             // by event
  std::map<Place, uint32_t> byte_;                    // number of each byte of memory
  std::vector<Byte> initial_;                         // memory at the start
  std::vector<std::vector<uint32_t>> source_;         // by read: where the recording took each byte from
  std::vector<std::vector<uint32_t>> uses_;           // by read: the events whose expressions contain it
  std::vector<std::vector<std::map<Place, Hold>>> holds_;  // by thread and position
  std::map<Place, int> start_count_;                  // semaphores that were there before the recording
  const InputVector* inputs_ = nullptr;
  Truth* truth_ = nullptr;
  std::unordered_map<std::string, bool> seen_;
  bool exhausted_ = false;
};

}  // namespace

std::optional<Truth> enumerate(const trace::Trace& trace, const std::vector<InputVector>& inputs, size_t limit) {
  Truth truth;
  Enumerator enumerator(trace, limit);
  for (const InputVector& input : inputs)
    if (!enumerator.run(input, truth)) return std::nullopt;
  return truth;
}

}  // namespace stem::oracle
