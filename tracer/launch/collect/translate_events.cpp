// The records that come rarely: everything but memory accesses and expressions.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "trace/meta_json.h"
#include "trace/site_record.h"
#include "tracer/launch/collect/translate.h"
#include "util/error.h"

namespace stem::collect {

using trace::Event;
using trace::Kind;
using trace::kNone;

trace::SiteId Translator::site(uint32_t low, uint64_t address) {
  if (low == 0) return 0;
  auto& line = site_cache_[low * 0x9e3779b1u >> 20];
  if (line.first == low) return line.second;
  line = {low, resolve_site(low, address)};
  return line.second;
}

// An instruction of a binary that nobody prepared reads as the variable that it accessed first.
trace::SiteId Translator::resolve_site(uint32_t low, uint64_t address) {
  auto [found, added] = site_ids_.try_emplace(low, 0);
  if (!added) return found->second;
  const trace::ProgramSite* program = modules_.site(low);
  if (!program) {
    site_ids_.erase(found);  // its module may come later
    return 0;
  }
  trace::Site named = *program;
  if (program->kind == STEM_SITE_CODE && address) {
    uint32_t slot = find_object(address, 0);
    if (slot != LiveObjects::kNoSlot) named.text = variable_names_[variable(live_[slot], address, 0)];
  }
  trace::SiteId id = writer_.add_site(named);
  site_ids_[low] = id;
  auto [path, new_path] = paths_.try_emplace(program->path, static_cast<uint32_t>(path_names_.size()));
  if (new_path) path_names_.push_back(program->path);
  sites_.resize(id + 1);
  sites_[id] = {program, path->second, LiveObjects::kNoSlot};
  return id;
}

// A message names sites by key (tracer/launch/message.h), also of operations that were never done: what a thread waits
// for in a deadlock. Such sites join the trace, so that it can say their lines.
void Translator::message(const std::string& text) {
  static const std::string member = "\"site\":\"";
  for (size_t at = 0; (at = text.find(member, at)) != std::string::npos;) {
    at += member.size();
    uint64_t key = std::strtoull(text.substr(at, 16).c_str(), nullptr, 16);
    if (auto low = key ? modules_.site_with_key(key) : std::nullopt) site(*low);
  }
  writer_.add_message(text);
}

// A thread that sends events before anybody announced it.
trace::ThreadId Translator::thread_id() {
  Thread* selected = thread_;
  size_t at = static_cast<size_t>(
      std::find_if(threads_.begin(), threads_.end(), [&](Thread& t) { return &t == selected; }) - threads_.begin());
  if (threads_[at].id == kNone)
    define_thread(static_cast<uint32_t>(at), UINT32_MAX, at == 0 ? "main" : fmt::format("unannounced/{}", at), "");
  return threads_[at].id;
}

void Translator::define_thread(uint32_t index, uint32_t parent, const std::string& path, std::string start) {
  if (index >= (1u << 20)) return spoil();
  Thread* selected = thread_;
  select(index);
  thread_ = selected;
  Thread& t = threads_[index];
  if (t.id != kNone) return;
  if (start.starts_with("0x")) {
    std::string name = modules_.function(std::strtoull(start.c_str(), nullptr, 16) + 1);
    start = name.empty() ? "a function without a name" : name;
  }
  trace::Thread thread;
  thread.path = t.path = path;
  thread.start = start;
  thread.parent = parent < threads_.size() ? threads_[parent].id : kNone;
  t.id = writer_.add_thread(thread);
}

void Translator::other(const stem_rec& r, Kind kind) {
  Thread& t = *thread_;
  unsigned flags = static_cast<unsigned>(r.head >> 56);
  Event e;
  e.kind = kind;
  e.addr = r.head & 0xffffffffffffull;
  e.value = r.value;
  e.thread = t.id != kNone ? t.id : thread_id();
  e.site = site(r.site, kind == Kind::Alloc || kind == Kind::Free ? 0 : e.addr);
  e.flags = static_cast<uint16_t>(flags);
  switch (kind) {
    case Kind::Branch:
    case Kind::Pin:
    case Kind::Assert:
      e.expr = t.ids.find(r.expr);
      writer_.add_event(e);
      if (e.site && e.addr == 0) can_repeat(r, 0, LiveObjects::kNoSlot, true);
      return;
    case Kind::Alloc:
      e.flags |= r.expr & 0xff00;
      t.event = e;
      t.wait = Wait::Callers;
      callers_.clear();
      return;
    case Kind::Free:
      release(e);
      return;
    case Kind::Input:
      t.event = e;
      t.wait = Wait::InputBytes;
      return;
    case Kind::Nondet:
      t.event = e;
      t.wait = Wait::NondetBytes;
      return;
    case Kind::Exit:
      t.event = e;
      t.wait = Wait::Value2;
      return;
    case Kind::Create:
    case Kind::Join:
    case Kind::Detach:
      if (e.value < threads_.size() && threads_[e.value].id != kNone) {
        e.value = threads_[e.value].id;
      } else {
        auto index = static_cast<uint32_t>(std::min<uint64_t>(e.value, UINT32_MAX));
        define_thread(index, kNone, fmt::format("unannounced/{}", index), "");
        if (broken_) return;
        e.value = threads_[index].id;
      }
      break;
    case Kind::Wake:
    case Kind::Signal:
      if (e.value && e.value - 1 < threads_.size() && threads_[e.value - 1].id != kNone)
        e.value = 1ull + threads_[e.value - 1].id;
      break;
    case Kind::Fault:
      fault_signal_ = static_cast<int>(e.value);
      break;
    case Kind::Start:
    case Kind::End:
    case Kind::Yield:
    case Kind::Read:
    case Kind::Write:
    case Kind::Rmw:
    case Kind::External:
    case Kind::Lock:
    case Kind::Unlock:
    case Kind::LockFail:
    case Kind::RdLock:
    case Kind::WrLock:
    case Kind::RwUnlock:
    case Kind::RdLockFail:
    case Kind::WrLockFail:
    case Kind::Wait:
    case Kind::Broadcast:
    case Kind::SemInit:
    case Kind::SemPost:
    case Kind::SemWait:
    case Kind::SemFail:
    case Kind::BarrierInit:
    case Kind::BarrierArrive:
    case Kind::BarrierLeave:
    case Kind::OnceBegin:
    case Kind::OnceEnd:
    case Kind::OncePass:
    case Kind::AtomicBegin:
    case Kind::AtomicEnd:
    case Kind::SignalIn:
    case Kind::SignalOut:
    case Kind::Fork:
      break;
  }
  e.flags |= r.expr & 0xff00;
  uint32_t slot = LiveObjects::kNoSlot;
  if (e.addr) {
    locate(e, slot);
    if (e.variable != kNone) e.variable = whole(e.variable);
  }
  writer_.add_event(e);
  if (e.site && slot != LiveObjects::kNoSlot) can_repeat(r, e.addr, slot, false);
}

// A mutex is named as the program declares it, not by the field of the C library's that happens to come first in it:
// q.m.__data.__lock is q.m, and so are members of std::mutex.
uint32_t Translator::whole(uint32_t variable) {
  auto [found, added] = whole_.try_emplace(variable, variable);
  if (!added) return found->second;
  const std::string& name = variable_names_[variable];
  size_t cut = std::min(name.find(".__"), name.find("._M_"));
  if (cut != std::string::npos) return whole_[variable] = new_variable(name.substr(0, cut));
  return variable;
}

void Translator::allocate(Event& e) {
  const trace::ProgramSite* s = sites_[e.site].program;
  trace::Object o;
  o.kind = e.flags & trace::kStack ? trace::ObjectKind::Stack : trace::ObjectKind::Heap;
  o.base = e.addr;
  o.size = e.value;
  o.site = e.site;
  o.zeroed = e.flags & trace::kZeroed;
  if (writer_.next_event() < kNone) o.born = static_cast<uint32_t>(writer_.next_event());
  const bool frame = o.kind == trace::ObjectKind::Stack && s && s->kind == STEM_SITE_CODE;
  const uint64_t frame_end = frame && !callers_.empty() ? callers_[0] : 0;
  if (frame) {
    o.name = s->frame.empty() ? s->function : s->frame;
  } else if (o.kind == trace::ObjectKind::Stack) {
    o.name = s ? s->function + "::" + s->text : "a local variable";
  } else {
    std::string where = s ? fmt::format("{}:{}", s->function, s->line) : "";
    size_t above = 0;
    if (s && s->kind == STEM_SITE_CODE && !s->file.empty()) {
      // Not in the inside of the C++ library, but where the program called it.
      for (; s->where.empty() && above < callers_.size(); ++above) {
        const trace::ProgramSite* caller = modules_.site(static_cast<uint32_t>(callers_[above] - 1));
        if (caller && caller->file.empty()) break;
        if (caller && !caller->where.empty()) s = caller;
      }
      if (s->where.empty()) above = 0;
      else where = s->where;
    }
    int shown = 0;
    for (uint64_t address : std::span(callers_).subspan(above)) {
      auto [name, added] = functions_.try_emplace(address);
      if (added) name->second = modules_.function(address);
      if (name->second.empty() || name->second == "_start" ||
          (shown == 0 && s && (name->second == s->linkage || name->second == s->function || name->second == s->frame)))
        continue;
      where += (where.empty() ? "" : "<") + name->second;
      if (++shown == 2) break;
    }
    o.name = "heap(" + where + ")";
  }
  o.identity = ordinal(o.name + "@" + thread_->path + "#");
  const std::string layout = !s || (s->kind == STEM_SITE_CODE && !frame) || (frame && !frame_end) ? "" : s->layout;
  const uint64_t base = o.base;
  uint32_t slot = new_object(std::move(o), layout, frame);
  if (frame && live_[slot].type->layout) live_[slot].shift = live_[slot].type->layout->size() - (frame_end - base);
  e.object = live_[slot].id;
  writer_.add_event(e);
}

void Translator::release(Event& e) {
  uint32_t slot = live_.find(e.addr);
  if (slot != LiveObjects::kNoSlot) e.object = live_[slot].id;
  writer_.add_event(e);
  if (slot == LiveObjects::kNoSlot || live_[slot].base != e.addr) return;
  drop(live_[slot].id);
  live_.remove(slot);
}

// What an event waited for came, or something else did: it is written as it is.
void Translator::complete_pending() {
  Thread& t = *thread_;
  Event e = t.event;
  switch (t.wait) {
    case Wait::None:
      return;
    case Wait::Callers:
      t.wait = Wait::None;
      return allocate(e);
    case Wait::Value2:
      t.wait = Wait::None;
      if (e.kind == Kind::Exit) exit_ = e;
      writer_.add_event(e);
      return;
    case Wait::InputBytes:  // no bytes came
    case Wait::NondetBytes:
      t.wait = Wait::None;
      return spoil();
  }
}

void Translator::blob_part(const stem_rec& r) {
  Thread& t = *thread_;
  size_t n = static_cast<size_t>(std::min<uint64_t>(t.blob_left, sizeof r));
  t.blob.append(reinterpret_cast<const char*>(&r), n);
  t.blob_left -= n;
  if (t.blob_left == 0) blob_done(t);
}

void Translator::blob_done(Thread& t) {
  std::string bytes = std::move(t.blob);
  t.blob.clear();
  if (t.wait == Wait::Callers && t.blob_type != STEM_BLOB_CALLERS) complete_pending();
  switch (t.blob_type) {
    case STEM_BLOB_INPUT_NAME:
    case STEM_BLOB_NONDET_NAME:
    case STEM_BLOB_THREAD_PATH:
      t.name = std::move(bytes);
      return;
    case STEM_BLOB_INPUT_BYTES: {
      if (t.wait != Wait::InputBytes) return spoil();
      uint32_t id = writer_.add_input({t.name, std::vector<uint8_t>(bytes.begin(), bytes.end())});
      inputs_[t.event.value] = id;
      t.event.value = id;
      t.wait = Wait::None;
      writer_.add_event(t.event);
      return;
    }
    case STEM_BLOB_NONDET_BYTES:
      if (t.wait != Wait::NondetBytes) return spoil();
      t.event.value = writer_.add_nondet({t.name, std::vector<uint8_t>(bytes.begin(), bytes.end())});
      t.wait = Wait::None;
      writer_.add_event(t.event);
      return;
    case STEM_BLOB_THREAD_START:
      return define_thread(t.new_index, t.new_parent, t.name, bytes);
    case STEM_BLOB_MODULE_PATH:
      return modules_.add(bytes, t.module_bias, t.module_begin, t.module_size);
    case STEM_BLOB_CALLERS:
      callers_.resize(bytes.size() / 8);
      std::memcpy(callers_.data(), bytes.data(), callers_.size() * 8);
      if (t.wait == Wait::Callers) complete_pending();
      return;
    case STEM_BLOB_META:
      meta_ = trace::meta_from_json(bytes);
      leafless_ = meta_.recorder == "compiled" && !meta_.semantics;
      writer_.set_meta(meta_);
      return;
    case STEM_BLOB_GROUP:
      if (auto group = Group::parse(bytes)) groups_.push_back(std::move(*group));
      else spoil();
      return;
    case STEM_BLOB_ROUND:
      return define_round(bytes);
    case STEM_BLOB_MESSAGE:
      return message(bytes);
    default:
      return spoil();
  }
}

void Translator::finish() {
  if (finished_) return;
  finished_ = true;
  for (uint32_t i = 0; i < threads_.size(); ++i) {
    thread_ = &threads_[i];
    if (thread_->wait == Wait::Value2 && thread_->event.kind == Kind::Rmw) {
      thread_->event.kind = Kind::Read;  // it did read; whether it wrote nobody can tell
      thread_->event.flags |= trace::kPinned;
    }
    if (thread_->wait == Wait::Value2 || thread_->wait == Wait::Callers) complete_pending();
  }
  for (const std::string& problem : modules_.problems()) {
    std::string text;
    for (char c : problem) {
      if (c == '"' || c == '\\') text += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) text += c;
    }
    writer_.add_message("{\"kind\":\"note\",\"why\":\"" + text + "\"}");
  }
  if (const std::string id = modules_.build_id(meta_.program); meta_.build_id.empty() && !id.empty()) {
    meta_.build_id = id;
    writer_.set_meta(meta_);
  }
  if (broken_) {
    writer_.add_message(
        "{\"kind\":\"note\",\"why\":\"the program wrote over the recorder's memory: the trace ends there\"}");
    writer_.finish(trace::Outcome::Truncated, 0);
  } else if (exit_) {
    auto outcome = exit_->value2 <= static_cast<uint64_t>(trace::Outcome::Truncated)
                       ? static_cast<trace::Outcome>(exit_->value2)
                       : trace::Outcome::Truncated;
    writer_.finish(outcome, static_cast<int>(exit_->value));
  } else if (fault_signal_) {
    writer_.finish(trace::Outcome::Signalled, fault_signal_);
  } else {
    writer_.finish(trace::Outcome::Truncated, 0);
  }
}

}  // namespace stem::collect
