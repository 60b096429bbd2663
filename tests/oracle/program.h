// Random small multithreaded programs: what they are made of, how they run, and what a recorder would have written.
//
// A program is structured (branches nest, locks bracket their bodies), so that it can be shrunk by removing statements.
// Locals are 32-bit and start at 0; a load puts a shared variable, cut or extended, into a local.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oracle/enumerate.h"
#include "trace/event.h"

namespace stem::oracle {

// xorshift: the same sequence everywhere, unlike the distributions of the standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull) {}
  uint32_t below(uint32_t n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<uint32_t>((state_ >> 16) % n);
  }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

struct Atom {
  enum class Kind : uint8_t { Const, Local, Input } kind = Kind::Const;
  uint32_t value = 0;  // the constant, or the number of the local or input
};

struct Term {  // one operation; Op::Const stands for "just a"
  trace::Op op = trace::Op::Const;
  Atom a, b;
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind : uint8_t {
    Load, Store, FetchAdd, Exchange, Cas,     // memory: variable, local, term; Cas: expects a, stores b of the term
    Pin, Opaque, If,                          // term; Opaque: local = f(local)
    Locked, TryLocked,                        // object: mutex; body, otherwise (TryLocked failed)
    ReadLocked, WriteLocked, TryWriteLocked,  // object: read-write lock
    Wait, TimedWait, Signal, Broadcast,       // object: condition variable; its mutex is the one of the same number
    SemPost, SemWait, SemTryWait,             // object: semaphore
    Barrier, Once, Atomic, Yield,             // object; Once, Atomic: body
    ExternalWrite, Alloc, Free,               // variable
    Create, Join,                             // object: worker
  };
  Kind kind = Kind::Load;
  uint32_t variable = 0;
  uint32_t local = 0;
  uint32_t object = 0;
  bool pinned = false;  // Load, FetchAdd: a recorder that does not model the uses
  Term term;
  Block body, otherwise;
  uint32_t site = 0;  // unique in the program
};

struct Variable {
  uint32_t region = 0;  // 0: global memory, known at the start; 1: heap; 2: written by code nobody records
  uint32_t offset = 0;
  uint32_t size = 1;
};

struct Program {
  std::vector<Variable> variables;
  std::vector<uint32_t> inputs;      // by input: how many values it can take (a pin says so)
  std::vector<uint32_t> semaphores;  // initial counts
  std::vector<uint32_t> barriers;    // parties
  std::vector<Block> threads;        // 0 is main
};

Program generate(uint64_t seed);
std::string print(const Program& program);
std::string emit_c(const Program& program);  // the same program for a compiler: oracle/emit.cpp

// Runs it once; the seed chooses schedule and inputs. A deadlock is a run like any other.
trace::Trace interpret(const Program& program, uint64_t seed);

// Runs it as a recording of its C did, thread by thread.
struct Followed {
  std::string wrong;                    // where the two first differ, or nothing
  trace::Trace trace;                   // the same execution, recorded with all that the program means
  std::map<uint32_t, uint32_t> events;  // of the recording -> of that trace
};
Followed follow(const Program& program, const trace::Trace& recorded);

// All inputs that can matter.
std::vector<InputVector> all_inputs(const Program& program);

}  // namespace stem::oracle
