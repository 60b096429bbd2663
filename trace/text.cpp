// Printing. The order of lines: header, tables, then expressions just before the first event that refers to them.
#include "trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace stem::trace {

namespace {

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string out;
  for (uint8_t b : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", b);
  return out.empty() ? "-" : out;
}

constexpr const char* kFlagNames[] = {"atomic", "try", "timed", "timeout", "spurious", "stack", "zeroed", "serial", "pinned", "tainted", "spin", "fresh"};
constexpr const char* kObjectKinds[] = {"unknown", "global", "heap", "stack", "tls", "sync"};

std::string flag_list(uint16_t flags) {
  std::string out;
  for (unsigned i = 0; i < 16; ++i) {
    if (!(flags & (1u << i))) continue;
    if (!out.empty()) out += ',';
    out += i < std::size(kFlagNames) ? kFlagNames[i] : fmt::format("bit{}", i);
  }
  return out;
}

}  // namespace

std::string print_header(const Meta& meta) {
  std::string out = "stem-trace 1\n";
  fmt::format_to(std::back_inserter(out), "meta recorder={} program={} build_id={} cwd={} mode={} seed={} semantics={}\n",
                 quote(meta.recorder), quote(meta.program), quote(meta.build_id), quote(meta.cwd), quote(meta.mode),
                 meta.seed, meta.semantics ? 1 : 0);
  for (const auto& arg : meta.argv) out += "argv " + quote(arg) + "\n";
  for (const auto& [key, value] : meta.options) out += "option " + quote(key) + " " + quote(value) + "\n";
  return out;
}

std::string print_site(SiteId id, const Site& site) {
  return fmt::format("site s{} key={:#x} file={} line={} column={} function={} text={} path={}\n", id, site.key,
                     quote(site.file), site.line, site.column, quote(site.function), quote(site.text), quote(site.path));
}

std::string print_thread(ThreadId id, const Thread& thread) {
  std::string parent = thread.parent == kNone ? "" : fmt::format(" parent=t{}", thread.parent);
  return fmt::format("thread t{} path={}{} start={}\n", id, quote(thread.path), parent, quote(thread.start));
}

std::string print_object(uint32_t id, const Object& object) {
  std::string out = fmt::format("object o{} {} name={} identity={} base={:#x} size={}", id,
                                kObjectKinds[static_cast<size_t>(object.kind)], quote(object.name),
                                quote(object.identity), object.base, object.size);
  if (object.born != kNone) out += fmt::format(" born=@{}", object.born);
  if (object.site) out += fmt::format(" site=s{}", object.site);
  if (object.zeroed) out += " zeroed=1";
  if (!object.initial.empty()) out += " initial=" + hex(object.initial);
  return out + "\n";
}

std::string print_variable(uint32_t id, const std::string& variable) {
  return fmt::format("variable v{} {}\n", id, quote(variable));
}

std::string print_input(uint32_t id, const Input& input) {
  return fmt::format("input i{} name={} bytes={}\n", id, quote(input.name), hex(input.bytes));
}

std::string print_nondet(uint32_t id, const Nondet& nondet) {
  return fmt::format("nondet n{} what={} bytes={}\n", id, quote(nondet.what), hex(nondet.bytes));
}

std::string print_expr(ExprId id, const Expr& expr) {
  std::string out = fmt::format("e{} {}:{}", id, op_name(expr.op), expr.width);
  int last = expr.c ? 3 : expr.b ? 2 : expr.a ? 1 : 0;
  last = std::max(last, op_arity(expr.op));
  const ExprId operands[] = {expr.a, expr.b, expr.c};
  for (int i = 0; i < last; ++i) out += fmt::format(" e{}", operands[i]);
  if (expr.op == Op::Read) {
    out += fmt::format(" @{}", expr.value);
  } else if (expr.op == Op::Input) {
    out += fmt::format(" i{}+{}", expr.value >> 32, expr.value & 0xffffffffu);
  } else if (expr.value != 0 || expr.op == Op::Const || expr.op == Op::Extract || expr.op == Op::Opaque) {
    out += fmt::format(" {}", expr.value);
  }
  return out + "\n";
}

std::string print_event(uint64_t index, const Event& event, const std::string& where) {
  std::string out = fmt::format("@{} t{} {}", index, event.thread, kind_name(event.kind));
  auto to = std::back_inserter(out);
  if (event.site) fmt::format_to(to, " s{}", event.site);
  if (event.addr) fmt::format_to(to, " addr={:#x}", event.addr);
  if (event.size) fmt::format_to(to, " size={}", event.size);
  if (event.value) fmt::format_to(to, " value={}", event.value);
  if (event.value2) fmt::format_to(to, " value2={}", event.value2);
  if (event.expr) fmt::format_to(to, " expr=e{}", event.expr);
  if (event.leaf) fmt::format_to(to, " leaf=e{}", event.leaf);
  if (event.object != kNone) fmt::format_to(to, " object=o{}", event.object);
  if (event.variable != kNone) fmt::format_to(to, " variable=v{}", event.variable);
  if (event.flags) out += " flags=" + flag_list(event.flags);
  if (!where.empty()) {
    out += " ; ";
    for (char c : where) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\n";
}

std::string print_message(const std::string& message) { return "message " + quote(message) + "\n"; }

std::string print_outcome(Outcome outcome, int exit_code) {
  return fmt::format("outcome {} {}\n", quote(outcome_name(outcome)), exit_code);
}

std::string location(const Site& site) {
  if (site.file.empty() && site.line == 0) return "unknown place";
  if (site.column == 0) return fmt::format("{}:{}", site.file, site.line);
  return fmt::format("{}:{}:{}", site.file, site.line, site.column);
}

std::string describe(const Thread& thread, const Site& site) {
  std::string out = thread.path;
  if (!site.file.empty() || site.line) out += " " + location(site);
  if (!site.text.empty()) out += " " + site.text;
  return out;
}

std::string print(const Trace& trace) {
  std::string out = print_header(trace.meta);
  for (ThreadId i = 0; i < trace.threads.size(); ++i) out += print_thread(i, trace.threads[i]);
  for (SiteId i = 1; i < trace.sites.size(); ++i) out += print_site(i, trace.sites[i]);
  for (uint32_t i = 0; i < trace.objects.size(); ++i) out += print_object(i, trace.objects[i]);
  for (uint32_t i = 0; i < trace.variables.size(); ++i) out += print_variable(i, trace.variables[i]);
  for (uint32_t i = 0; i < trace.inputs.size(); ++i) out += print_input(i, trace.inputs[i]);
  for (uint32_t i = 0; i < trace.nondets.size(); ++i) out += print_nondet(i, trace.nondets[i]);
  ExprId printed = 0;
  for (uint64_t i = 0; i < trace.events.size(); ++i) {
    const Event& e = trace.events[i];
    for (ExprId need = std::max(e.expr, e.leaf); printed < need && printed + 1 < trace.exprs.size();) {
      ++printed;
      out += print_expr(printed, trace.exprs[printed]);
    }
    static const Thread none;
    out += print_event(i, e, describe(e.thread < trace.threads.size() ? trace.threads[e.thread] : none,
                                      e.site < trace.sites.size() ? trace.sites[e.site] : trace.sites[0]));
  }
  while (printed + 1 < trace.exprs.size()) {
    ++printed;
    out += print_expr(printed, trace.exprs[printed]);
  }
  for (const std::string& message : trace.messages) out += print_message(message);
  return out + print_outcome(trace.outcome, trace.exit_code);
}

}  // namespace stem::trace
