// A runtime for one thread that prints what the pass reports, with every expression written out, and checks it: each expression is
// evaluated from the values read, and must agree with what was stored, pinned and branched on. Exit code 99 on a mismatch.
// STEM_FAKE_FAST=1 lets the inline fast path write into a buffer; its records are printed like the others.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "trace/raw.h"
#include "trace/site_record.h"
#include "tracer/runtime/abi.h"

extern "C" {
struct stem_hot __stem_hot;
__thread struct stem_tls __stem_tls __attribute__((tls_model("initial-exec")));
}

namespace {

struct Node {
  int op;
  unsigned width;
  uint64_t value;
  std::string text;
};

struct State {
  std::vector<Node> nodes{1};
  struct Byte {
    uint32_t id;
    unsigned place, total;
  };
  std::map<uint64_t, Byte> shadow;
  std::vector<std::string> lines;
  std::vector<stem_rec> buffer = std::vector<stem_rec>(1 << 16);
  bool fast = false, mismatch = false;
};

State* state;

uint64_t mask(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }
int64_t sign(uint64_t v, unsigned width) { return width >= 64 ? int64_t(v) : int64_t(v << (64 - width)) >> (64 - width); }

const char* op_text(unsigned op) {
  switch (op) {
#define STEM_OP(Name, text, arity) \
  case STEM_OP_##Name: return text;
#include "trace/ops.def"
  }
  return "?";
}

const char* site_text(const void* site) {
  if (!site) return "?";
  auto* record = static_cast<const stem_site*>(site);
  return record->text ? reinterpret_cast<const char*>(&record->text) + record->text : "?";
}

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
void say(const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  state->lines.push_back(line);
}

void flush();
void finish() {
  flush();
  const char* path = getenv("STEM_FAKE_OUT");
  FILE* out = path ? fopen(path, "w") : stderr;
  for (auto& line : state->lines) fprintf(out, "%s\n", line.c_str());
  if (path) fclose(out);
  if (state->mismatch) _Exit(99);
}

__attribute__((constructor(101))) void start() {
  if (state) return;
  state = new State;
  __stem_tls.next_id = __stem_tls.id_step = 1;
  state->fast = getenv("STEM_FAKE_FAST") != nullptr;
  if (state->fast) {
    __stem_hot.cursor = state->buffer.data();
    __stem_hot.limit = state->buffer.data() + state->buffer.size();
    __stem_hot.countdown = 1 << 30;
  }
  atexit(finish);
}

// Addresses and floating point differ from run to run, or are unreadable.
std::string number(uint64_t value, unsigned width) {
  const int64_t n = sign(value & mask(width), width);
  return n > (1ll << 41) || n < -(1ll << 41) ? "big" : std::to_string(n);
}

std::string operand(uint32_t id, uint64_t value, unsigned width) { return id ? state->nodes[id].text : number(value, width); }

uint32_t make(int op, unsigned width, uint64_t value, std::string text) {
  flush();
  state->nodes.push_back({op, width, value & mask(width), std::move(text)});
  if (state->nodes.size() - 1 != __stem_tls.next_id) {
    say("MISMATCH id %u expected %zu", __stem_tls.next_id, state->nodes.size() - 1);
    state->mismatch = true;
  }
  return __stem_tls.next_id++;
}

void check(const char* what, uint32_t id, uint64_t value, unsigned width) {
  if (!id) return;
  const Node& node = state->nodes[id];
  if (id >= state->nodes.size() || node.width != width || node.value != (value & mask(width))) {
    say("MISMATCH %s: %s has value %llu width %u, recorded %llu width %u", what, node.text.c_str(), (unsigned long long)node.value, node.width, (unsigned long long)value, width);
    state->mismatch = true;
  }
}

std::string flags(unsigned aux) { return std::string(aux & STEM_AUX_ATOMIC ? " atomic" : "") + (aux & STEM_AUX_PINNED ? " pinned" : ""); }

void read_event(const void* site, unsigned aux, uint64_t value) {
  const unsigned width = 8 * (aux & 15);
  say("read %s%s = %s", site_text(site), flags(aux).c_str(), number(value, width).c_str());
  if (aux & STEM_AUX_LEAF) state->nodes.push_back({STEM_OP_Read, width, value, site_text(site)});
}

void write_event(const void* site, unsigned aux, uint64_t value, uint32_t id) {
  const unsigned width = 8 * (aux & 15);
  check("write", id, value, width);
  say("write %s%s = %s", site_text(site), flags(aux).c_str(), operand(id, value, width).c_str());
}

// Records of the fast path hold the low half of the site's address; this program's own are all near each other.
const void* site_of(uint32_t low) {
  extern const char first[] __asm__("__start_stem_sites");
  return reinterpret_cast<const void*>((reinterpret_cast<uintptr_t>(first) & ~0xffffffffull) | low);
}

void flush() {
  if (!state || !state->fast) return;
  for (stem_rec* r = state->buffer.data(); r < __stem_hot.cursor; ++r) {
    const unsigned kind = r->head >> 48 & 0xff, aux = r->head >> 56;
    if (kind == STEM_KIND_Read) read_event(site_of(r->site), aux, r->value);
    else write_event(site_of(r->site), aux, r->value, r->expr);
  }
  __stem_hot.cursor = state->buffer.data();
}

uint64_t load(const void* p, unsigned size) {
  uint64_t v = 0;
  memcpy(&v, p, size);
  return v;
}

uint64_t apply(unsigned op, unsigned w, uint64_t a, uint64_t b) {
  a &= mask(w), b &= mask(w);
  switch (op) {
    case STEM_OP_Add: return a + b;
    case STEM_OP_Sub: return a - b;
    case STEM_OP_Mul: return a * b;
    case STEM_OP_UDiv: return a / b;
    case STEM_OP_SDiv: return uint64_t(sign(a, w) / sign(b, w));
    case STEM_OP_URem: return a % b;
    case STEM_OP_SRem: return uint64_t(sign(a, w) % sign(b, w));
    case STEM_OP_Shl: return b >= w ? 0 : a << b;
    case STEM_OP_LShr: return b >= w ? 0 : a >> b;
    case STEM_OP_AShr: return uint64_t(sign(a, w) >> (b >= w ? w - 1 : b));
    case STEM_OP_And: return a & b;
    case STEM_OP_Or: return a | b;
    case STEM_OP_Xor: return a ^ b;
    case STEM_OP_Eq: return a == b;
    case STEM_OP_Ne: return a != b;
    case STEM_OP_Ult: return a < b;
    case STEM_OP_Ule: return a <= b;
    case STEM_OP_Slt: return sign(a, w) < sign(b, w);
    case STEM_OP_Sle: return sign(a, w) <= sign(b, w);
  }
  abort();
}

}  // namespace

extern "C" {

void __stem_register(void*, void*) { start(); }

uint64_t __stem_load(void* address, uint32_t aux, void* site) {
  flush();
  const uint64_t value = load(address, aux & 15);
  read_event(site, aux, value);
  if (aux & STEM_AUX_LEAF) __stem_tls.result_id = __stem_tls.next_id++;
  return value;
}
uint64_t __stem_atomic_load(void* address, uint32_t aux, void* site) { return __stem_load(address, aux, site); }

void __stem_store(void* address, uint64_t value, uint32_t id, uint32_t aux, void* site) {
  flush();
  write_event(site, aux, value, id);
  memcpy(address, &value, aux & 15);
}
void __stem_atomic_store(void* address, uint64_t value, uint32_t id, uint32_t aux, void* site) { __stem_store(address, value, id, aux, site); }

uint32_t __stem_binary(uint32_t op, uint32_t width, uint32_t a_id, uint32_t b_id, uint64_t a, uint64_t b) {
  flush();
  check("operand", a_id, a, width);
  check("operand", b_id, b, width);
  if (!a_id && !b_id) return 0;
  const bool comparison = op >= STEM_OP_Eq && op <= STEM_OP_Sle;
  return make(op, comparison ? 1 : width, apply(op, width, a, b), std::string("(") + op_text(op) + " " + operand(a_id, a, width) + " " + operand(b_id, b, width) + ")");
}

uint32_t __stem_convert(uint32_t op, uint32_t width, uint32_t from, uint32_t low, uint32_t id) {
  if (!id) return 0;
  flush();
  const Node node = state->nodes[id];
  if (node.width != from) say("MISMATCH %s: %s has width %u, not %u", op_text(op), node.text.c_str(), node.width, from), state->mismatch = true;
  const uint64_t value = op == STEM_OP_SExt ? uint64_t(sign(node.value, from)) : op == STEM_OP_Extract ? node.value >> low : node.value;
  return make(op, width, value, std::string("(") + op_text(op) + " " + node.text + ")");
}

uint32_t __stem_ite(uint32_t width, uint32_t c, uint32_t a_id, uint32_t b_id, uint64_t a, uint64_t b) {
  if (!c) return 0;
  flush();
  check("operand", a_id, a, width);
  check("operand", b_id, b, width);
  return make(STEM_OP_Ite, width, state->nodes[c].value ? a : b, "(ite " + state->nodes[c].text + " " + operand(a_id, a, width) + " " + operand(b_id, b, width) + ")");
}

uint32_t __stem_rounds(void* record, uint32_t id, uint64_t rounds) {
  const auto* round = static_cast<const stem_round*>(record);
  flush();
  say("%llu rounds of %u", (unsigned long long)rounds, round->nodes);
  while (rounds--) {
    std::vector<uint32_t> made;
    for (uint32_t i = 0; i < round->nodes; ++i) {
      const stem_rec& node = round->node[i];
      auto reference = [&](uint32_t r) { return r == 0 ? 0 : r == 1 ? id : made[r - 2]; };
      const uint32_t a = reference(node.expr), b = reference(node.site);
      made.push_back(__stem_binary(node.head >> 56, node.head & 0xff, a, b, a ? state->nodes[a].value : node.value, b ? state->nodes[b].value : node.value));
    }
    id = made[round->result];
  }
  return id;
}

void __stem_branch(uint32_t id, uint64_t outcome, void* site) {
  flush();
  check("branch", id, outcome, state->nodes[id].width);
  say("branch %s %s = %llu", site_text(site), state->nodes[id].text.c_str(), (unsigned long long)outcome);
}

void __stem_pin(uint32_t id, uint64_t value, void* site) {
  flush();
  check("pin", id, value, state->nodes[id].width);
  say("pin %s at %s", state->nodes[id].text.c_str(), site_text(site));
}

void __stem_assert(uint32_t id, uint64_t held, void* site) {
  flush();
  check("assert", id, held, 1);
  say("assert %s %s = %llu", site_text(site), operand(id, held, 1).c_str(), (unsigned long long)held);
}

uint64_t __stem_atomic_rmw(void* address, uint32_t operation, uint64_t value, uint32_t id, uint32_t aux, void* site) {
  flush();
  static const int ops[] = {-1, STEM_OP_Add, STEM_OP_Sub, STEM_OP_And, -1, STEM_OP_Or, STEM_OP_Xor};
  const unsigned size = aux & 15;
  const uint64_t old = load(address, size);
  say("rmw %s%s = %s", site_text(site), flags(aux).c_str(), number(old, 8 * size).c_str());
  check("rmw", id, value, 8 * size);
  __stem_tls.result_id = 0;
  if (aux & STEM_AUX_LEAF) {
    state->nodes.push_back({STEM_OP_Read, 8 * size, old, site_text(site)});
    __stem_tls.result_id = __stem_tls.next_id++;
  }
  const uint64_t now = operation == 0 ? value : apply(ops[operation], 8 * size, old, value);
  memcpy(address, &now, size);
  return old;
}

uint64_t __stem_atomic_cas(void* address, uint64_t expected, uint32_t expected_id, uint64_t desired, uint32_t desired_id, uint32_t aux, void* site) {
  flush();
  const unsigned size = aux & 15;
  const uint64_t old = load(address, size);
  const bool success = old == (expected & mask(8 * size));
  say("cas %s = %lld %s", site_text(site), (long long)sign(old, 8 * size), success ? "done" : "failed");
  check("cas", expected_id, expected, 8 * size);
  check("cas", desired_id, desired, 8 * size);
  state->nodes.push_back({STEM_OP_Read, 8 * size, old, site_text(site)});
  __stem_tls.result_id = __stem_tls.next_id++;
  if (success) memcpy(address, &desired, size);
  return old;
}

void __stem_shadow_set(void* address, uint32_t size, uint32_t id) {
  flush();
  for (unsigned i = 0; i < size; ++i) {
    if (id) state->shadow[uint64_t(address) + i] = {id, i, size};
    else state->shadow.erase(uint64_t(address) + i);
  }
  if (id && state->nodes[id].width != 8 * size) say("MISMATCH shadow of %s: %u bytes", state->nodes[id].text.c_str(), size), state->mismatch = true;
  __stem_tls.shadow_live = state->shadow.size();
}

void __stem_shadow_clear(void* address, uint64_t size) {
  state->shadow.erase(state->shadow.lower_bound(uint64_t(address)), state->shadow.lower_bound(uint64_t(address) + size));
  __stem_tls.shadow_live = state->shadow.size();
}

uint32_t __stem_shadow_get(void* address, uint32_t size, uint64_t value) {
  flush();
  uint32_t any = 0;
  bool whole = true;
  for (unsigned i = 0; i < size; ++i) {
    auto found = state->shadow.find(uint64_t(address) + i);
    if (found == state->shadow.end()) {
      whole = false;
      continue;
    }
    whole &= found->second.place == i && found->second.total == size && (!any || any == found->second.id);
    any = found->second.id;
  }
  if (!any) return 0;
  if (whole) {
    check("reload", any, value, 8 * size);
    return any;
  }
  return make(STEM_OP_Opaque, 8 * size, value, "(part " + state->nodes[any].text + ")");
}

void __stem_pin_range(void* address, uint64_t size, uint32_t is_private, void* site) {
  for (uint64_t done = 0; done + 4 <= size; done += 4) {
    char* at = static_cast<char*>(address) + done;
    if (!is_private) {
      __stem_load(at, 4 | STEM_AUX_PINNED, site);
    } else if (const uint32_t known = __stem_shadow_get(at, 4, load(at, 4))) {
      __stem_pin(known, load(at, 4), site);
    }
  }
}

void __stem_shadow_copy(void* to, void* from, uint64_t size) {
  std::map<uint64_t, State::Byte> moved;
  for (uint64_t i = 0; i < size; ++i)
    if (auto found = state->shadow.find(uint64_t(from) + i); found != state->shadow.end()) moved[uint64_t(to) + i] = found->second;
  __stem_shadow_clear(to, size);
  state->shadow.insert(moved.begin(), moved.end());
  __stem_tls.shadow_live = state->shadow.size();
}

void __stem_copy(void* to, void* from, uint64_t size, uint32_t flag, void* site) {
  flush();
  say("copy %s %llu%s%s", site_text(site), (unsigned long long)size, flag & 2 ? " from private" : "", flag & 4 ? " to private" : "");
  memmove(to, from, size);
  if (flag & 4) __stem_shadow_clear(to, size);
  if (flag & 4 && !(flag & 2))
    for (uint64_t i = 0; i + 4 <= size; i += 4) {
      state->nodes.push_back({STEM_OP_Read, 32, load(static_cast<char*>(to) + i, 4), site_text(site)});
      __stem_shadow_set(static_cast<char*>(to) + i, 4, __stem_tls.next_id++);
    }
}

void __stem_fill(void* to, uint32_t byte, uint32_t id, uint64_t size, void* site) {
  flush();
  check("fill", id, byte, 8);
  say("fill %s %llu = %s", site_text(site), (unsigned long long)size, operand(id, byte, 8).c_str());
  memset(to, byte, size);
}

void __stem_stack(void* address, uint64_t size, void* site) { flush(), say("stack %s %llu", site_text(site), (unsigned long long)size); }
void __stem_alloc(void* address, uint64_t size, uint32_t zeroed, void* site) { flush(), say("alloc %s %llu%s", site_text(site), (unsigned long long)size, zeroed ? " zeroed" : ""); }
void __stem_free(void* address, void* site) { flush(), say("free %s", site_text(site)); }
void __stem_expose(void* address, void* callee) { (void)address, (void)callee; }

// Two intercepted functions: one returns an input, one takes an expression.
int __VERIFIER_nondet_int(void) {
  static int next = 7;
  __stem_tls.result_id = make(STEM_OP_Input, 32, next, "input");
  __stem_tls.returner = reinterpret_cast<const void*>(&__VERIFIER_nondet_int);
  return next++;
}
void __VERIFIER_assume(int condition) {
  flush();
  if (__stem_tls.callee != reinterpret_cast<const void*>(&__VERIFIER_assume)) return say("assume concrete");
  __stem_tls.callee = nullptr;
  check("assume", __stem_tls.args[0], condition, 32);
  say("assume %s site %s", operand(__stem_tls.args[0], condition, 32).c_str(), site_text(__stem_tls.site));
}
uint64_t __stem_wrap_strlen(const char* s) {
  flush();
  say("strlen");
  __stem_tls.returner = nullptr;
  return strlen(s);
}
int __stem_wrap_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int n = vprintf(format, arguments);
  va_end(arguments);
  __stem_tls.returner = nullptr;
  return n;
}
// A library function that nobody instrumented: calls back, and returns its argument.
int library_call(int (*callback)(int), int argument) { return callback(argument); }
int library_identity(int x) { return x; }
}
