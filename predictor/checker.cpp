#include "predictor/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <unordered_map>

#include "predictor/checker_facts.h"
#include "trace/eval.h"
#include "trace/text.h"

namespace stem::predictor {

using trace::Event;
using trace::Kind;
using trace::Op;

namespace {

using Place = CheckedPlace;

Place place(const Event& e) { return {e.object, e.addr}; }
bool reads(const Event& e) { return e.kind == Kind::Read || e.kind == Kind::Rmw; }
bool writes(const Event& e) { return e.kind == Kind::Write || e.kind == Kind::Rmw || e.kind == Kind::External; }
bool decides(const Event& e) { return e.kind == Kind::Branch || e.kind == Kind::Pin || e.kind == Kind::Assert; }
bool synchronises(const Event& e) { return (trace::is_visible(e.kind) && !reads(e) && !writes(e)) || e.kind == Kind::Exit; }
bool attempt_met_holder(const Event& e) { return e.value == EBUSY || e.value == ETIMEDOUT; }

using MaybeBits = std::optional<uint64_t>;  // nothing: unknown

struct Cell {
  uint8_t bits = 0;
  bool known = false;
  uint32_t writer = kInitial;
};
struct Mutex {
  trace::ThreadId owner = trace::kNone;
  uint64_t depth = 0;
};
struct RwLock {
  trace::ThreadId writer = trace::kNone;
  std::map<trace::ThreadId, uint32_t> readers;
};

}  // namespace

class WitnessRun {
 public:
  WitnessRun(const trace::Trace& trace, const Checker::Static& facts, const Witness& witness, Meaning meaning, bool alternate = false)
      : trace_(trace), facts_(facts), witness_(witness), meaning_(meaning), alternate_(alternate), position_(trace.threads.size()) {}

  MaybeBits decided;  // by the branch that the schedule ends with

  std::optional<Rejection> run() {
    std::string why = prepare();
    if (!why.empty()) return Rejection{0, why};
    if (auto rejection = begin_as_recorded()) return rejection;
    for (uint32_t step = begin_; step < witness_.schedule.size(); ++step) {
      const uint32_t index = witness_.schedule[step];
      why = one(index, meaning_ == Meaning::Prefix && step + 1 == witness_.schedule.size());
      if (why.empty()) continue;
      return reject(step, index, why);
    }
    const auto last = static_cast<uint32_t>(witness_.schedule.size() - 1);
    if (alternate_ && !decided) return Rejection{last, "what the branch depends on is unknown here"};
    if (alternate_ && *decided == recorded_decision()) return Rejection{last, "the branch decides as in the recording"};
    if (!alternate_ && !shown_) return Rejection{last, "the read does not take a byte from the write"};
    if (!sends_.empty()) return Rejection{last, "a wake-up names a signal that is not in the schedule"};
    return std::nullopt;
  }

  // The first event of the recorded order that is not as the rules have it, synchronisation aside.
  uint32_t recorded_until() {
    const auto size = static_cast<uint32_t>(trace_.events.size());
    for (uint32_t i = 0; i < size; ++i) {
      const Event& e = trace_.events[i];
      if (!in_its_place(i).empty() || !object_lives(i).empty()) return i;
      if (reads(e)) {
        if (!read(i, false).empty()) return i;
        const auto leaf = leaves_.find(i);
        if (leaf == leaves_.end() || leaf->second != (e.value & trace::width_mask(8u * e.size))) return i;
      }
      if (writes(e)) {
        write(i);
        if (e.expr && evaluate(e.expr) != ((e.kind == Kind::Rmw ? e.value2 : e.value) & trace::width_mask(trace_.exprs[e.expr].width))) return i;
      }
      if (decides(e) && !holds(e).empty()) return i;
      ++position_[e.thread];
    }
    return size;
  }

 private:
  Rejection reject(uint32_t step, uint32_t index, const std::string& why) const {
    const Event& e = trace_.events[index];
    return {step, fmt::format("{}, {} (event {}): {}", trace::describe(trace_.threads[e.thread], trace_.sites[e.site]), trace::kind_name(e.kind), index, why)};
  }

  // A long beginning in the recorded order, with the recorded inputs: its values are known to be right.
  std::optional<Rejection> begin_as_recorded() {
    if (witness_.schedule.size() <= facts_.much || witness_.schedule[facts_.much] != facts_.much) return std::nullopt;
    for (size_t i = 0; i < trace_.inputs.size(); ++i)
      if (witness_.inputs[i].bytes != trace_.inputs[i].bytes) return std::nullopt;
    std::call_once(facts_.recording_known, [&] { learn_recording(); });
    recording_ = &facts_.recording;
    const uint32_t most = std::min({recording_->holds_until, witness_.pair.read, static_cast<uint32_t>(witness_.schedule.size() - 1)});
    while (begin_ < most && witness_.schedule[begin_] == begin_) ++begin_;
    for (const CheckedRecording::Turn& turn : recording_->synchronisation) {
      if (turn.event >= begin_) break;
      position_[trace_.events[turn.event].thread] = turn.position;
      if (std::string why = exited_ ? "the run is over" : synchronise(turn.event); !why.empty()) return reject(turn.event, turn.event, why);
      ++position_[trace_.events[turn.event].thread];
    }
    for (size_t t = 0; t < position_.size(); ++t) {
      const auto& events = facts_.threads[t];
      position_[t] = static_cast<uint32_t>(std::lower_bound(events.begin(), events.end(), begin_) - events.begin());
    }
    return std::nullopt;
  }

  void learn_recording() const {
    CheckedRecording& known = facts_.recording;
    Witness as_it_was;
    as_it_was.inputs = trace_.inputs;
    known.holds_until = WitnessRun(trace_, facts_, as_it_was, Meaning::Prefix).recorded_until();
    std::vector<uint32_t> position(trace_.threads.size(), 0);
    for (uint32_t i = 0; i < trace_.events.size(); ++i) {
      const Event& e = trace_.events[i];
      if (synchronises(e)) known.synchronisation.push_back({i, position[e.thread]});
      ++position[e.thread];
      if (!writes(e) || e.size == 0) continue;
      const uint64_t first = e.addr / 8, last = (e.addr + e.size - 1) / 8;
      known.writes[{e.object, first}].push_back(i);
      if (last != first) known.writes[{e.object, last}].push_back(i);
    }
    known.reads_until.assign(trace_.exprs.size(), 0);
    for (size_t i = 1; i < trace_.exprs.size(); ++i) {
      const trace::Expr& x = trace_.exprs[i];
      uint32_t until = x.op == Op::Read ? static_cast<uint32_t>(x.value) + 1 : 0;
      for (trace::ExprId child : {x.a, x.b, x.c}) until = std::max(until, known.reads_until[child]);
      known.reads_until[i] = until;
    }
  }

  // Whether the expression has the value that it had in the recording.
  bool as_recorded(trace::ExprId id) const { return begin_ > 0 && recording_->reads_until[id] <= begin_; }

  std::string prepare() {
    if (witness_.schedule.empty()) return "the schedule is empty";
    for (uint32_t index : witness_.schedule)
      if (index >= trace_.events.size()) return fmt::format("there is no event {}", index);
    if (witness_.pair.read >= trace_.events.size()) return "r is not an event";
    const Event& r = trace_.events[witness_.pair.read];
    if (alternate_ ? !decides(r) || !r.expr : !reads(r)) return alternate_ ? "it is not a decision that anything can change" : "r is not a read";
    if (meaning_ == Meaning::Prefix && witness_.schedule.back() != witness_.pair.read) return "the schedule does not end with r";
    if (meaning_ == Meaning::Full && witness_.schedule.size() != trace_.events.size()) return "the schedule is not the whole trace";
    if (witness_.inputs.size() != trace_.inputs.size()) return "not as many inputs as the trace has";
    for (size_t i = 0; i < trace_.inputs.size(); ++i)
      if (witness_.inputs[i].bytes.size() != trace_.inputs[i].bytes.size())
        return fmt::format("input {} has another size", trace_.inputs[i].name);
    for (const Wakeup& wakeup : witness_.wakeups)
      if (!sends_.emplace(wakeup.signal, wakeup.wake).second) return fmt::format("event {} wakes two waiters", wakeup.signal);
    return {};
  }

  // Executes one event; says why it cannot. `target`: it is r under PREFIX, and what it reads is free.
  std::string one(uint32_t index, bool target) {
    const Event& e = trace_.events[index];
    std::string why = in_its_place(index);
    if (why.empty()) why = object_lives(index);
    if (why.empty()) why = synchronise(index);
    if (!why.empty()) return why;
    if (reads(e)) why = read(index, target);
    if (target && alternate_) decided = evaluate(e.expr);
    if (!why.empty() || target) return why;
    if (writes(e)) write(index);
    if (e.kind == Kind::Rmw) why = own_pins(index);
    if (decides(e) && !belongs_to_target(index)) why = holds(e);
    ++position_[e.thread];
    return why;
  }

  uint64_t recorded_decision() const {
    const Event& e = trace_.events[witness_.pair.read];
    return e.value & trace::width_mask(trace_.exprs[e.expr].width);
  }
  // The assertion noted with the branch that tests it: the same condition, or its negation, right before it.
  bool belongs_to_target(uint32_t index) const {
    const Event& e = trace_.events[index];
    const Event& target = trace_.events[witness_.pair.read];
    if (!alternate_ || e.kind != Kind::Assert || target.kind != Kind::Branch || e.thread != target.thread) return false;
    const auto& thread = facts_.threads[e.thread];
    if (position_[e.thread] + 1 >= thread.size() || thread[position_[e.thread] + 1] != witness_.pair.read) return false;
    const trace::Expr& x = trace_.exprs[e.expr];
    return e.expr == target.expr || (x.op == Op::Eq && (x.a == target.expr || x.b == target.expr));
  }

  std::string in_its_place(uint32_t index) const {
    const Event& e = trace_.events[index];
    const auto& thread = facts_.threads[e.thread];
    if (exited_) return "the run is over";
    if (position_[e.thread] >= thread.size() || thread[position_[e.thread]] != index)
      return "it is not the next event of its thread";
    if (position_[e.thread] == 0 && facts_.creator[e.thread] != trace::kNone && !executed(facts_.creator[e.thread]))
      return "its thread has not been created";
    return {};
  }
  bool executed(uint32_t index) const {
    // The position of an event in its thread is found by search: a thread's events ascend.
    const auto& thread = facts_.threads[trace_.events[index].thread];
    const uint32_t at = position_[trace_.events[index].thread];
    return at > 0 && thread[at - 1] >= index;
  }

  std::string object_lives(uint32_t index) {
    const Event& e = trace_.events[index];
    if (e.object == trace::kNone) return {};
    const uint32_t born = trace_.objects[e.object].born;
    if (born != trace::kNone && born != index && !executed(born)) return "its object has not been allocated";
    auto freed = freed_.find(e.object);
    if (freed != freed_.end() && index < freed->second) return "its object has been released";
    if (e.kind == Kind::Free) freed_[e.object] = index;
    return {};
  }

  // --- values --------------------------------------------------------------------------------------------------------------
  Cell& cell(Place byte) {
    auto [it, fresh] = memory_.try_emplace(byte);
    if (!fresh) return it->second;
    if (begin_ > 0 && recorded_write(byte, it->second)) return it->second;
    auto first = facts_.first_read.find(byte);
    if (first != facts_.first_read.end()) it->second = {first->second, true, kInitial};
    if (byte.first < trace_.objects.size()) {
      const trace::Object& object = trace_.objects[byte.first];
      const uint64_t offset = byte.second - object.base;
      if (object.zeroed) it->second = {0, true, kInitial};
      if (offset < object.initial.size()) it->second = {object.initial[offset], true, kInitial};
    }
    return it->second;
  }

  // What the recording wrote there last before the witness left it.
  bool recorded_write(Place byte, Cell& to) const {
    const auto found = recording_->writes.find({byte.first, byte.second / 8});
    if (found == recording_->writes.end()) return false;
    const std::vector<uint32_t>& events = found->second;
    for (auto it = std::lower_bound(events.begin(), events.end(), begin_); it != events.begin();) {
      const Event& e = trace_.events[*--it];
      if (byte.second - e.addr >= e.size) continue;
      const uint64_t bits = e.kind == Kind::Rmw ? e.value2 : e.value;
      to = {static_cast<uint8_t>(bits >> 8 * (byte.second - e.addr)), true, *it};
      return true;
    }
    return false;
  }

  std::string read(uint32_t index, bool target) {
    const Event& e = trace_.events[index];
    uint64_t bits = 0;
    bool known = true, source_kept = true;
    for (unsigned k = 0; k < e.size; ++k) {
      const Cell& c = cell({e.object, e.addr + k});
      bits |= static_cast<uint64_t>(c.bits) << 8 * k;
      known &= c.known;
      if (index == witness_.pair.read && c.writer == witness_.pair.write) shown_ = true;
      if (e.flags & trace::kTainted && c.writer != facts_.source.at(index)[k]) source_kept = false;
    }
    if (known) leaves_[index] = bits;
    if (target) return {};
    if (!source_kept) return "a read of an object that unseen code writes takes another value than recorded";
    const uint64_t recorded = e.value & trace::width_mask(8u * e.size);
    if (e.flags & trace::kPinned && (!known || bits != recorded)) return "a pinned read takes another value than recorded";
    return {};
  }

  void write(uint32_t index) {
    const Event& e = trace_.events[index];
    MaybeBits bits = e.kind == Kind::Rmw ? e.value2 : e.value;
    if (e.expr) bits = evaluate(e.expr);
    for (unsigned k = 0; k < e.size; ++k)
      cell({e.object, e.addr + k}) = {static_cast<uint8_t>(bits.value_or(0) >> 8 * k), bits.has_value(), index};
  }

  std::string holds(const Event& e) {
    if (!e.expr) return {};
    const MaybeBits bits = evaluate(e.expr);
    const uint64_t wanted = e.value & trace::width_mask(trace_.exprs[e.expr].width);
    if (!bits) return "what it depends on is unknown here";
    if (*bits != wanted) return fmt::format("it gives {} here, {} in the recording", *bits, wanted);
    return {};
  }

  // The pins that directly follow a read-modify-write are part of it (a compare-and-swap that succeeded).
  std::string own_pins(uint32_t index) {
    const auto& thread = facts_.threads[trace_.events[index].thread];
    for (size_t i = position_[trace_.events[index].thread] + 1; i < thread.size(); ++i) {
      const Event& pin = trace_.events[thread[i]];
      if (pin.kind != Kind::Pin) break;
      if (std::string why = holds(pin); !why.empty()) return why;
    }
    return {};
  }

  // Each node once: a read keeps its value for the rest of the execution.
  MaybeBits evaluate(trace::ExprId id) {
    if (as_recorded(id)) return facts_.recorded[id];
    if (auto it = nodes_.find(id); it != nodes_.end()) return it->second;
    std::vector<trace::ExprId> stack{id};
    while (!stack.empty()) {
      const trace::ExprId next = stack.back();
      const trace::Expr& e = trace_.exprs[next];
      bool ready = true;
      for (trace::ExprId child : {e.a, e.b, e.c})
        if (child && !as_recorded(child) && !nodes_.count(child)) ready = false, stack.push_back(child);
      if (!ready) continue;
      stack.pop_back();
      nodes_[next] = node(e);
    }
    return nodes_.at(id);
  }
  MaybeBits node(const trace::Expr& e) {
    if (e.op == Op::Const) return e.value & trace::width_mask(e.width);
    if (e.op == Op::Input) return trace::input_value(witness_.inputs, e.value, e.width);
    if (e.op == Op::Read) {
      auto it = leaves_.find(static_cast<uint32_t>(e.value));
      return it == leaves_.end() ? MaybeBits{} : MaybeBits{it->second & trace::width_mask(e.width)};
    }
    uint64_t operand[3] = {0, 0, 0};
    unsigned width[3] = {0, 0, 0};
    const trace::ExprId child[3] = {e.a, e.b, e.c};
    for (int i = 0; i < 3; ++i) {
      if (!child[i]) continue;
      const MaybeBits bits = as_recorded(child[i]) ? MaybeBits{facts_.recorded[child[i]]} : nodes_.at(child[i]);
      if (!bits || (e.op == Op::Opaque && *bits != facts_.recorded[child[i]])) return {};
      operand[i] = *bits, width[i] = trace_.exprs[child[i]].width;
    }
    if (e.op == Op::Opaque) return e.value & trace::width_mask(e.width);
    return trace::apply(e.op, e.width, operand[0], operand[1], operand[2], width[0], width[1], e.value);
  }

  // --- synchronisation -----------------------------------------------------------------------------------------------------
  std::string held_by(trace::ThreadId owner) const { return fmt::format("{} holds it", trace_.threads[owner].path); }

  std::string synchronise(uint32_t index) {
    const Event& e = trace_.events[index];
    const Place at = place(e);
    switch (e.kind) {
      case Kind::Join:
        if (e.value < facts_.threads.size() && position_[e.value] != facts_.threads[e.value].size())
          return fmt::format("{} has not ended", trace_.threads[e.value].path);
        return {};
      case Kind::Exit: exited_ = true; return {};
      case Kind::Lock: waits_for_[{e.thread, e.addr}] = at; return acquire(mutexes_[at], e.thread, e.value);
      case Kind::Unlock: return release(mutexes_[at], e.thread, e.value);
      case Kind::AtomicBegin: return acquire(atomic_, e.thread, atomic_.depth + 1);
      case Kind::AtomicEnd: return release(atomic_, e.thread, atomic_.depth - 1);
      case Kind::LockFail:
        return attempt_met_holder(e) && mutexes_[at].depth == 0 ? "the attempt failed, but nobody holds the lock here" : "";
      case Kind::RdLock: case Kind::WrLock: case Kind::RwUnlock: case Kind::RdLockFail: case Kind::WrLockFail:
        return read_write_lock(e, rwlocks_[at]);
      case Kind::Wait: {
        blocked_[e.thread] = at;
        auto mutex = waits_for_.find({e.thread, e.value});
        return mutex == waits_for_.end() ? std::string{} : release(mutexes_[mutex->second], e.thread, 0);
      }
      case Kind::Wake:
        blocked_.erase(e.thread);
        if (e.flags & (trace::kTimeout | trace::kSpurious)) return {};
        return enabled_.erase(index) ? "" : "nobody has woken it";
      case Kind::Signal: return signal(index, at);
      case Kind::Broadcast:
        for (const auto& [thread, condition] : blocked_)
          if (condition == at && position_[thread] < facts_.threads[thread].size())
            enabled_.insert(facts_.threads[thread][position_[thread]]);
        return {};
      case Kind::SemInit: case Kind::SemPost: case Kind::SemWait: case Kind::SemFail: return semaphore(index, at);
      case Kind::BarrierInit: case Kind::BarrierArrive: case Kind::BarrierLeave: return barrier(index, at);
      case Kind::OnceBegin: case Kind::OnceEnd: case Kind::OncePass: return once(index, at);
      case Kind::Start: case Kind::End: case Kind::Create: case Kind::Detach: case Kind::Yield: case Kind::Read:
      case Kind::Write: case Kind::Rmw: case Kind::External: case Kind::Alloc: case Kind::Free: case Kind::Branch:
      case Kind::Pin: case Kind::Assert: case Kind::Input: case Kind::Nondet: case Kind::SignalIn: case Kind::SignalOut:
      case Kind::Fork: case Kind::Fault: return {};
    }
    return {};
  }

  std::string acquire(Mutex& m, trace::ThreadId thread, uint64_t depth) {
    if (m.depth > 0 && m.owner != thread) return held_by(m.owner);
    m = {thread, depth};
    return {};
  }
  std::string release(Mutex& m, trace::ThreadId thread, uint64_t depth) {
    if (m.owner != thread) return {};  // released by another thread than the owner: the recording's business
    m.depth = depth;
    if (depth == 0) m.owner = trace::kNone;
    return {};
  }

  std::string read_write_lock(const Event& e, RwLock& l) {
    const bool read = !l.readers.empty(), written = l.writer != trace::kNone;
    switch (e.kind) {
      case Kind::RdLock:
        if (written) return held_by(l.writer);
        ++l.readers[e.thread];
        return {};
      case Kind::WrLock:
        if (written || read) return held_by(written ? l.writer : l.readers.begin()->first);
        l.writer = e.thread;
        return {};
      case Kind::RwUnlock:
        if (l.writer == e.thread) l.writer = trace::kNone;
        else if (auto it = l.readers.find(e.thread); it != l.readers.end() && --it->second == 0) l.readers.erase(it);
        return {};
      case Kind::RdLockFail:
        return attempt_met_holder(e) && !written ? "the attempt failed, but nobody writes under the lock here" : "";
      default:  // WrLockFail
        return attempt_met_holder(e) && !written && !read ? "the attempt failed, but nobody holds the lock here" : "";
    }
  }

  std::string signal(uint32_t index, Place at) {
    auto it = sends_.find(index);
    if (it == sends_.end()) return {};
    const uint32_t wake = it->second;
    sends_.erase(it);
    for (const auto& [thread, condition] : blocked_) {
      if (condition != at || position_[thread] == facts_.threads[thread].size()) continue;
      if (facts_.threads[thread][position_[thread]] == wake)
        return enabled_.insert(wake).second ? "" : "the waiter it is said to wake was woken before";
    }
    return fmt::format("the waiter it is said to wake (event {}) does not wait here", wake);
  }

  // Initialisations keep their recorded order with all uses.
  std::string keeps_init_order(uint32_t index, Place at) {
    const Checker::Static::Rank& rank = facts_.rank.at(index);
    const Kind kind = trace_.events[index].kind;
    Checker::Static::Rank& done = done_[at];
    const bool init = kind == Kind::SemInit || kind == Kind::BarrierInit;
    if (init ? done.uses != rank.uses : done.inits < rank.inits) return "it comes on the wrong side of an initialisation";
    ++done.uses;
    if (init) ++done.inits;
    return {};
  }

  std::string semaphore(uint32_t index, Place at) {
    const Event& e = trace_.events[index];
    if (std::string why = keeps_init_order(index, at); !why.empty()) return why;
    auto [it, fresh] = counts_.try_emplace(at, 0);
    if (auto start = facts_.start_count.find(at); fresh && start != facts_.start_count.end()) it->second = start->second;
    int64_t& count = it->second;
    if (e.kind == Kind::SemInit) count = static_cast<int64_t>(e.value);
    if (e.kind == Kind::SemPost) ++count;
    if (e.kind == Kind::SemWait && count-- <= 0) return "the semaphore's count is 0 here";
    if (e.kind == Kind::SemFail && (e.value == EAGAIN || e.value == ETIMEDOUT) && count != 0)
      return "the attempt failed, but the semaphore's count is not 0 here";
    return {};
  }

  std::string barrier(uint32_t index, Place at) {
    const Event& e = trace_.events[index];
    if (std::string why = keeps_init_order(index, at); !why.empty()) return why;
    if (e.kind == Kind::BarrierInit) return {};
    const uint32_t number = facts_.rank.at(index).generation;
    const Checker::Static::Generation& generation = facts_.generations[number];
    const auto complete = [&](uint32_t g) { return arrived_[g] == facts_.generations[g].arrivals; };
    if (e.kind == Kind::BarrierLeave) return complete(number) ? "" : "not all threads have arrived at the barrier";
    if (generation.previous != trace::kNone && !complete(generation.previous)) return "the generation before is not complete";
    if (generation.serial == e.thread && arrived_[number] + 1 != generation.arrivals)
      return "the serial thread does not arrive last";
    ++arrived_[number];
    return {};
  }

  std::string once(uint32_t index, Place at) {
    const Checker::Static::Rank& rank = facts_.rank.at(index);
    Checker::Static::Rank& done = done_[at];
    const Kind kind = trace_.events[index].kind;
    if (kind == Kind::OncePass && done.ends < rank.ends) return "the initialiser has not run";
    if (kind == Kind::OnceBegin && done.begins < rank.begins) return "another thread runs the initialiser first";
    if (kind == Kind::OnceBegin) ++done.begins;
    if (kind == Kind::OnceEnd) ++done.ends;
    return {};
  }

  const trace::Trace& trace_;
  const Checker::Static& facts_;
  const Witness& witness_;
  const Meaning meaning_;
  const bool alternate_;                               // the schedule ends with a branch
  std::vector<uint32_t> position_;                     // by thread
  bool exited_ = false, shown_ = false;
  uint32_t begin_ = 0;                                 // so many events were as recorded, and not executed again
  const CheckedRecording* recording_ = nullptr;        // if begin_ > 0
  ByPlace<Cell> memory_;
  std::unordered_map<uint32_t, uint64_t> leaves_;      // by read: what it gave, if known
  std::unordered_map<trace::ExprId, MaybeBits> nodes_;
  std::unordered_map<uint32_t, uint32_t> freed_;       // by object: its Free
  ByPlace<Mutex> mutexes_;
  Mutex atomic_;
  ByPlace<RwLock> rwlocks_;
  std::map<std::pair<trace::ThreadId, uint64_t>, Place> waits_for_;  // a Wait names its mutex by address
  std::map<trace::ThreadId, Place> blocked_;           // on which condition variable
  std::set<uint32_t> enabled_;                         // Wake events
  std::unordered_map<uint32_t, uint32_t> sends_;       // by signal: the Wake it goes to
  ByPlace<int64_t> counts_;
  ByPlace<Checker::Static::Rank> done_;
  std::unordered_map<uint32_t, uint32_t> arrived_;     // by barrier generation
};

Checker::Checker(const trace::Trace& trace, uint32_t much) : trace_(trace), static_(std::make_unique<Static>(trace, much)) {}
Checker::~Checker() = default;
Checker::Checker(Checker&&) noexcept = default;

std::optional<Rejection> Checker::check(const Witness& witness, Meaning meaning) const {
  return WitnessRun(trace_, *static_, witness, meaning).run();
}

std::optional<Rejection> Checker::check_alternate(const Witness& witness, uint64_t& decided) const {
  WitnessRun run(trace_, *static_, witness, Meaning::Prefix, true);
  std::optional<Rejection> rejection = run.run();
  if (!rejection) decided = *run.decided;
  return rejection;
}

}  // namespace stem::predictor
