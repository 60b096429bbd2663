// A program of the oracle as C: what it does when a compiler and a recorder have it, not only when it is interpreted.
//
// Every statement stands under its own number (#line N "oracle.c"), so a recorded event names its statement. The shared
// variables are volatile parts of one array each, some unaligned and overlapping, so that every access stays one access
// at any -O. What is not the program's - inputs and thread handles - is in variables of other names. The heap block
// travels as the threads' argument, so that finding it is no access. A main that ends leaves its threads running.
//
// With stem-cc inputs are inputs; any other compiler needs -I for <stem.h>, or has them 0 without it.
#include <fmt/format.h>

#include <algorithm>

#include "oracle/program.h"

namespace stem::oracle {

using trace::Op;
using Kind = Statement::Kind;

namespace {

constexpr const char* kHead = R"(#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#if __has_include(<stem.h>)
#include <stem.h>
#else
#define stem_input(address, size, name) ((void)0)
#define stem_assume(condition) ((void)0)
#endif
typedef volatile uint8_t __attribute__((may_alias)) u1;
typedef volatile uint16_t __attribute__((may_alias, aligned(1))) u2;
typedef volatile uint32_t __attribute__((may_alias, aligned(1))) u4;
typedef volatile uint64_t __attribute__((may_alias, aligned(1))) u8;
static _Alignas(64) unsigned char memory[16] __attribute__((used)), foreign[16] __attribute__((used)); /* never read-only */
static pthread_mutex_t mutex0 = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, mutex1 = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t atomics = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock0 = PTHREAD_RWLOCK_INITIALIZER, rwlock1 = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond0 = PTHREAD_COND_INITIALIZER, cond1 = PTHREAD_COND_INITIALIZER;
static pthread_once_t once0 = PTHREAD_ONCE_INIT, once1 = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier0, barrier1;
static sem_t sem0, sem1, never; /* posted */
static const struct timespec past;
#ifdef __STEM__
void __VERIFIER_atomic_begin(void);
void __VERIFIER_atomic_end(void);
#else
#define __VERIFIER_atomic_begin() pthread_mutex_lock(&atomics)
#define __VERIFIER_atomic_end() pthread_mutex_unlock(&atomics)
#endif
/* Every operation has a result for every operand. */
static inline uint32_t op_udiv(uint32_t a, uint32_t b) { return b ? a / b : UINT32_MAX; }
static inline uint32_t op_urem(uint32_t a, uint32_t b) { return b ? a % b : a; }
static inline uint32_t op_sdiv(uint32_t a, uint32_t b) {
  if (b == 0) return (int32_t)a < 0 ? 1 : UINT32_MAX;
  return b == UINT32_MAX ? 0u - a : (uint32_t)((int32_t)a / (int32_t)b);
}
static inline uint32_t op_srem(uint32_t a, uint32_t b) { return b == 0 ? a : b == UINT32_MAX ? 0 : (uint32_t)((int32_t)a % (int32_t)b); }
static inline uint32_t op_shl(uint32_t a, uint32_t b) { return b < 32 ? a << b : 0; }
static inline uint32_t op_lshr(uint32_t a, uint32_t b) { return b < 32 ? a >> b : 0; }
static inline uint32_t op_ashr(uint32_t a, uint32_t b) { return (uint32_t)((int32_t)a >> (b < 32 ? b : 31)); }
)";

std::string text(const Atom& a) {
  switch (a.kind) {
    case Atom::Kind::Const:
      return fmt::format("{}u", a.value);
    case Atom::Kind::Local:
      return fmt::format("l[{}]", a.value);
    case Atom::Kind::Input:
      return fmt::format("i[{}]", a.value);
  }
  return "?";
}

std::string text(const Term& t) {
  const std::string a = text(t.a), b = text(t.b);
  const auto infix = [&](const char* op) { return fmt::format("({} {} {})", a, op, b); };
  const auto call = [&](const char* name) { return fmt::format("op_{}({}, {})", name, a, b); };
  switch (t.op) {
    case Op::Const:
      return a;
    case Op::Add:
      return infix("+");
    case Op::Sub:
      return infix("-");
    case Op::Mul:
      return infix("*");
    case Op::Xor:
      return infix("^");
    case Op::And:
      return infix("&");
    case Op::Or:
      return infix("|");
    case Op::Eq:
      return infix("==");
    case Op::Ne:
      return infix("!=");
    case Op::Ult:
      return infix("<");
    case Op::Ule:
      return infix("<=");
    case Op::Slt:
      return fmt::format("((int32_t){} < (int32_t){})", a, b);
    case Op::Sle:
      return fmt::format("((int32_t){} <= (int32_t){})", a, b);
    case Op::Ite:
      return fmt::format("({} ? {} : {})", a, b, a);
    case Op::Shl:
      return call("shl");
    case Op::LShr:
      return call("lshr");
    case Op::AShr:
      return call("ashr");
    case Op::UDiv:
      return call("udiv");
    case Op::URem:
      return call("urem");
    case Op::SDiv:
      return call("sdiv");
    case Op::SRem:
      return call("srem");
    default:
      return "?";  // the generator has no others
  }
}

class Emitter {
 public:
  explicit Emitter(const Program& program) : program_(program) {}

  std::string all() {
    out_ = kHead;
    for (size_t i = 0; i < program_.inputs.size(); ++i) out_ += fmt::format("static uint8_t in{};\n", i);
    std::string threads;
    for (size_t t = program_.threads.size(); t-- > 0;) {
      body_.clear();
      thread(t);
      threads += body_;
    }
    return out_ + initialisers_ + threads;
  }

 private:
  static bool any(const Block& block, const auto& is) {
    return std::any_of(block.begin(), block.end(),
                       [&](const Statement& s) { return is(s) || any(s.body, is) || any(s.otherwise, is); });
  }
  bool used(std::initializer_list<Kind> kinds, uint32_t object) const {
    return std::any_of(program_.threads.begin(), program_.threads.end(), [&](const Block& block) {
      return any(block, [&](const Statement& s) {
        return s.object == object && std::find(kinds.begin(), kinds.end(), s.kind) != kinds.end();
      });
    });
  }

  size_t joined() const {
    return static_cast<size_t>(std::count_if(program_.threads[0].begin(), program_.threads[0].end(),
                                             [](const Statement& s) { return s.kind == Kind::Join; }));
  }

  void line(const std::string& text) { body_ += std::string(indent_, ' ') + text + "\n"; }
  void at(const Statement& s) { body_ += fmt::format("#line {} \"oracle.c\"\n", s.site); }
  void elsewhere() { body_ += "#line 1000 \"oracle.c\"\n"; }  // what is no statement of the program

  void thread(size_t t) {
    const bool main = t == 0;
    elsewhere();
    line(main ? "int main(void) {" : fmt::format("static void* thread{}(void* argument) {{", t));
    indent_ = 2;
    if (main) {
      line(fmt::format("pthread_t handle[{}];", program_.threads.size()));
      for (size_t i = 0; i < program_.inputs.size(); ++i) {
        line(fmt::format("stem_input(&in{0}, 1, \"in{0}\");", i));
        line(fmt::format("stem_assume(in{} < {});", i, program_.inputs[i]));
      }
      for (uint32_t i = 0; i < program_.barriers.size(); ++i)
        if (used({Kind::Barrier}, i))
          line(fmt::format("pthread_barrier_init(&barrier{}, 0, {});", i, program_.barriers[i]));
      for (uint32_t i = 0; i < program_.semaphores.size(); ++i)
        if (used({Kind::SemPost, Kind::SemWait, Kind::SemTryWait}, i))
          line(fmt::format("sem_init(&sem{}, 0, {});", i, program_.semaphores[i]));
    }
    line(main ? "unsigned char* heap = 0;" : "unsigned char* heap = argument;");
    line("uint32_t l[4] = {0};");
    std::string inputs;
    for (size_t i = 0; i < program_.inputs.size(); ++i) inputs += fmt::format("in{}, ", i);
    line(fmt::format("uint32_t i[] = {{{}0}};", inputs));
    line("(void)heap, (void)l, (void)i;");
    block(program_.threads[t]);
    elsewhere();
    line(main ? "(void)handle;\n  pthread_exit(0);" : "return 0;");
    indent_ = 0;
    line("}");
  }

  void block(const Block& statements) {
    for (const Statement& s : statements) statement(s);
  }
  void braced(const std::string& head, const Block& statements) {
    line(head + " {");
    indent_ += 2;
    block(statements);
    indent_ -= 2;
    line("}");
  }
  void bracket(const Statement& s, const std::string& enter, const std::string& leave) {
    at(s), line(enter);
    block(s.body);
    at(s), line(leave);
  }
  // Entered only if it could be taken.
  void attempt(const Statement& s, const std::string& condition, const std::string& leave) {
    at(s);
    line(fmt::format("if ({}) {{", condition));
    indent_ += 2;
    block(s.body);
    at(s), line(leave);
    indent_ -= 2;
    line("} else {");
    indent_ += 2;
    block(s.otherwise);
    indent_ -= 2;
    line("}");
  }

  std::string place(uint32_t variable) const {
    static constexpr const char* kRegion[] = {"memory", "heap", "foreign"};
    const Variable& v = program_.variables[variable];
    return fmt::format("{} + {}", kRegion[v.region], v.offset);
  }
  // A value of memory as a local has it, and back.
  std::string taken(const Statement& s, const std::string& value) const {
    const uint32_t size = program_.variables[s.variable].size;
    const char* how = size == 1 ? "(uint32_t)(int32_t)(int8_t)({})" : size == 8 ? "(uint32_t)(({}) >> 8)" : "({})";
    return fmt::format(fmt::runtime("l[{}] = " + std::string(how) + ";"), s.local, value);
  }
  std::string stored(const Statement& s, const std::string& value) const {
    const uint32_t size = program_.variables[s.variable].size;
    return size == 8 ? fmt::format("((uint64_t)({0}) << 32 | ({0}))", value)
                     : fmt::format("(uint{}_t)({})", 8 * size, value);
  }

  void access(const Statement& s) {
    const uint32_t size = program_.variables[s.variable].size;
    const std::string plain = fmt::format("*(u{}*)({})", size, place(s.variable));
    const std::string atomic = fmt::format("(volatile uint{}_t*)({})", 8 * size, place(s.variable));
    if (s.kind == Kind::Load) line(taken(s, plain));
    if (s.kind == Kind::Store) line(fmt::format("{} = {};", plain, stored(s, text(s.term))));
    if (s.kind == Kind::FetchAdd)
      line(taken(s, fmt::format("__atomic_fetch_add({}, {}, __ATOMIC_SEQ_CST)", atomic, stored(s, text(s.term)))));
    if (s.kind == Kind::Exchange)
      line(taken(s, fmt::format("__atomic_exchange_n({}, {}, __ATOMIC_SEQ_CST)", atomic, stored(s, text(s.term)))));
    if (s.kind == Kind::ExternalWrite)
      line(fmt::format("__asm__ volatile(\"inc{} %0\" : \"+m\"({}));",
                       size == 1   ? 'b'
                       : size == 2 ? 'w'
                       : size == 4 ? 'l'
                                   : 'q',
                       plain));
    if (s.kind == Kind::Cas)
      line(fmt::format(
          "{{ uint{}_t e = {}; __atomic_compare_exchange_n({}, &e, {}, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); {} }}",
          8 * size, stored(s, text(s.term.a)), atomic, stored(s, text(s.term.b)), taken(s, "e")));
  }

  // An initialiser has no arguments, and finds what is local to the thread by the thread's own pointers.
  void once(const Statement& s) {
    if (initialisers_.empty())
      initialisers_ = "struct frame { uint32_t *l, *i; unsigned char* heap; };\nstatic __thread struct frame frame;\n";
    std::string around = std::move(body_);
    body_.clear();
    const size_t indent = indent_;
    indent_ = 0;
    elsewhere();
    line(fmt::format("static void initialise{}(void) {{", s.site));
    indent_ = 2;
    line("uint32_t *l = frame.l, *i = frame.i;");
    line("unsigned char* heap = frame.heap;");
    line("(void)l, (void)i, (void)heap;");
    block(s.body);
    indent_ = 0;
    at(s), line("}");
    initialisers_ += body_;
    body_ = std::move(around);
    indent_ = indent;
    elsewhere(), line("frame = (struct frame){l, i, heap};");
    at(s), line(fmt::format("pthread_once(&once{}, initialise{});", s.object, s.site));
  }

  void statement(const Statement& s) {
    const uint32_t n = s.object;
    switch (s.kind) {
      case Kind::Load:
      case Kind::Store:
      case Kind::FetchAdd:
      case Kind::Exchange:
      case Kind::Cas:
      case Kind::ExternalWrite:
        at(s), access(s);
        break;
      case Kind::Pin:
        break;
      case Kind::Opaque:
        at(s), line(fmt::format("l[{0}] = l[{0}] * 2654435761u + l[{1}];", s.local, 1 - s.local % 2));
        break;
      case Kind::If:
        at(s), braced(fmt::format("if ({})", text(s.term)), s.body);
        if (!s.otherwise.empty()) braced("else", s.otherwise);
        break;
      case Kind::Locked:
      case Kind::TryLocked:
        ++held_[n];
        if (s.kind == Kind::Locked)
          bracket(s, fmt::format("pthread_mutex_lock(&mutex{});", n),
                  fmt::format("pthread_mutex_unlock(&mutex{});", n));
        else
          attempt(s, fmt::format("pthread_mutex_trylock(&mutex{}) == 0", n),
                  fmt::format("pthread_mutex_unlock(&mutex{});", n));
        --held_[n];
        break;
      case Kind::ReadLocked:
      case Kind::WriteLocked: {
        const bool reads = s.kind == Kind::ReadLocked, waits_for_itself = writing_[n] || (!reads && reading_[n]);
        (reads ? reading_ : writing_)[n]++;  // the C library would say EDEADLK
        bracket(s,
                waits_for_itself ? "sem_wait(&never);"
                                 : fmt::format("pthread_rwlock_{}lock(&rwlock{});", reads ? "rd" : "wr", n),
                fmt::format("pthread_rwlock_unlock(&rwlock{});", n));
        (reads ? reading_ : writing_)[n]--;
        break;
      }
      case Kind::TryWriteLocked:
        ++writing_[n];
        attempt(s, fmt::format("pthread_rwlock_trywrlock(&rwlock{}) == 0", n),
                fmt::format("pthread_rwlock_unlock(&rwlock{});", n));
        --writing_[n];
        break;
      case Kind::Wait:
      case Kind::TimedWait:
        if (held_[n] != 1) break;  // a wait holds its mutex, once
        at(s), line(fmt::format("pthread_cond_{0}wait(&cond{1}, &mutex{1}{2});", s.kind == Kind::Wait ? "" : "timed", n,
                                s.kind == Kind::Wait ? "" : ", &past"));
        break;
      case Kind::Signal:
        at(s), line(fmt::format("pthread_cond_signal(&cond{});", n));
        break;
      case Kind::Broadcast:
        at(s), line(fmt::format("pthread_cond_broadcast(&cond{});", n));
        break;
      case Kind::SemPost:
        at(s), line(fmt::format("sem_post(&sem{});", n));
        break;
      case Kind::SemWait:
        at(s), line(fmt::format("sem_wait(&sem{});", n));
        break;
      case Kind::SemTryWait:
        at(s), line(fmt::format("sem_trywait(&sem{});", n));
        break;
      case Kind::Barrier:
        at(s), line(fmt::format("pthread_barrier_wait(&barrier{});", n));
        break;
      case Kind::Once:
        once(s);
        break;
      case Kind::Atomic:
        bracket(s, "__VERIFIER_atomic_begin();", "__VERIFIER_atomic_end();");
        break;
      case Kind::Yield:
        at(s), line("sched_yield();");
        break;
      case Kind::Alloc:
        at(s), line(s.site % 2 ? "heap = calloc(1, 16);" : "heap = malloc(16);");
        break;
      case Kind::Free:  // not under threads that nobody waits for: what freed memory holds is the allocator's
        if (joined() == program_.threads.size() - 1) at(s), line("free(heap);");
        break;
      case Kind::Create:
        at(s), line(fmt::format("pthread_create(&handle[{0}], 0, thread{0}, heap);", n));
        break;
      case Kind::Join:
        at(s), line(fmt::format("pthread_join(handle[{}], 0);", n));
        break;
    }
  }

  const Program& program_;
  std::string out_, initialisers_, body_;
  size_t indent_ = 0;
  int held_[2] = {0, 0}, reading_[2] = {0, 0}, writing_[2] = {0, 0};  // around the statement, by object
};

}  // namespace

std::string emit_c(const Program& program) { return Emitter(program).all(); }

}  // namespace stem::oracle
