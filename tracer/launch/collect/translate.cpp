#include "tracer/launch/collect/translate.h"

#include <algorithm>
#include <cstring>

#include "trace/eval.h"
#include "trace/meta_json.h"
#include "trace/site_record.h"
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
constexpr int kArity[] = {
#define STEM_OP(Name, text, arity) arity,
#include "trace/ops.def"
};
constexpr uint64_t kMaxBlob = 1ull << 30;
constexpr uint32_t kMaxThreads = 1u << 20;

unsigned kind_of(const stem_rec& r) { return r.head >> 48 & 0xff; }
unsigned aux_of(const stem_rec& r) { return static_cast<unsigned>(r.head >> 56); }
uint64_t addr_of(const stem_rec& r) { return r.head & 0xffffffffffffull; }
// Kind, aux and site.
uint64_t key_of(const stem_rec& r) { return r.head >> 48 | static_cast<uint64_t>(r.site) << 16; }

}  // namespace

trace::ExprId IdRuns::search(uint32_t local) const {
  if (local == 0 || local >= next_) return 0;
  // Mostly one of the last few.
  for (size_t i = runs_.size(), tries = 8; i > 0 && tries > 0; --i, --tries) {
    if (local >= runs_[i - 1].first) return runs_[i - 1].second + (local - runs_[i - 1].first);
  }
  auto after =
      std::upper_bound(runs_.begin(), runs_.end(), local, [](uint32_t v, const auto& run) { return v < run.first; });
  const auto& run = *std::prev(after);
  return run.second + (local - run.first);
}

void Translator::select(uint32_t thread) {
  if (thread >= kMaxThreads) return spoil();
  while (threads_.size() <= thread) threads_.emplace_back();
  thread_ = &threads_[thread];
}

// --- expressions: half of all records --------------------------------------------------------------------------------------------

inline trace::ExprId Translator::constant(unsigned width, uint64_t value) {
  value &= trace::width_mask(width);
  Constant& c = constants_[(value * 0x9e3779b97f4a7c15ull + width) >> 52];
  // One that is no longer recent predicts nothing: better a new one.
  if (c.id && c.width == width && c.value == value && writer_.next_expr() - c.id < trace::Model::kRecent / 2)
    return c.id;
  c = {value, width, writer_.add_expr({trace::Op::Const, static_cast<uint8_t>(width), 0, 0, 0, value})};
  return c.id;
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
  const uint64_t bits = addr_of(r);
  const unsigned width = bits & 0xff, low = bits >> 16 & 0xff;
  unsigned operand_width = bits >> 8 & 0xff;
  if (op_number >= STEM_OP_COUNT || width - 1 >= 64) return spoil();
  if (operand_width - 1 >= 64) operand_width = width;
  const auto op = static_cast<trace::Op>(op_number);
  trace::ExprId a = 0, b = 0, c = 0;
  uint64_t value = 0;
  switch (kArity[op_number]) {
    case 0:
      value = r.value;
      if (op == trace::Op::Read) return spoil();  // leaves come with their events
      if (op == trace::Op::Const) value &= trace::width_mask(width);
      if (op == trace::Op::Input) {
        auto found = inputs_.find(r.value >> 32);
        if (found == inputs_.end()) return spoil();
        value = static_cast<uint64_t>(found->second) << 32 | (r.value & 0xffffffffu);
      }
      break;
    case 1:
      a = operand(r.expr, operand_width, r.value);
      if (op == trace::Op::Extract) value = low;
      break;
    case 2:
      if (op == trace::Op::Opaque) {
        a = t.ids.find(r.expr);
        b = t.ids.find(r.site);
        value = r.value & trace::width_mask(width);
        if (!a && !b) return spoil();
      } else if (op == trace::Op::Concat) {
        a = operand(r.expr, width > operand_width ? width - operand_width : 1, r.value);
        b = operand(r.site, operand_width, r.value);
      } else {
        const bool compares = width == 1 && op >= trace::Op::Eq && op <= trace::Op::Sle;
        const unsigned w = compares ? operand_width : width;
        a = operand(r.expr, w, r.value);
        b = operand(r.site, w, r.value);
      }
      break;
    case 3:
      a = operand(r.expr, 1, r.value);
      b = operand(r.site, width, r.value);
      c = t.has_third ? operand(t.third_id, width, t.third_value) : 0;
      if (!c) spoil();
      break;
  }
  t.has_third = false;
  if (broken_) return;
  t.ids.add(writer_.add_expr(op, width, a, b, c, value));
}

// The expressions of a loop that only computed. Constants are looked up once in a while, not in every round.
void Translator::rounds(const stem_rec& r) {
  Thread& t = *thread_;
  if (r.site - 1 >= rounds_.size()) return spoil();
  Round& round = rounds_[r.site - 1];
  const size_t n = round.nodes.size();
  trace::ExprId input = t.ids.find(r.expr);
  if (!input || r.value > UINT32_MAX / n) return spoil();
  for (uint64_t left = r.value; left;) {
    const uint64_t now = std::min<uint64_t>(left, std::max<size_t>(1, trace::Model::kRecent / 4 / n));
    for (size_t i = 0; i < n; ++i) {
      trace::Writer::RoundNode& node = round.nodes[i];
      if (node.a == 0 || node.b == 0) node.constant = constant(node.width, round.constants[i]);
    }
    const trace::ExprId first = writer_.next_expr();
    input = writer_.add_rounds(round.nodes, round.result, input, static_cast<uint32_t>(now));
    t.ids.add(first, static_cast<uint32_t>(n * now));
    left -= now;
  }
}

void Translator::define_round(const std::string& bytes) {
  stem_round head;
  if (bytes.size() < sizeof head) return spoil();
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.nodes == 0 || head.nodes > trace::Writer::kMostRoundNodes || head.result >= head.nodes || bytes.size() != sizeof head + head.nodes * sizeof(stem_rec))
    return spoil();
  Round round;
  round.result = head.result;
  for (uint32_t i = 0; i < head.nodes; ++i) {
    stem_rec r;
    std::memcpy(&r, bytes.data() + sizeof head + i * sizeof r, sizeof r);
    const unsigned width = addr_of(r) & 0xff, op = aux_of(r);
    if (op < STEM_OP_Add || op > STEM_OP_Xor || width - 1 >= 64 || r.expr > 1 + i || r.site > 1 + i || (r.expr | r.site) == 0) return spoil();
    round.nodes.push_back({static_cast<trace::Op>(op), static_cast<uint8_t>(width), r.expr, r.site, 0});
    round.constants.push_back(r.value);
  }
  rounds_.push_back(std::move(round));
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

// The records of a loop that reads and writes, from its second round on; gives how many were used. 0: it is none.
size_t Translator::loop(const stem_rec* begin, const stem_rec* end) {
  const auto most = static_cast<size_t>(end - begin);
  for (size_t period = 1; period <= trace::Writer::kMostPeriod && 3 * period <= most; ++period) {
    if (key_of(begin[period]) != key_of(begin[0])) continue;
    size_t same = 0;
    for (; same < period; ++same) {
      const stem_rec& r = begin[same];
      const unsigned kind = kind_of(r);
      if ((kind != STEM_KIND_Read && kind != STEM_KIND_Write) || aux_of(r) & STEM_AUX_LEAF || r.expr || key_of(r) != key_of(begin[same + period]) ||
          key_of(r) != key_of(begin[same + 2 * period]))
        break;
    }
    if (same < period) continue;
    for (size_t i = 0; i < period; ++i)
      if (!again(begin[i], kind_of(begin[i]))) return i;
    return period + writer_.repeat_loop(begin + period, most - period, period);
  }
  return 0;
}

void Translator::records(const stem_rec* begin, const stem_rec* end) {
  const stem_rec* look = begin;  // for a loop, from here on
  for (const stem_rec* r = begin; r != end && !broken_; ++r) {
    const Thread& t = *thread_;
    const unsigned kind = kind_of(*r);
    if (t.blob_left == 0 && kind == STEM_RAW_Group) {
      r += group(r, end) - 1;
      continue;
    }
    if (t.blob_left == 0 && t.wait == Wait::None) {
      if (kind == STEM_RAW_Expr) {
        expression(*r);
        continue;
      }
      if (kind == STEM_KIND_Read && r >= look) {
        if (const size_t used = loop(r, end)) {
          r += used - 1;
          continue;
        }
        look = r + 4;
      }
      if (again(*r, kind)) continue;
    }
    record(*r);
  }
}

size_t Translator::group(const stem_rec* r, const stem_rec* end) {
  const uint32_t number = Group::number(*r), size = Group::size_of(*r);
  if (number >= groups_.size() || size != groups_[number].size || size > static_cast<size_t>(end - r)) {
    spoil();
    return 1;
  }
  const Group& group = groups_[number];
  Thread& t = *thread_;
  trace::Writer::Groups done;
  if (t.wait == Wait::None && t.id != kNone) {
    const trace::ExprId next = writer_.next_expr();
    done = writer_.repeat_groups(group.steps, t.id, r, static_cast<size_t>(end - r), size);
    const uint32_t before = t.ids.next() + static_cast<uint32_t>(done.rows) * group.ids;  // those of whole groups
    t.ids.add(next, done.ids);
    if (done.rows && !done.steps) return done.rows * size;
    group.expand(r + done.rows * size, before, expanded_);
  } else {
    group.expand(r, t.ids.next(), expanded_);
  }
  records(expanded_.data() + done.steps, expanded_.data() + expanded_.size());
  return (done.rows + 1) * size;
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
