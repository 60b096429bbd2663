// A whole trace to and from a file.
#include <algorithm>
#include <cstdio>

#include "trace/eval.h"
#include "trace/reader.h"
#include "trace/writer.h"
#include "util/error.h"

namespace stem::trace {

Trace load(Reader& reader) {
  Trace trace;
  uint32_t objects = 0;
  auto take_objects = [&] {  // before they may be dropped
    for (; objects < reader.object_count(); ++objects) trace.objects.push_back(reader.object(objects));
  };
  take_objects();
  for (Reader::Item item; (item = reader.next()) != Reader::Item::End;) {
    take_objects();
    if (item == Reader::Item::Expr) trace.exprs.push_back(reader.expr());
    else trace.events.push_back(reader.event());
  }
  take_objects();
  trace.meta = reader.meta();
  trace.sites = reader.sites();
  trace.threads = reader.threads();
  trace.variables = reader.variables();
  trace.inputs = reader.inputs();
  trace.nondets = reader.nondets();
  trace.messages = reader.messages();
  trace.outcome = reader.outcome();
  trace.exit_code = reader.exit_code();
  // The leaf of an event that the file ends before, and what is built on it.
  for (size_t i = 1; i < trace.exprs.size() && !reader.recovery().complete; ++i) {
    if (trace.exprs[i].op == Op::Read && trace.exprs[i].value >= trace.events.size()) trace.exprs.resize(i);
  }
  return trace;
}

Trace load(const std::string& path, Recovery* recovery) {
  Reader reader(path);
  Trace trace = load(reader);
  if (recovery) *recovery = reader.recovery();
  return trace;
}

namespace {

void check_tables(const Trace& t) {
  auto wrong = [](size_t i, const char* what) { user_error("the trace cannot be saved: event @{} refers to {} that is not there", i, what); };
  for (size_t i = 0; i < t.events.size(); ++i) {
    const Event& e = t.events[i];
    if (e.thread >= t.threads.size()) wrong(i, "a thread");
    if (e.site >= t.sites.size()) wrong(i, "a site");
    if (e.object != kNone && e.object >= t.objects.size()) wrong(i, "an object");
    if (e.variable != kNone && e.variable >= t.variables.size()) wrong(i, "a variable");
    if (e.expr >= t.exprs.size() || e.leaf >= t.exprs.size()) wrong(i, "an expression");
    if (e.size > 8) user_error("the trace cannot be saved: event @{} accesses {} bytes; 8 is the most", i, e.size);
  }
  for (const Object& o : t.objects) {
    if (o.site >= t.sites.size()) user_error("the trace cannot be saved: object {} was allocated at a site that is not there", o.name);
  }
  for (ExprId id = 1; id < t.exprs.size(); ++id) {
    const Expr& e = t.exprs[id];
    if (e.width < 1 || e.width > 64) user_error("the trace cannot be saved: expression e{} has {} bits; 1 to 64 are possible", id, e.width);
    if (e.a >= id || e.b >= id || e.c >= id) user_error("the trace cannot be saved: expression e{} refers to a later one", id);
    if (e.op == Op::Input && (e.value >> 32) >= t.inputs.size()) user_error("the trace cannot be saved: expression e{} refers to an input that is not there", id);
  }
}

}  // namespace

void save(const Trace& trace, const std::string& path, bool compress) {
  check_tables(trace);
  std::string part = path + ".part";
  try {
    Writer writer(part, trace.meta, compress);
    for (size_t i = 1; i < trace.sites.size(); ++i) writer.add_site(trace.sites[i]);
    for (const Thread& t : trace.threads) writer.add_thread(t);
    for (const Object& o : trace.objects) writer.add_object(o);
    for (const std::string& v : trace.variables) writer.add_variable(v);
    for (const Input& i : trace.inputs) writer.add_input(i);
    for (const Nondet& n : trace.nondets) writer.add_nondet(n);
    for (const std::string& m : trace.messages) writer.add_message(m);
    auto put_exprs = [&](ExprId end) {
      while (writer.next_expr() < end) writer.add_expr(trace.exprs[writer.next_expr()]);
    };
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& e = trace.events[i];
      put_exprs(std::max(e.leaf, e.expr + 1));
      Expr own{Op::Read, static_cast<uint8_t>(8 * e.size), 0, 0, 0, i};
      bool implied = e.leaf == writer.next_expr() && e.size && trace.exprs[e.leaf] == own;
      if (!implied) put_exprs(e.leaf + 1);
      writer.add_event(e);
    }
    put_exprs(static_cast<ExprId>(trace.exprs.size()));
    writer.finish(trace.outcome, trace.exit_code);
  } catch (const WriteError& error) {
    std::remove(part.c_str());
    user_error("{}", error.what());
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) user_error("{}: cannot rename {} to it", path, part);
}

}  // namespace stem::trace
