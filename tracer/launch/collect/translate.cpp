#include "tracer/launch/collect/translate.h"

#include <algorithm>
#include <cstring>

#include "trace/eval.h"
#include "trace/meta_json.h"
#include "trace/site_record.h"
#include "tracer/launch/collect/record_fields.h"
#include "util/error.h"

namespace stem::collect {

using trace::Event;
using trace::Kind;
using trace::kNone;

namespace {

constexpr unsigned kKinds = 0
#define STEM_EVENT(Name, text, visible) +1
#include "trace/events.def"
    ;
constexpr uint64_t kMaxBlob = 1ull << 30;
constexpr uint32_t kMaxThreads = 1u << 20;

}  // namespace

void Translator::select(uint32_t thread) {
  if (thread >= kMaxThreads) return spoil();
  while (threads_.size() <= thread) threads_.emplace_back();
  thread_ = &threads_[thread];
}

// --- expressions: half of all records --------------------------------------------------------------------------------------------

inline trace::ExprId Translator::constant(unsigned width, uint64_t value) {
  value &= trace::width_mask(width);
  const trace::ExprId next = writer_.next_expr();
  if (const trace::ExprId found = constants_.find(width, value, next)) return found;
  writer_.add_expr(trace::Op::Const, width, 0, 0, 0, value);
  constants_.add(width, value, next);
  return next;
}

inline trace::ExprId Translator::operand(uint32_t local, unsigned width, uint64_t value) {
  if (local == 0) return constant(width, value);
  trace::ExprId id = thread_->ids.find(local);
  if (id == 0) spoil();
  return id;
}

void Translator::expression(const stem_rec& r) {
  Thread& t = *thread_;
  const unsigned op_number = aux_of(r);
  if (op_number >= STEM_OP_COUNT) return spoil();
  const ExprFields f(r);
  if (f.width - 1 >= 64) return spoil();
  trace::ExprId a = 0, b = 0, c = 0;
  uint64_t value = 0;
  switch (arity_of(op_number)) {
    case 0:
      value = r.value;
      if (f.op == trace::Op::Read) return spoil();  // leaves come with their events
      if (f.op == trace::Op::Const) value &= trace::width_mask(f.width);
      if (f.op == trace::Op::Input) {
        auto found = inputs_.find(r.value >> 32);
        if (found == inputs_.end()) return spoil();
        value = static_cast<uint64_t>(found->second) << 32 | (r.value & 0xffffffffu);
      }
      break;
    case 1:
      a = operand(r.expr, f.first_width(), r.value);
      if (f.op == trace::Op::Extract) value = f.low;
      break;
    case 2:
      if (f.op == trace::Op::Opaque) {
        a = t.ids.find(r.expr);
        b = t.ids.find(r.site);
        value = r.value & trace::width_mask(f.width);
        if (!a && !b) return spoil();
      } else {
        a = operand(r.expr, f.first_width(), r.value);
        b = operand(r.site, f.second_width(), r.value);
      }
      break;
    case 3:
      a = operand(r.expr, 1, r.value);
      b = operand(r.site, f.width, r.value);
      c = t.has_third ? operand(t.third_id, f.width, t.third_value) : 0;
      if (!c) spoil();
      break;
  }
  t.has_third = false;
  if (broken_) return;
  t.ids.add(writer_.add_expr(f.op, f.width, a, b, c, value));
}

// The expressions of a loop that only computed.
void Translator::rounds(const stem_rec& r) {
  Thread& t = *thread_;
  if (r.site - 1 >= rounds_.size()) return spoil();
  const trace::Round& round = writer_.round(rounds_[r.site - 1]);
  trace::ExprId input = t.ids.find(r.expr);
  if (!input || r.value > UINT32_MAX / round.count()) return spoil();
  for (uint64_t left = r.value; left;) {
    const auto now = static_cast<uint32_t>(std::min<uint64_t>(left, trace::Round::kMostRounds));
    const trace::ExprId first = writer_.next_expr();
    writer_.add_rounds(rounds_[r.site - 1], input, now);
    input = first + round.result_of(now);
    t.ids.add(first + round.constants(), round.count() * now);
    left -= now;
  }
}

void Translator::define_round(const std::string& bytes) {
  stem_round head;
  if (bytes.size() < sizeof head) return spoil();
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.nodes > trace::Round::kMostNodes || bytes.size() != sizeof head + head.nodes * sizeof(stem_rec)) return spoil();
  std::vector<trace::Round::Node> nodes;
  for (uint32_t i = 0; i < head.nodes; ++i) {
    stem_rec r;
    std::memcpy(&r, bytes.data() + sizeof head + i * sizeof r, sizeof r);
    nodes.push_back({static_cast<trace::Op>(aux_of(r)), static_cast<uint8_t>(addr_of(r)), r.expr, r.site, r.value});
  }
  trace::Round round(std::move(nodes), head.result);
  if (!round.valid()) return spoil();
  rounds_.push_back(writer_.add_round(std::move(round)));
}

// An event like the last of its kind and place: nothing needs to be looked up.
inline bool Translator::again(const stem_rec& r, unsigned kind) {
  constexpr uint64_t plain = 1ull << STEM_KIND_Lock | 1ull << STEM_KIND_Unlock | 1ull << STEM_KIND_BarrierArrive |
                             1ull << STEM_KIND_BarrierLeave;
  constexpr uint64_t decides = 1ull << STEM_KIND_Branch | 1ull << STEM_KIND_Pin | 1ull << STEM_KIND_Assert;
  constexpr uint64_t accesses = 1ull << STEM_KIND_Read | 1ull << STEM_KIND_Write;
  static_assert(kKinds <= 64);
  if (kind >= 64) return false;
  const uint64_t bit = 1ull << kind, key = key_of(r);
  Thread& t = *thread_;
  if (bit & accesses) {
    const unsigned aux = aux_of(r), size = aux & 0xf;
    const bool leaf = (aux & STEM_AUX_LEAF) && !leafless_;
    if (size == 0 || size > 8) return false;
    const trace::ExprId next = writer_.next_expr();
    const uint64_t value = size == 8 ? r.value : r.value & ((1ull << 8 * size) - 1);
    const trace::ExprId expr = kind == STEM_KIND_Write && r.expr ? t.ids.find(r.expr) : 0;
    if (!writer_.repeat(key, t.id, static_cast<Kind>(kind), size, addr_of(r), value, expr,
                        leaf && kind == STEM_KIND_Read))
      return false;
    if (leaf && kind == STEM_KIND_Read) t.ids.add(next);
    return true;
  }
  if (bit & decides)
    return writer_.repeat(key, t.id, static_cast<Kind>(kind), 0, addr_of(r), r.value, t.ids.find(r.expr), false);
  // A signal that wakes somebody names a thread.
  if ((bit & plain) || (kind == STEM_KIND_Signal && r.value == 0))
    return writer_.repeat(key ^ static_cast<uint64_t>(r.expr) << 48, t.id, static_cast<Kind>(kind), 0, addr_of(r),
                          r.value, 0, false);
  return false;
}

// The event just written may come again so. `field`: at any address of the same field, otherwise at this one only.
void Translator::can_repeat(const stem_rec& r, uint64_t address, uint32_t slot, bool field) {
  static const uint64_t never_changes = 0;
  uint64_t key = key_of(r);
  if (slot == LiveObjects::kNoSlot) {
    if (address == 0) writer_.can_repeat(key, 0, 0, 1, &never_changes);
    return;
  }
  const Live& live = live_[slot];
  uint64_t first = address, length = 1;
  if (field && live.type->layout && !live.type->frame) {
    const uint64_t each = live.type->layout->size(), offset = address - live.base,
                   within = live.type->array ? offset % each : offset;
    uint64_t begin = 0, end = 0;
    live.type->layout->field(within, &begin, &end);
    if (live.type->layout->is_leaf())
      first = live.base, length = live.size;
    else if (within < each)
      first = address - within + begin, length = end - begin;
  } else if (field && !live.type->layout && !(live.size > 8 && live.size <= 64)) {
    first = live.base, length = live.size;
  }
  writer_.can_repeat(field ? key : key ^ static_cast<uint64_t>(r.expr) << 48, live.base, first, length, &live.stamp);
}

void Translator::records(const stem_rec* begin, const stem_rec* end) {
  for (const stem_rec* r = begin; r != end && !broken_; ++r) {
    const Thread& t = *thread_;
    const unsigned kind = kind_of(*r);
    if (kind == STEM_RAW_Group && t.blob_left == 0) {
      r += groups(r, end) - 1;
      continue;
    }
    if (t.blob_left == 0 && t.wait == Wait::None) {
      if (kind == STEM_KIND_Read || kind == STEM_KIND_Lock) {
        if (const size_t used = along_path(r, end)) {
          r += used - 1;
          continue;
        }
      }
      const trace::ExprId before = writer_.next_expr();
      if (kind == STEM_RAW_Expr) expression(*r);
      else if (!again(*r, kind)) record(*r);
      if (learning_) learn(*r, before);
      continue;
    }
    record(*r);
  }
  learning_ = nullptr;
}

// Groups, one after the other, are written as the records that they stand for, many at once: loops among them are seen then.
size_t Translator::groups(const stem_rec* begin, const stem_rec* end) {
  constexpr size_t kMost = 16384;
  const stem_rec* r = begin;
  uint32_t next = thread_->ids.next();
  size_t count = 0;
  while (r != end && kind_of(*r) == STEM_RAW_Group && count < kMost) {
    const uint32_t number = Group::number(*r), size = Group::size_of(*r);
    if (number >= groups_.size() || size != groups_[number].size || size > static_cast<size_t>(end - r)) {
      spoil();
      break;
    }
    const Group& group = groups_[number];
    if (expanded_.size() < count + group.records.size()) expanded_.resize(2 * (count + group.records.size()));
    group.expand(r, next, &expanded_[count]);
    count += group.records.size();
    next += group.ids;
    r += size;
  }
  if (r == begin) return 1;
  records(expanded_.data(), expanded_.data() + count);  // among which there are no groups
  return static_cast<size_t>(r - begin);
}

void Translator::record(const stem_rec& r) {
  Thread& t = *thread_;
  if (t.blob_left) return blob_part(r);
  unsigned kind = kind_of(r);
  if (t.wait != Wait::None && kind != STEM_RAW_Blob && kind != STEM_RAW_Value2 && kind != STEM_RAW_Expr &&
      kind != STEM_RAW_Expr2 && kind != STEM_RAW_Rounds) {
    complete_pending();
  }
  if (kind == STEM_RAW_Expr) return expression(r);
  switch (kind) {
    case STEM_KIND_Read:
      return memory(r, Kind::Read);
    case STEM_KIND_Write:
      return memory(r, Kind::Write);
    case STEM_KIND_Rmw:
      return memory(r, Kind::Rmw);
    case STEM_RAW_Expr2:
      t.has_third = true;
      t.third_id = r.expr;
      t.third_value = r.value;
      return;
    case STEM_RAW_Switch:
      return select(static_cast<uint32_t>(std::min<uint64_t>(r.value, kMaxThreads)));
    case STEM_RAW_Thread:
      t.new_index = static_cast<uint32_t>(std::min<uint64_t>(r.value, kMaxThreads));
      t.new_parent = r.expr;
      t.name.clear();
      return;
    case STEM_RAW_Value2:
      if (t.wait == Wait::Value2) {
        t.event.value2 = r.value;
        if (t.event.kind == Kind::Rmw) t.event.expr = t.ids.find(r.expr);
        complete_pending();
      }
      return;
    case STEM_RAW_Blob:
      if (r.value > kMaxBlob) return spoil();
      t.blob_left = r.value;
      t.blob_type = aux_of(r);
      t.blob.clear();
      if (t.blob_left == 0) blob_done(t);
      return;
    case STEM_RAW_Module:
      t.module_bias = addr_of(r);
      t.module_begin = r.value;
      t.module_size = r.expr;
      return;
    case STEM_RAW_Exposed:
      if (uint32_t slot = live_.find(addr_of(r)); slot != LiveObjects::kNoSlot) live_[slot].exposed = true;
      return;
    case STEM_RAW_Rounds:
      return rounds(r);
    case STEM_RAW_Ticket:
      return;  // the merge has used it
    default:
      if (kind >= kKinds) return spoil();
      other(r, static_cast<Kind>(kind));
  }
}

// --- memory
// ------------------------------------------------------------------------------------------------------------------

void Translator::memory(const stem_rec& r, Kind kind) {
  Thread& t = *thread_;
  unsigned aux = aux_of(r), size = aux & 0xf;
  if (size == 0 || size > 8) return spoil();
  Event e;
  e.kind = kind;
  e.size = static_cast<uint8_t>(size);
  e.addr = addr_of(r);
  e.value = r.value & trace::width_mask(8 * size);
  e.thread = t.id != kNone ? t.id : thread_id();
  e.site = site(r.site, e.addr);
  // Without expressions nothing says what depends on a value: it is held.
  if (leafless_ && (aux & STEM_AUX_LEAF)) aux = (aux & ~STEM_AUX_LEAF) | STEM_AUX_PINNED;
  e.flags = static_cast<uint16_t>((aux & STEM_AUX_ATOMIC ? trace::kAtomic : 0) |
                                  (aux & STEM_AUX_PINNED && kind != Kind::Write ? trace::kPinned : 0));
  uint32_t slot;
  locate(e, slot);
  if (kind == Kind::Write) {
    if (r.expr) e.expr = t.ids.find(r.expr);
  } else {
    Live* live = slot == LiveObjects::kNoSlot ? nullptr : &live_[slot];
    explain(e, live);
    if (live && live->tainted) e.flags |= trace::kTainted;
    if (aux & STEM_AUX_LEAF) {
      trace::ExprId leaf = writer_.next_expr();
      if (kind == Kind::Rmw) {
        writer_.add_expr({trace::Op::Read, static_cast<uint8_t>(8 * size), 0, 0, 0, writer_.next_event()});
      }
      e.leaf = leaf;
      t.ids.add(leaf);
    }
    if (kind == Kind::Rmw) {
      t.event = e;
      t.wait = Wait::Value2;
      return;
    }
  }
  writer_.add_event(e);
  if (e.site) can_repeat(r, e.addr, slot, true);
}

// Fills in object and variable.
void Translator::locate(Event& e, uint32_t& slot) {
  SiteInfo& info = sites_[e.site];
  slot = info.slot;
  if (slot == LiveObjects::kNoSlot || !live_[slot].contains(e.addr)) {
    slot = find_object(e.addr, e.site);
    sites_[e.site].slot = slot;  // finding may have grown the table
  }
  if (slot == LiveObjects::kNoSlot) return;
  Live& live = live_[slot];
  e.object = live.id;
  e.variable = variable(live, e.addr, e.site);
}

uint32_t Translator::variable(Live& live, uint64_t address, trace::SiteId site) {
  Type& type = *live.type;
  if (type.layout) {
    uint64_t offset = address - live.base + live.shift;
    if (type.array) offset %= type.layout->size();
    if (type.frame && offset >= type.layout->size()) return new_variable(type.name);
    uint32_t field = type.layout->field(offset);
    uint32_t& found = type.variable[field];
    if (found == kNone) {
      std::string path = type.layout->path(field);
      if (type.frame && !path.empty()) path.replace(0, 1, "::");
      found = new_variable(type.name + (type.array ? "[]" : "") + path);
    }
    return found;
  }
  if (sites_[site].program && sites_[site].program->kind == STEM_SITE_CODE && live.size > 8 && live.size <= 64) {
    return new_variable(
        fmt::format("{}+{}", type.name, address - live.base));  // no types there: fields by their offset
  }
  uint32_t path = sites_[site].path;
  if (path == type.last_path) return type.last_variable;
  auto [found, added] = type.by_path.try_emplace(path, kNone);
  if (added) found->second = new_variable(type.name + path_names_[path]);
  type.last_path = path;
  return type.last_variable = found->second;
}

uint32_t Translator::new_variable(const std::string& name) {
  auto [found, added] = variables_.try_emplace(name, 0);
  if (added) {
    found->second = writer_.add_variable(name);
    variable_names_.push_back(name);
  }
  return found->second;
}

uint32_t Translator::find_object(uint64_t address, trace::SiteId) {
  uint32_t slot = live_.find(address);
  if (slot != LiveObjects::kNoSlot) return slot;
  trace::Object o;
  std::string layout;
  if (auto global = modules_.global(address)) {
    const trace::ProgramVariable& v = *global->variable;
    o.kind = trace::ObjectKind::Global;
    o.base = global->base;
    o.size = v.size;
    o.name = v.display.empty() ? v.name : v.display;
    o.identity = v.name.empty() ? o.name : v.name;
    // Statics of several files can share a name.
    std::string where = fmt::format("{}:{}", v.file, v.line);
    auto [known, added] = global_files_.try_emplace(o.identity, where);
    if (!added && known->second != where) o.identity += "@" + where, o.name += "@" + where;
    layout = v.layout;
    Image::Initial initial = global->image->initial(v.address, v.size, global->bias);
    o.zeroed = initial.zero;
    o.initial = std::move(initial.bytes);
  } else {
    auto [begin, end] = live_.gap(address, address & ~4095ull, (address | 4095) + 1);
    o.base = begin;
    o.size = end - begin;
    o.name = "memory without a name";
    o.identity = ordinal("memory#");
  }
  return new_object(std::move(o), layout);
}

uint32_t Translator::new_object(trace::Object object, const std::string& layout_text, bool frame) {
  ended_.clear();
  uint32_t slot = live_.add(object.base, object.size, ended_);
  for (uint32_t id : ended_) drop(id);
  auto& layout = layouts_[layout_text];
  if (!layout) layout = std::make_unique<Layout>(layout_text);
  uint64_t each = layout->size();
  bool array = !frame && each && object.size >= 2 * each && object.size % each == 0;
  auto& type = types_[object.name + (array ? "[]\n" : frame ? "::\n" : "\n") + layout_text];
  if (!type) {
    type = std::make_unique<Type>();
    type->name = object.name;
    type->array = array;
    type->frame = frame;
    if (each) {
      type->layout = layout.get();
      type->variable.assign(layout->fields(), kNone);
    }
  }
  Live& live = live_[slot];
  live.type = type.get();
  live.zeroed = object.zeroed;
  live.initial = object.initial;
  live.id = writer_.add_object(object);
  return slot;
}

std::string Translator::ordinal(const std::string& name) { return name + std::to_string(ordinals_[name]++); }

// Objects that ended stay known for a while: a use after free is worth a name.
void Translator::drop(uint32_t object) {
  to_drop_.push_back(object);
  if (to_drop_.size() > 4096) {
    writer_.drop_object(to_drop_.front());
    to_drop_.pop_front();
  }
}

void Translator::explain(const Event& read, Live* live) {
  trace::Shadow& shadow = writer_.shadow();
  trace::Shadow::Seen seen = shadow.get(read.addr, read.size);
  unsigned all = (1u << read.size) - 1;
  uint64_t known_bits = trace::width_mask(8u * read.size), expected = seen.value;
  bool unseen = false;
  if (seen.known != all) {
    known_bits = 0;
    bool begins = live && (live->zeroed || !live->initial.empty()) && shadow.evicted() == 0;
    for (unsigned i = 0; i < read.size; ++i) {
      uint64_t at = live ? read.addr + i - live->base : 0;
      if (seen.known & (1u << i)) {
        known_bits |= 0xffull << (8 * i);
      } else if (begins && at < live->size && (live->zeroed || at < live->initial.size())) {
        known_bits |= 0xffull << (8 * i);
        if (!live->zeroed) expected |= static_cast<uint64_t>(live->initial[at]) << (8 * i);
      } else if (live && live->exposed && shadow.evicted() == 0) {
        unseen = true;  // nobody wrote it, and somebody unseen had the address
      }
    }
  }
  const bool changed = ((read.value ^ expected) & known_bits) != 0;
  if (!changed && !unseen) return;
  Event e;
  e.kind = Kind::External;
  e.thread = read.thread;
  e.addr = read.addr;
  e.size = read.size;
  e.value = read.value;
  e.object = read.object;
  e.variable = read.variable;
  e.flags = static_cast<uint16_t>(trace::kTainted | (changed ? 0 : trace::kFresh));
  writer_.add_event(e);
  ++externals_;
  if (live) live_.taint(live_.find(read.addr));
}

}  // namespace stem::collect
