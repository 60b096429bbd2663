// A program of the oracle as text, for people who look at a failure.
#include <fmt/format.h>

#include "oracle/program.h"

namespace stem::oracle {

using Kind = Statement::Kind;

namespace {

std::string text(const Atom& a) {
  switch (a.kind) {
    case Atom::Kind::Const: return std::to_string(a.value);
    case Atom::Kind::Local: return fmt::format("l{}", a.value);
    case Atom::Kind::Input: return fmt::format("in{}", a.value);
  }
  return "?";
}

std::string text(const Term& t) {
  return t.op == trace::Op::Const ? text(t.a) : fmt::format("{}({}, {})", trace::op_name(t.op), text(t.a), text(t.b));
}

std::string head(const Statement& s) {
  const char* pinned = s.pinned ? " pinned" : "";
  switch (s.kind) {
    case Kind::Load: return fmt::format("l{} = v{}{}", s.local, s.variable, pinned);
    case Kind::Store: return fmt::format("v{} = {}", s.variable, text(s.term));
    case Kind::FetchAdd: return fmt::format("l{} = fetch_add(v{}, {}){}", s.local, s.variable, text(s.term), pinned);
    case Kind::Exchange: return fmt::format("l{} = exchange(v{}, {}){}", s.local, s.variable, text(s.term), pinned);
    case Kind::Cas: return fmt::format("l{} = cas(v{}, {}, {})", s.local, s.variable, text(s.term.a), text(s.term.b));
    case Kind::Pin: return fmt::format("pin {}", text(s.term));
    case Kind::Opaque: return fmt::format("l{} = opaque", s.local);
    case Kind::If: return fmt::format("if {}", text(s.term));
    case Kind::Locked: return fmt::format("locked m{}", s.object);
    case Kind::TryLocked: return fmt::format("trylocked m{}", s.object);
    case Kind::ReadLocked: return fmt::format("rdlocked rw{}", s.object);
    case Kind::WriteLocked: return fmt::format("wrlocked rw{}", s.object);
    case Kind::TryWriteLocked: return fmt::format("trywrlocked rw{}", s.object);
    case Kind::Wait: return fmt::format("wait c{} m{}{}", s.object, s.object, s.pinned ? " (may wake spuriously)" : "");
    case Kind::TimedWait: return fmt::format("timedwait c{} m{}", s.object, s.object);
    case Kind::Signal: return fmt::format("signal c{}", s.object);
    case Kind::Broadcast: return fmt::format("broadcast c{}", s.object);
    case Kind::SemPost: return fmt::format("post s{}", s.object);
    case Kind::SemWait: return fmt::format("wait s{}", s.object);
    case Kind::SemTryWait: return fmt::format("trywait s{}", s.object);
    case Kind::Barrier: return fmt::format("barrier b{}", s.object);
    case Kind::Once: return fmt::format("once o{}", s.object);
    case Kind::Atomic: return "atomic";
    case Kind::Yield: return "yield";
    case Kind::ExternalWrite: return fmt::format("external v{}", s.variable);
    case Kind::Alloc: return "alloc";
    case Kind::Free: return "free";
    case Kind::Create: return fmt::format("create {}", s.object);
    case Kind::Join: return fmt::format("join {}", s.object);
  }
  return "?";
}

void print(std::string& out, const Block& block, int indent) {
  for (const Statement& s : block) {
    out += fmt::format("{:{}}{:<{}} ; {}\n", "", indent, head(s), 50 - indent, s.site);
    print(out, s.body, indent + 2);
    if (s.otherwise.empty()) continue;
    out += fmt::format("{:{}}else\n", "", indent);
    print(out, s.otherwise, indent + 2);
  }
}

}  // namespace

std::string print(const Program& program) {
  std::string out;
  for (size_t i = 0; i < program.variables.size(); ++i) {
    const Variable& v = program.variables[i];
    out += fmt::format("v{}: region {}, bytes {} to {}\n", i, v.region, v.offset, v.offset + v.size - 1);
  }
  for (size_t i = 0; i < program.inputs.size(); ++i) out += fmt::format("in{} below {}\n", i, program.inputs[i]);
  for (size_t t = 0; t < program.threads.size(); ++t) {
    out += fmt::format("thread {}\n", t);
    print(out, program.threads[t], 2);
  }
  return out;
}

}  // namespace stem::oracle
