// Events, expressions and the tables around them: what every recorder produces and every analysis consumes.
//
// An execution is one sequence of events whose order is that of the visible operations (sequential consistency).
// Expressions are a DAG of bit-vector operations over the reads and inputs of the run. They are used by writes (the value
// written), branches, assertions, and pins ("from here on this trace is only valid if expression e equals value v").
// Whatever a recorder does not model it pins, so an expression of 0 always means: does not depend on anything free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stem::trace {

enum class Kind : uint8_t {
#define STEM_EVENT(Name, text, visible) Name,
#include "trace/events.def"
};

enum class Op : uint8_t {
#define STEM_OP(Name, text, arity) Name,
#include "trace/ops.def"
};

const char* kind_name(Kind kind);
bool is_visible(Kind kind);
const char* op_name(Op op);
int op_arity(Op op);

// Bits of Event::flags.
enum Flag : uint16_t {
  kAtomic = 1 << 0,    // an atomic access
  kTry = 1 << 1,       // a try operation
  kTimed = 1 << 2,     // an operation with a deadline
  kTimeout = 1 << 3,   // it ran out of time
  kSpurious = 1 << 4,  // woke without a signal
  kStack = 1 << 5,     // Alloc: a local variable
  kZeroed = 1 << 6,    // Alloc: memory starts as zero
  kSerial = 1 << 7,    // BarrierLeave: PTHREAD_BARRIER_SERIAL_THREAD
  kPinned = 1 << 8,    // Read, Rmw: the value read is pinned at once (its site uses it in ways we do not model)
  kTainted = 1 << 9,   // the object was written by code that no recorder saw
  kSpin = 1 << 10,     // Lock, Unlock: a spinlock
  kFresh = 1 << 11,    // External: nobody was seen to write there since the object began; perhaps nobody has
};

using ExprId = uint32_t;    // index into Trace::exprs; 0 is "no expression" (exprs[0] is a placeholder)
using ThreadId = uint32_t;  // index into Trace::threads; 0 is the main thread
using SiteId = uint32_t;    // index into Trace::sites; 0 is "unknown site"
constexpr uint32_t kNone = UINT32_MAX;

struct Event {
  uint64_t addr = 0;
  uint64_t value = 0;
  uint64_t value2 = 0;
  ThreadId thread = 0;
  SiteId site = 0;
  ExprId expr = 0;         // Write, Rmw: what was written; Branch, Pin, Assert: what was decided
  ExprId leaf = 0;         // Read, Rmw: the Op::Read node of this event, 0 if nothing refers to it
  uint32_t object = kNone; // index into Trace::objects of what addr lies in
  uint32_t variable = kNone; // index into Trace::variables (memory accesses)
  uint16_t flags = 0;
  Kind kind = Kind::Start;
  uint8_t size = 0;        // bytes, 1 to 8 (memory accesses)

  bool operator==(const Event&) const = default;
};

struct Expr {
  Op op = Op::Const;
  uint8_t width = 0;  // bits of the result
  ExprId a = 0, b = 0, c = 0;
  uint64_t value = 0;

  bool operator==(const Expr&) const = default;
};

// A static program point. The key is structural (function, kind, variable, ordinal among its like), so it survives edits
// elsewhere and is the same in every build of the same source.
struct Site {
  uint64_t key = 0;
  std::string file;      // as the compiler was given it, made absolute against the compilation directory
  uint32_t line = 0;
  uint32_t column = 0;
  std::string function;  // as the programmer would write it
  std::string text;      // the variable or operation as the programmer would write it: q->head, table[i]
  std::string path;      // field path below the innermost object the access names: .head, [].next

  bool operator==(const Site&) const = default;
};

struct Thread {
  std::string path;        // creation path: "main", "main/1" for its first child, "main/1/2"; independent of scheduling
  ThreadId parent = kNone;
  std::string start;       // the function it runs

  bool operator==(const Thread&) const = default;
};

enum class ObjectKind : uint8_t { Unknown, Global, Heap, Stack, Tls, Sync };

// A piece of memory during one life: a freed and reused address is another object.
struct Object {
  ObjectKind kind = ObjectKind::Unknown;
  uint64_t base = 0;
  uint64_t size = 0;
  std::string name;        // global: linkage name; heap: "heap(function:line)" with a short call string; stack: "function::name"
  uint32_t born = kNone;   // index of its Alloc event; kNone when it was there from the start
  SiteId site = 0;         // where it was allocated
  std::string identity;    // equal in two runs for the same object: name, plus thread path and ordinal where there are many
  bool zeroed = false;     // its memory starts as zero (.bss, calloc)
  std::vector<uint8_t> initial;  // what its memory starts with, where known (.data); empty otherwise

  bool operator==(const Object&) const = default;
};

struct Input {
  std::string name;
  std::vector<uint8_t> bytes;

  bool operator==(const Input&) const = default;
};

// One answer of the outside world, fed back on replay: kind ("time", "getrandom", "read"), and the bytes.
struct Nondet {
  std::string what;
  std::vector<uint8_t> bytes;

  bool operator==(const Nondet&) const = default;
};

enum class Outcome : uint8_t { Exited, Signalled, Deadlock, Livelock, Diverged, AssertFailed, Truncated };
const char* outcome_name(Outcome outcome);

struct Meta {
  std::string recorder;              // "compiled", "valgrind", "pin"
  std::string program;               // path of the executable
  std::string build_id;              // hex
  std::vector<std::string> argv;
  std::string cwd;
  std::string mode;                  // "default", "random", "pct", "guided", "parallel"
  uint64_t seed = 0;
  bool semantics = true;             // false: no expressions were recorded
  std::map<std::string, std::string> options;  // what of the run was declared an input: symbolic-argv, ... of trace/plan.h

  bool operator==(const Meta&) const = default;
};

// A whole run in memory. For traces too large for that, see trace/reader.h.
struct Trace {
  Meta meta;
  std::vector<Site> sites{1};
  std::vector<Thread> threads;
  std::vector<Object> objects;
  std::vector<std::string> variables;
  std::vector<Input> inputs;
  std::vector<Nondet> nondets;
  std::vector<Expr> exprs{1};
  std::vector<Event> events;
  std::vector<std::string> messages;  // what the run had to say (a deadlock, a divergence): JSON, see tracer/launch/message.h
  Outcome outcome = Outcome::Truncated;
  int exit_code = 0;  // or the signal

  bool operator==(const Trace&) const = default;
};

}  // namespace stem::trace
