// Writes a trace by hand, in tests:
//
//   Builder b;
//   auto x = b.global("x", 4, 0);
//   auto t = b.spawn("worker");                 // create in main, start in the child
//   auto r = b.read(t, x, 0, b.site("a.c", 7)); // event index
//   b.write(t, x, 1, b.site("a.c", 8), b.op(Op::Add, 32, b.leaf(r), b.constant(32, 1)));
//   b.end(t); b.join(0, t);
//   Trace trace = b.take();
//
// It writes what it is told: a test of a checker builds broken traces with it too.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "trace/event.h"

namespace stem::trace {

struct Var {
  uint64_t addr = 0;
  uint8_t size = 0;
  uint32_t object = kNone;
  uint32_t variable = kNone;
};

class Builder {
 public:
  Builder() {
    trace_.meta.recorder = "compiled";
    trace_.meta.mode = "default";
    trace_.threads.push_back({"main", kNone, "main"});
    children_.push_back(0);
    event(0, Kind::Start);
  }

  // --- tables
  SiteId site(const std::string& file, uint32_t line, const std::string& text = "", const std::string& function = "",
              uint32_t column = 1) {
    auto [found, added] = sites_.try_emplace({file, line, column, text}, static_cast<SiteId>(trace_.sites.size()));
    if (added) {
      Site s;
      s.key = 0x9e3779b97f4a7c15ull * (found->second + 1);
      s.file = file, s.line = line, s.column = column, s.function = function, s.text = text;
      trace_.sites.push_back(s);
    }
    return found->second;
  }
  uint32_t line(SiteId site) const { return trace_.sites[site].line; }
  uint32_t variable(const std::string& name) {
    auto [found, added] = variables_.try_emplace(name, static_cast<uint32_t>(trace_.variables.size()));
    if (added) trace_.variables.push_back(name);
    return found->second;
  }
  uint32_t object(ObjectKind kind, const std::string& name, uint64_t size) {
    Object o;
    o.kind = kind, o.base = next_address_, o.size = size, o.name = o.identity = name;
    next_address_ += (size + 31) / 16 * 16;
    trace_.objects.push_back(o);
    return static_cast<uint32_t>(trace_.objects.size() - 1);
  }
  Object& object(uint32_t id) { return trace_.objects[id]; }
  Var global(const std::string& name, uint8_t size, uint64_t initial = 0) {
    uint32_t id = object(ObjectKind::Global, name, size);
    Object& o = trace_.objects[id];
    if (initial == 0) o.zeroed = true;
    for (unsigned i = 0; initial && i < size; ++i) o.initial.push_back(static_cast<uint8_t>(initial >> (8 * i)));
    return {o.base, size, id, variable(name)};
  }
  // A mutex, condition variable, semaphore, ...
  Var sync(const std::string& name) {
    uint32_t id = object(ObjectKind::Sync, name, 8);
    return {trace_.objects[id].base, 0, id, kNone};
  }
  // Part of an object: bytes [offset, offset + size), under the name of the whole plus `path`.
  Var part(uint32_t object, uint64_t offset, uint8_t size, const std::string& path) {
    return {trace_.objects[object].base + offset, size, object, variable(trace_.objects[object].name + path)};
  }
  uint32_t input(const std::string& name, uint64_t value, unsigned bytes) {
    Input i{name, {}};
    for (unsigned k = 0; k < bytes; ++k) i.bytes.push_back(static_cast<uint8_t>(value >> (8 * k)));
    trace_.inputs.push_back(i);
    return static_cast<uint32_t>(trace_.inputs.size() - 1);
  }

  // --- expressions
  ExprId expr(Op op, unsigned width, ExprId a = 0, ExprId b = 0, ExprId c = 0, uint64_t value = 0) {
    trace_.exprs.push_back({op, static_cast<uint8_t>(width), a, b, c, value});
    return static_cast<ExprId>(trace_.exprs.size() - 1);
  }
  ExprId op(Op op, unsigned width, ExprId a, ExprId b = 0, ExprId c = 0) { return expr(op, width, a, b, c); }
  ExprId constant(unsigned width, uint64_t value) { return expr(Op::Const, width, 0, 0, 0, value); }
  ExprId input_leaf(uint32_t input, unsigned width, uint32_t offset = 0) {
    return expr(Op::Input, width, 0, 0, 0, static_cast<uint64_t>(input) << 32 | offset);
  }
  // The leaf of a read, made at its first use.
  ExprId leaf(uint64_t event) {
    Event& e = trace_.events[event];
    if (e.leaf == 0) e.leaf = expr(Op::Read, 8u * e.size, 0, 0, 0, event);
    return e.leaf;
  }

  // --- events; each returns the event's index
  uint64_t event(ThreadId thread, Kind kind, SiteId site = 0, uint64_t value = 0, Var at = {}, uint16_t flags = 0) {
    Event e;
    e.thread = thread, e.kind = kind, e.site = site, e.value = value, e.flags = flags;
    e.addr = at.addr, e.size = at.size, e.object = at.object, e.variable = at.variable;
    trace_.events.push_back(e);
    return trace_.events.size() - 1;
  }
  Event& at(uint64_t index) { return trace_.events[index]; }
  uint64_t size() const { return trace_.events.size(); }

  ThreadId spawn(const std::string& function, ThreadId parent = 0, SiteId site = 0) {
    ThreadId child = create(function, parent, site);
    event(child, Kind::Start);
    return child;
  }
  // As spawn, but the child does not start yet.
  ThreadId create(const std::string& function, ThreadId parent = 0, SiteId site = 0) {
    auto child = static_cast<ThreadId>(trace_.threads.size());
    std::string path = trace_.threads[parent].path + "/" + std::to_string(++children_[parent]);
    trace_.threads.push_back({path, parent, function});
    children_.push_back(0);
    event(parent, Kind::Create, site, child);
    return child;
  }
  uint64_t start(ThreadId thread) { return event(thread, Kind::Start); }
  uint64_t end(ThreadId thread) { return event(thread, Kind::End); }
  uint64_t join(ThreadId thread, ThreadId child, SiteId site = 0) { return event(thread, Kind::Join, site, child); }

  uint64_t read(ThreadId thread, Var v, uint64_t value, SiteId site = 0) { return event(thread, Kind::Read, site, value, v); }
  uint64_t write(ThreadId thread, Var v, uint64_t value, SiteId site = 0, ExprId expr = 0) {
    uint64_t index = event(thread, Kind::Write, site, value, v);
    trace_.events[index].expr = expr;
    return index;
  }
  uint64_t rmw(ThreadId thread, Var v, uint64_t old, uint64_t now, SiteId site = 0) {
    uint64_t index = event(thread, Kind::Rmw, site, old, v, kAtomic);
    trace_.events[index].value2 = now;
    return index;
  }
  uint64_t lock(ThreadId thread, Var mutex, SiteId site = 0) { return event(thread, Kind::Lock, site, 1, mutex); }
  uint64_t unlock(ThreadId thread, Var mutex, SiteId site = 0) { return event(thread, Kind::Unlock, site, 0, mutex); }
  uint64_t wait(ThreadId thread, Var cond, Var mutex, SiteId site = 0) { return event(thread, Kind::Wait, site, mutex.addr, cond); }
  uint64_t wake(ThreadId thread, Var cond, ThreadId by, SiteId site = 0) { return event(thread, Kind::Wake, site, by + 1ull, cond); }
  uint64_t signal(ThreadId thread, Var cond, uint64_t woken_plus_1, SiteId site = 0) {
    return event(thread, Kind::Signal, site, woken_plus_1, cond);
  }
  uint64_t broadcast(ThreadId thread, Var cond, uint64_t woken, SiteId site = 0) {
    return event(thread, Kind::Broadcast, site, woken, cond);
  }
  uint64_t branch(ThreadId thread, ExprId condition, uint64_t outcome, SiteId site = 0) {
    uint64_t index = event(thread, Kind::Branch, site, outcome);
    trace_.events[index].expr = condition;
    return index;
  }
  uint64_t pin(ThreadId thread, ExprId expr, uint64_t value, SiteId site = 0) {
    uint64_t index = event(thread, Kind::Pin, site, value);
    trace_.events[index].expr = expr;
    return index;
  }
  Var alloc(ThreadId thread, const std::string& name, uint64_t size, SiteId site = 0, uint16_t flags = 0) {
    uint32_t id = object(flags & kStack ? ObjectKind::Stack : ObjectKind::Heap, name, size);
    trace_.objects[id].born = static_cast<uint32_t>(trace_.events.size());
    trace_.objects[id].site = site;
    trace_.objects[id].zeroed = flags & kZeroed;
    Var whole{trace_.objects[id].base, 0, id, kNone};
    event(thread, Kind::Alloc, site, size, whole, flags);
    return whole;
  }
  uint64_t free(ThreadId thread, Var whole, SiteId site = 0) { return event(thread, Kind::Free, site, 0, whole); }

  Trace& trace() { return trace_; }
  Trace take(Outcome outcome = Outcome::Exited, int code = 0) {
    event(0, Kind::Exit, 0, static_cast<uint64_t>(code));
    trace_.events.back().value2 = static_cast<uint64_t>(outcome);
    trace_.outcome = outcome;
    trace_.exit_code = code;
    return std::move(trace_);
  }

 private:
  Trace trace_;
  uint64_t next_address_ = 0x10000;
  std::vector<uint32_t> children_;
  std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, SiteId> sites_;
  std::map<std::string, uint32_t> variables_;
};

}  // namespace stem::trace
