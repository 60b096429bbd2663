// Many rounds of a path (trace/path.h) at once: each step is looked at over all rounds before the next one is.
//
// Round by round an item costs some seventy instructions, most of them to keep the model's state as it goes. Here it is
// found first for how many rounds everything will be predicted: addresses go on by their strides, what is read is what
// memory holds or what a step of the path wrote, what is written follows from expressions, from a formula or by its
// stride. Then the state is set to what it is after the last of them. That is a loop over numbers for each step, a few
// instructions an item.
//
// Nothing is changed before all is known. What does not fit (accesses that overlap in any other way than being the
// same, a miss of any prediction but that of a new constant's value) is left to the slower way, round by round.
#include <algorithm>
#include <cstring>

#include "trace/columns.h"

namespace stem::trace {

namespace {

using Step = Path::Step;
constexpr uint64_t kAddress = 0xffffffffffffull;
constexpr size_t kLater = SIZE_MAX;  // instead of a number of rounds: what an operand is made of was not looked at yet
constexpr uint32_t kUnsettled = 3;   // rounds: after a jump a new stride needs two more (Model::State::move_to)

bool is_access(const Step& step) { return step.what == Step::kRead || step.what == Step::kWrite; }

uint64_t load(const uint8_t* at, unsigned size) {
  uint64_t value = 0;
  if (size == 8)
    std::memcpy(&value, at, 8);
  else if (size == 4)
    std::memcpy(&value, at, 4);
  else
    std::memcpy(&value, at, size);
  return value;
}

// How many of n numbers, the first of which lies between two others, do so; with a division only where not all do.
size_t steps_within(uint64_t first, uint64_t stride, uint64_t low, uint64_t high, size_t n) {
  const auto forward = static_cast<int64_t>(stride);
  const uint64_t span = (n - 1) * (forward < 0 ? 0 - stride : stride), room = forward < 0 ? first - low : high - first;
  if (stride == 0 || (span <= room && (forward < 0 ? 0 - stride : stride) <= room)) return n;
  return std::min<size_t>(n, 1 + room / (forward < 0 ? 0 - stride : stride));
}

// Up to the first value that is not the one expected.
size_t equal(const uint64_t* values, const uint64_t* expected, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (values[i] != expected[i]) return i;
  return n;
}

template <typename Of>
void each(uint64_t* out, const uint64_t* a, const uint64_t* b, size_t n, Of of) {
  for (size_t i = 0; i < n; ++i) out[i] = of(a[i], b[i]);
}

// Kept apart for the usual operations: no question which one it is at every number.
void apply_all(Op op, unsigned width, uint64_t given, const uint64_t* a, unsigned a_width, const uint64_t* b,
               unsigned b_width, uint64_t* out, size_t n) {
  const uint64_t mask = width_mask(width);
  if (op == Op::Add)
    each(out, a, b, n, [mask](uint64_t x, uint64_t y) { return (x + y) & mask; });
  else if (op == Op::Sub)
    each(out, a, b, n, [mask](uint64_t x, uint64_t y) { return (x - y) & mask; });
  else if (op == Op::Mul)
    each(out, a, b, n, [mask](uint64_t x, uint64_t y) { return (x * y) & mask; });
  else if (op == Op::Eq)
    each(out, a, b, n, [](uint64_t x, uint64_t y) { return uint64_t{x == y}; });
  else
    each(out, a, b, n, [&](uint64_t x, uint64_t y) { return apply(op, width, x, y, 0, a_width, b_width, given); });
}

}  // namespace

// Do the records come as in the path, at addresses that go on by a stride? Fills in the values of events and their
// places.
size_t Writer::match_records(const Path& path, const stem_rec* first, size_t n) {
  Columns& c = *columns_;
  const size_t count = path.steps.size();
  for (size_t j = 0; j < count && n >= Columns::kLeastRounds; ++j) {
    const Step& step = path.steps[j];
    const stem_rec* r = first + j;
    size_t k = 0;
    if (step.what == Step::kExpr) {
      for (; k < n && r->head == step.head; ++k) r += count;
      n = k;
      continue;
    }
    if (step.what == Step::kRounds) {
      for (; k < n && r->head >> 48 == step.head && r->site == step.site && r->value == step.rounds; ++k) r += count;
      n = k;
      continue;
    }
    const Model::State& s = model_.state_at(step.state);
    const uint64_t address = r->head & kAddress, stride = (r[count].head & kAddress) - address;
    if (address - step.first >= step.length || (step.what == Step::kRead && (!s.listed || s.expr))) return 0;
    n = steps_within(address, stride, step.first, step.first + step.length - 1, n);
    uint64_t* values = c.values[j].data();
    values[0] = s.value;
    const uint64_t mask = is_access(step) ? width_mask(8u * step.size) : ~0ull;
    for (uint64_t head = step.head << 48 | address; k < n && r->head == head && r->site == step.site;
         ++k, head += stride, r += count)
      values[k + 1] = r->value & mask;
    n = k;
    if (step.fixed)
      for (k = 0, r = first + j; k < n; ++k, r += count)
        if (r->expr != step.expr) n = k;
    c.places[j] = {address, stride, 0, 0, nullptr};
    if (!is_access(step)) continue;
    // In one page, and that is there.
    const uint64_t in_page = address & 4095;
    if (in_page + step.size > 4096 || !(c.places[j].bytes = model_.shadow().at(address))) return 0;
    n = steps_within(in_page, stride, 0, 4096 - step.size, n);
  }
  return n;
}

// What was read is what memory holds, or what the path's last write there wrote.
size_t Writer::match_reads(const Path& path, size_t n) {
  Columns& c = *columns_;
  const size_t count = path.steps.size();
  for (size_t j = 0; j < count; ++j) {
    if (!is_access(path.steps[j])) continue;
    auto& place = c.places[j];
    const uint64_t last = place.first + (n - 1) * place.stride;
    place.low = std::min(place.first, last), place.high = std::max(place.first, last) + path.steps[j].size;
  }
  for (size_t j = 0; j < count && n; ++j) {
    const Step& step = path.steps[j];
    if (!is_access(step)) continue;
    const auto& place = c.places[j];
    size_t before = count, after = count;  // the last write there before it in its round; the last one after it
    for (size_t w = 0; w < count; ++w) {
      const auto& other = c.places[w];
      if (path.steps[w].what != Step::kWrite || w == j || place.low >= other.high || other.low >= place.high) continue;
      const uint64_t distance = static_cast<int64_t>(place.stride) < 0 ? 0 - place.stride : place.stride;
      if (place.first != other.first || place.stride != other.stride || step.size != path.steps[w].size) return 0;
      if (distance != 0 && distance < step.size) return 0;
      (w < j ? before : after) = w;
    }
    if (step.what == Step::kWrite) continue;
    const uint64_t* values = c.values[j].data() + 1;
    if (before < count) {
      n = equal(values, c.values[before].data() + 1, n);
      continue;
    }
    const uint8_t* bytes = place.bytes;
    size_t k = 0;
    if (place.stride == 0) {
      if (!model_.shadow().known(place.first, step.size) || load(bytes, step.size) != values[0]) return 0;
      if (after < count)
        k = 1 + equal(values + 1, c.values[after].data() + 1, n - 1);
      else
        for (k = 1; k < n && values[k] == values[0];) ++k;
    } else if (place.stride == step.size && model_.shadow().known(place.low, n * step.size)) {
      if (step.size == 8)
        while (k < n && load(bytes + 8 * k, 8) == values[k]) ++k;
      else
        while (k < n && load(bytes + k * step.size, step.size) == values[k]) ++k;
    } else {
      for (; k < n; ++k) {
        const Shadow::Seen seen = model_.shadow().get(place.first + k * place.stride, step.size);
        if (seen.value != values[k] || seen.known != (1u << step.size) - 1) break;
      }
    }
    n = k;
  }
  return n;
}

// An operand that a step's records name: an expression of the same round or of the round before, or (fixed) one of
// before them all. Goes to the first or second operand of the step's expression.
size_t Writer::match_operand(const Path& path, size_t j, const stem_rec* first, uint32_t stem_rec::* field, size_t n,
                             const IdRuns& ids, bool fixed) {
  Columns& c = *columns_;
  const size_t count = path.steps.size();
  const Step& step = path.steps[j];
  const bool is_first = field == &stem_rec::expr;
  Columns::Operand& out = is_first ? c.expressions[j].a : c.expressions[j].b;
  const stem_rec* r = first + j;
  const uint32_t id = r->*field, more = fixed ? 0 : path.locals, local = ids.next();
  size_t k = 1;
  for (const stem_rec* other = r + count; k < n && other->*field == id + static_cast<uint32_t>(k) * more; ++k)
    other += count;
  n = k;
  const ExprId base = model_.next_expr();
  uint64_t value;
  if (fixed) {
    const ExprId found = ids.find(id);
    unsigned width;
    if (!model_.recent(found, value, width) || base + n * path.globals - found > Model::kRecent) return 0;
    uint64_t* values = c.scratch[is_first ? 0 : 1].data();
    std::fill_n(values, n, value);
    out = {values, width, found, 0};
    return n;
  }
  const bool same = id >= local;
  const uint32_t position = same ? id - local : id + path.locals - local;
  if (position >= path.locals || (same && position >= step.local)) return 0;
  const size_t from = path.by_local[position];
  if (from == Path::kNoStep) return 0;
  const Step& source = path.steps[from];
  if (source.what != Step::kRead && !c.done[from]) return kLater;
  const uint32_t distance = step.global - source.result + (same ? 0 : path.globals);
  uint64_t* values = c.values[from].data();
  if (!same) {
    const ExprId found = ids.find(id);
    unsigned width;
    if (base + step.global - found != distance || !model_.recent(found, value, width)) return 0;
    values[0] = value;
  }
  out = {values + (same ? 1 : 0), source.result_width, 0, distance};
  return n;
}

// Is a new constant known already, or would it make another one of the path forgotten?
bool Writer::displaces(const Path& path, const Step& step, uint64_t value, const Constants& constants) const {
  if (constants.find(step.constant_width, value, model_.next_expr())) return true;
  for (const Step& other : path.steps)
    if (other.constant && !other.fresh &&
        Constants::exclude(step.constant_width, value, other.constant_width, other.constant_value))
      return true;
  return false;
}

size_t Writer::match_expr(const Path& path, size_t j, const stem_rec* first, size_t n, const IdRuns& ids,
                          const Constants& constants) {
  Columns& c = *columns_;
  const size_t count = path.steps.size();
  const Step& step = path.steps[j];
  const Model::Template& t = *step.operands;
  Columns::Expression& e = c.expressions[j];
  e = {};
  const stem_rec* r = first + j;
  if (step.constant) {
    uint64_t* values = c.constants[j].data();
    const uint64_t mask = width_mask(step.constant_width);
    auto field = step.constant == 1 ? &stem_rec::expr : &stem_rec::site;
    ExprId id = 0;
    if (!step.fresh) {
      if ((r->value & mask) != step.constant_value) return 0;
      id = constants.find(step.constant_width, step.constant_value, model_.next_expr());
      if (!id) return 0;
      n = std::min<size_t>(n, (Constants::kKnown - 1 - (model_.next_expr() - id)) / path.globals);  // it must stay so
    }
    // New ones count up or down, so that none comes twice.
    const uint64_t begin = step.fresh ? step.constant_operands->value : r->value & mask, by = (r->value & mask) - begin;
    if (step.fresh && by == 0) return 0;
    size_t k = 0;
    for (; k < n; ++k, r += count) {
      const uint64_t value = r->value & mask;
      if (r->*field != 0 || value != begin + (k + 1) * by || (step.fresh && displaces(path, step, value, constants)))
        break;
      values[k] = value;
    }
    n = k;
    (step.constant == 1 ? e.a : e.b) = {values, step.constant_width, id, step.fresh ? 1u : 0u};
    r = first + j;
  }
  if (step.constant != 1 && n) n = match_operand(path, j, first, &stem_rec::expr, n, ids, t.operand[0].by_absolute);
  if (step.binary && step.constant != 2 && n && n != kLater)
    n = match_operand(path, j, first, &stem_rec::site, n, ids, t.operand[1].by_absolute);
  if (n == kLater) return n;
  auto predicted = [](const Model::Operand& operand, const Columns::Operand& its) {
    if (its.id) return operand.by_absolute && operand.absolute == its.id;
    if (its.distance == 0) return (operand.by_absolute ? operand.absolute : operand.relative) == 0;  // none
    return !operand.by_absolute && operand.relative == its.distance;
  };
  if (n == 0 || !predicted(t.operand[0], e.a) || !predicted(t.operand[1], e.b) || !predicted(t.operand[2], {}))
    return 0;
  uint64_t* out = c.values[j].data() + 1;
  if (step.op == Op::Opaque) {
    const uint64_t mask = width_mask(step.width);
    size_t k = 0;
    for (; k < n && (r->value & mask) == t.value && (step.binary || r->site == 0); ++k, r += count)
      out[k] = r->value & mask;
    e.given = t.value;
    return k;
  }
  if (step.op == Op::Extract) e.given = step.head >> 16 & 0xff;
  if (t.value != e.given) return 0;
  apply_all(step.op, step.width, e.given, e.a.values, e.a.width, e.b.values ? e.b.values : e.a.values, e.b.width, out,
            n);
  return n;
}

size_t Writer::match_rounds(const Path& path, size_t j, const stem_rec* first, size_t n, const IdRuns& ids) {
  Columns& c = *columns_;
  const Step& step = path.steps[j];
  const Model::Template& t = *step.operands;
  Columns::Operand& input = c.expressions[j].a;
  c.expressions[j] = {};
  n = match_operand(path, j, first, &stem_rec::expr, n, ids, t.operand[0].by_absolute);
  if (n == 0 || n == kLater) return n;
  if (t.value != step.rounds) return 0;
  if (t.operand[0].by_absolute ? t.operand[0].absolute != input.id : t.operand[0].relative != input.distance) return 0;
  rounds_[step.round].values(input.values, step.rounds, c.values[j].data() + 1, n);
  return n;
}

// The value of a write without an expression, from what its thread read.
size_t Writer::match_formula(const Path& path, size_t j, size_t n) {
  Columns& c = *columns_;
  const Model::State& s = model_.state_at(path.steps[j].state);
  const uint64_t* from[3];
  for (int i = 0; i < 3; ++i) {
    size_t source = 0;
    while (source < path.steps.size() && (!is_access(path.steps[source]) || path.steps[source].state != s.source[i]))
      ++source;
    if (source < path.steps.size()) {
      from[i] = c.values[source].data() + (source < j ? 1 : 0);
    } else {
      std::fill_n(c.scratch[i].data(), n, model_.state_at(s.source[i]).value);
      from[i] = c.scratch[i].data();
    }
  }
  n = Model::calculate_column(s.formula, path.steps[j].size, from, c.scratch[3].data(), n);
  return equal(c.values[j].data() + 1, c.scratch[3].data(), n);
}

// The value of a write or decision.
size_t Writer::match_event(const Path& path, size_t j, const stem_rec* first, size_t n, const IdRuns& ids) {
  Columns& c = *columns_;
  const Step& step = path.steps[j];
  const Model::State& s = model_.state_at(step.state);
  const uint64_t* values = c.values[j].data() + 1;
  const size_t count = path.steps.size();
  const stem_rec* r = first + j;
  const auto kind = static_cast<Kind>(step.head & 0xff);
  if (!step.fixed && r->expr) {
    c.expressions[j] = {};
    n = match_operand(path, j, first, &stem_rec::expr, n, ids, false);
    if (n == 0 || n == kLater) return n;
    if (c.expressions[j].a.distance != s.expr) return 0;
    return equal(values, c.expressions[j].a.values, n);
  }
  if (s.expr) return 0;
  for (size_t k = 0; k < n; ++k)
    if (!step.fixed && r[k * count].expr) n = k;
  if (kind == Kind::Signal) {
    for (size_t k = 0; k < n; ++k)
      if (values[k]) return k;  // it names a thread
  }
  if (kind == Kind::Write && s.formula) return match_formula(path, j, n);
  for (size_t k = 0; k < n; ++k)
    if (values[k] != s.value + (k + 1) * s.value_stride) return k;
  return n;
}

// Leading: the three items that come first, events, follow what was before the path.
size_t Writer::take_columns(Path& path, const stem_rec* first, size_t rounds, IdRuns& ids, Constants& constants,
                            bool leading) {
  if (!columns_) columns_ = std::make_unique<Columns>();
  size_t n =
      std::min({rounds, kMostRounds, size_t{(kBlockItems - 2 - std::min(items_, kBlockItems - 2)) / path.items}});
  if (n < Columns::kLeastRounds || model_.next_expr() > UINT32_MAX - 2 - path.globals * kMostRounds) return 0;
  const auto* ahead = reinterpret_cast<const char*>(first + n * path.steps.size());
  n = match_records(path, first, n);
  // Other processors wrote the records: ask for what comes after these before it is needed.
  if (n < kMostRounds) ahead = reinterpret_cast<const char*>(first + n * path.steps.size());
  for (size_t i = 0; i < std::min<size_t>(n * path.steps.size() * sizeof(stem_rec), 32768); i += 64)
    __builtin_prefetch(ahead + i);
  if (n >= Columns::kLeastRounds) n = match_reads(path, n);
  // In the order of the path, but for what needs the round before of something after it.
  std::fill_n(columns_->done.begin(), path.steps.size(), false);
  size_t left = path.steps.size();
  for (int pass = 0; pass < 4 && left; ++pass) {
    for (size_t j = 0; j < path.steps.size() && n >= Columns::kLeastRounds; ++j) {
      const Step& step = path.steps[j];
      if (columns_->done[j] || (pass == 0 && step.what == Step::kRounds))
        continue;  // those last: they take the longest
      size_t some = n;
      if (step.what == Step::kExpr)
        some = match_expr(path, j, first, n, ids, constants);
      else if (step.what == Step::kRounds)
        some = match_rounds(path, j, first, n, ids);
      else if (step.what != Step::kRead)
        some = match_event(path, j, first, n, ids);
      if (some == kLater) continue;
      n = some;
      columns_->done[j] = true;
      --left;
    }
  }
  if (n < Columns::kLeastRounds || left) return 0;
  add_columns(path, static_cast<uint32_t>(n), ids, constants, leading);
  return n;
}

void Writer::add_columns(Path& path, uint32_t n, IdRuns& ids, Constants& constants, bool leading) {
  Columns& c = *columns_;
  const ExprId base = model_.next_expr(), last = base + (n - 1) * path.globals;
  for (size_t j = 0; j < path.steps.size(); ++j) {
    const Step& step = path.steps[j];
    const uint64_t* values = c.values[j].data() + 1;
    if (step.what == Step::kExpr || step.leaf)
      for (uint32_t k = 0; k < n; ++k)
        model_.set_value(base + k * path.globals + step.global, step.result_width, values[k]);
    if (step.what == Step::kRounds) {
      const uint32_t exprs = rounds_[step.round].exprs(step.rounds);
      for (uint32_t k = 0; k < n; ++k)
        model_.set_rounds(base + k * path.globals + step.global, exprs, step.result - step.global, step.result_width,
                          values[k], true);
      const ExprId at = last + step.global;
      const Columns::Operand& input = c.expressions[j].a;
      step.operands->operand[0].confirm(at, input.id ? input.id : at - input.distance);
      continue;
    }
    if (step.what == Step::kExpr) {
      const Columns::Expression& e = c.expressions[j];
      const ExprId at = last + step.global;
      auto its = [at](const Columns::Operand& operand) {
        return operand.id ? operand.id : operand.distance ? at - operand.distance : 0;
      };
      step.operands->operand[0].confirm(at, its(e.a));
      step.operands->operand[1].confirm(at, its(e.b));
      if (!step.fresh) continue;
      for (uint32_t k = 0; k < n; ++k) {
        const ExprId id = base + k * path.globals + step.global - 1;
        model_.set_value(id, step.constant_width, c.constants[j][k]);
        constants.add(step.constant_width, c.constants[j][k], id);
      }
      continue;
    }
    Model::State& s = model_.state_at(step.state);
    s.failures = 0;
    s.value = values[n - 1];
    s.value_stride = values[n - 1] - values[n - 2];
    if (step.what != Step::kWrite) continue;
    const auto& place = c.places[j];
    if (place.stride == 0) {
      model_.shadow().set(place.first, step.size, s.value);
    } else if (place.stride == 8 && step.size == 8) {
      std::memcpy(place.bytes, values, 8 * n);
      model_.shadow().mark(place.first, 8 * n);
    } else {
      for (uint32_t k = 0; k < n; ++k) model_.shadow().set(place.first + k * place.stride, step.size, values[k]);
    }
  }
  if (path.locals == path.globals) {
    ids.add(base, n * path.locals);
  } else {
    for (uint32_t k = 0; k < n; ++k)
      for (const auto& [global, exprs] : path.runs) ids.add(base + k * path.globals + global, exprs);
  }
  put_misses(path, n, leading);
  model_.count_exprs(n * path.globals);
  events_ += n * path.events;
  items_ += n * path.items;
}

// What was not predicted: the values of new constants; in the first rounds addresses where a loop begins anew, and
// shapes that came after something else the last time. The states' places are set.
void Writer::put_misses(Path& path, uint32_t n, bool leading) {
  Columns& c = *columns_;
  uint32_t before = hits_, done = 0;  // done: items up to and with the last miss
  auto miss = [&](uint32_t item, uint8_t control) {
    hits_ = before + item - done;
    put_miss(control);
    before = 0;
    done = item + 1;
  };
  auto put_shape_of = [&](uint32_t code, uint32_t hash, bool& predicted, uint8_t& control) {
    if (predicted) return;
    put(kShape, code);
    model_.set_prediction(hash, code);
    predicted = true;
    control &= static_cast<uint8_t>(~kHitShape);
  };
  auto put_constant = [&](uint32_t k, size_t j) {
    Step& step = path.steps[j];
    uint8_t control = static_cast<uint8_t>(~kHitValue);
    put_shape_of(step.constant_code, step.constant_hash, step.constant_predicted, control);
    uint64_t& known = step.constant_operands->value;
    put(kConstant, zigzag(c.constants[j][k] - known));
    known = c.constants[j][k];
    miss(k * path.items + step.item - 1, control);
  };
  // A shape that surprises in the context before the path: that may be one of the path's own contexts, too.
  bool surprise = false;
  Model::Context context = model_.context();
  for (size_t j = 0; j < 3 && leading; context.push(path.steps[j++].code))
    surprise |= !model_.predicts(context.hash, path.steps[j].code);
  size_t count = 0;
  for (size_t j = 0; j < path.steps.size(); ++j) {
    const Step& step = path.steps[j];
    bool moves = false;
    if (step.what != Step::kExpr && step.what != Step::kRounds) {
      Model::State& s = model_.state_at(step.state);
      const auto& place = c.places[j];
      moves = place.stride != s.stride || place.first - step.base != s.next_offset();
      if (!moves) s.offset = place.first + (n - 1) * place.stride - step.base, s.moved = s.stride;
    }
    if (moves || step.fresh || !step.predicted || surprise) c.unsettled[count++] = {static_cast<uint16_t>(j), moves};
  }
  bool settled = false;
  for (uint32_t k = 0; k < kUnsettled && !settled; ++k) {
    settled = k > 0 && path.fresh.empty();
    for (size_t u = 0; u < count; ++u) {
      auto& [j, moves] = c.unsettled[u];
      Step& step = path.steps[j];
      if (step.fresh) put_constant(k, j);
      uint8_t control = 0xff;
      if (k == 0 && surprise && j < 3) {
        const uint32_t hash = model_.context().hash;
        bool predicted = model_.predicted_shape() == step.code;
        if (!predicted)
          for (Step& other : path.steps)
            if (other.hash == hash) other.predicted = other.code == step.code;
        put_shape_of(step.code, hash, predicted, control);
        model_.followed_as_predicted(step.code);
      } else if (k != 0 || !leading || j >= 3) {
        put_shape_of(step.code, step.hash, step.predicted, control);
      }
      if (moves) {
        Model::State& s = model_.state_at(step.state);
        const auto& place = c.places[j];
        const uint64_t offset = place.first + k * place.stride - step.base;
        if (offset != s.next_offset()) {
          put(kOffset, zigzag(offset - s.offset));
          control &= static_cast<uint8_t>(~kHitOffset);
        }
        s.move_to(offset);
        moves = place.stride != s.stride;
        settled &= !moves;
        if (!moves) s.offset = place.first + (n - 1) * place.stride - step.base, s.moved = s.stride;
      }
      if (control != 0xff) miss(k * path.items + step.item, control);
    }
  }
  for (uint32_t k = kUnsettled; k < n && !path.fresh.empty(); ++k)
    for (uint16_t j : path.fresh) put_constant(k, j);
  hits_ = before + n * path.items - done;
}

}  // namespace stem::trace
