// Writer::repeat_groups: the events of a stretch of code that runs over and over, straight from its recorder's groups.
//
// The same as repeat() for each event, and the same file byte by byte; what is the same for every run of the stretch is
// looked up once for all those that follow one another: the last event of each shape, its state in the model, the page
// of memory. From the second run on the shapes are known to be predicted, if they are, so nothing is done about them
// until the end.
#include <algorithm>
#include <array>
#include <cstring>

#include "trace/writer.h"

namespace stem::trace {

namespace {

using Does = GroupStep::Does;

template <typename Number>
uint64_t load_as(const char* from) {
  Number value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline uint64_t load(const stem_rec* r, unsigned at, unsigned size) {
  const char* from = reinterpret_cast<const char*>(r) + at;
  switch (size) {
    case 8:
      return load_as<uint64_t>(from);
    case 4:
      return load_as<uint32_t>(from);
    case 2:
      return load_as<uint16_t>(from);
    case 1:
      return load_as<uint8_t>(from);
    default:
      return 0;  // there are no others
  }
}

constexpr uint64_t kAddress = 0xffffffffffffull;

}  // namespace

// What a step needs of this writer.
struct Writer::GroupLane {
  Model::State* state;
  uint32_t index;  // of the state
  uint32_t code;
  uint64_t first, length, base;
  Shadow::Place place;  // the page it accessed last
};

// One run through the group, like repeat(). Gives the first step that was not done, because something has to be
// looked up for it.
size_t Writer::group_row(std::span<const GroupStep> steps, GroupLane* lanes, const stem_rec* r, uint32_t& ids) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const GroupStep& step = steps[i];
    const ExprId next = model_.next_expr();
    if (step.does == Does::Opaque) {
      const uint64_t value = step.at_value ? load(r, step.at_value, step.size) : 0;
      add_expr(Op::Opaque, step.width, step.expr ? next - step.expr : 0, step.other ? next - step.other : 0, 0,
               value & width_mask(step.width));
      ++ids;
      continue;
    }
    GroupLane& lane = lanes[i];
    Model::State& s = *lane.state;
    uint8_t control = 0xff;
    uint64_t addr = step.addr;
    if (step.at_addr) addr += load(r, step.at_addr, 8);
    addr &= kAddress;
    if (addr - lane.first >= lane.length) return i;
    uint64_t value;
    if (step.does == Does::Read) {
      value = load(r, step.at_value, step.size);
      const Shadow::Seen seen = model_.shadow().get(addr, step.size, lane.place);
      if (seen.value != value || seen.known != (1u << step.size) - 1) return i;
      s.failures = 0;
    } else {
      value = step.does == Does::Branch ? r->head >> 32 & 0xff : load(r, step.at_value, step.size);
      const Kind kind = step.does == Does::Write ? Kind::Write : step.does == Does::Pin ? Kind::Pin : Kind::Branch;
      const uint64_t predicted = model_.predict_value(s, kind, step.size, addr, step.expr ? next - step.expr : 0);
      if (value != predicted) {
        control &= static_cast<uint8_t>(~kHitValue);
        put(kValue, zigzag(value - predicted));
        if (kind == Kind::Write && step.expr == 0) model_.learn_formula(s, step.size, value);
      } else {
        s.failures = 0;
      }
      if (kind == Kind::Write) model_.shadow().set(addr, step.size, value, lane.place);
    }
    const bool predicted_shape = model_.predicted_shape() == lane.code;
    if (!predicted_shape) {
      control &= static_cast<uint8_t>(~kHitShape);
      put(kShape, lane.code);
    }
    const uint64_t offset = addr - lane.base, moved = offset - s.offset;
    if (moved != s.stride) {
      control &= static_cast<uint8_t>(~kHitOffset);
      put(kOffset, zigzag(moved));
      s.stride = moved;
    }
    s.offset = offset;
    if (step.expr != s.expr) {
      control &= static_cast<uint8_t>(~kHitExpr);
      put(kExprs, step.expr);
      s.expr = step.expr;
    }
    s.value_stride = value - s.value;
    s.value = value;
    put_control(control);
    if (step.does == Does::Read) model_.note_read(lane.index);
    if (step.leaf) {
      model_.add_leaf(8u * step.size, value);
      ++ids;
    }
    if (predicted_shape)
      model_.followed_as_predicted(lane.code);
    else
      model_.followed_by(lane.code);
    ++events_;
    item_done();
  }
  return steps.size();
}

// --- many runs through a group
// --------------------------------------------------------------------------------------------------
//
// Where all shapes are predicted and no two steps share a state, the steps can be looked at one by one, each over all
// runs (rows) at once. Addresses advance by a stride, after the first row perhaps by another one; values that were read
// are those of memory, values written follow the formula; a pin has the value of its read, which is a leaf of the same
// row. If a row fails at any step, the rows before it are taken. Nothing is changed before that is known: what is read
// after it was written in the same row (or, where the address stays, in the row before) is compared with what the
// recorder says was written. Any other overlap is left to group_row().

struct Writer::GroupColumn {
  Does does;
  uint8_t size;
  uint8_t formula;
  uint16_t at_value;
  uint16_t source[3];      // steps of the same row, or kElsewhere
  uint64_t given[3];       // values of sources that are elsewhere
  uint64_t first, stride;  // addresses
};

namespace {

constexpr uint16_t kElsewhere = 0xffff;

// How many rows, from the first on, have the values of this sequence.
template <typename Number>
size_t same_values(const char* at, size_t apart, size_t rows, const char* other, size_t other_apart) {
  size_t row = 0;
  for (; row < rows; ++row, at += apart, other += other_apart)
    if (load_as<Number>(at) != load_as<Number>(other)) break;
  return row;
}

size_t same_values(unsigned size, const char* at, size_t apart, size_t rows, const char* other, size_t other_apart) {
  switch (size) {
    case 8:
      return same_values<uint64_t>(at, apart, rows, other, other_apart);
    case 4:
      return same_values<uint32_t>(at, apart, rows, other, other_apart);
    case 2:
      return same_values<uint16_t>(at, apart, rows, other, other_apart);
    default:
      return same_values<uint8_t>(at, apart, rows, other, other_apart);
  }
}

template <unsigned size>
void copy_values(const char* from, size_t apart, size_t rows, uint8_t* to, size_t to_apart) {
  for (; rows; --rows, from += apart, to += to_apart) std::memcpy(to, from, size);
}

void copy_values(unsigned size, const char* from, size_t apart, size_t rows, uint8_t* to, size_t to_apart) {
  switch (size) {
    case 8:
      return copy_values<8>(from, apart, rows, to, to_apart);
    case 4:
      return copy_values<4>(from, apart, rows, to, to_apart);
    case 2:
      return copy_values<2>(from, apart, rows, to, to_apart);
    default:
      return copy_values<1>(from, apart, rows, to, to_apart);
  }
}

uint64_t sign_extended(uint64_t address) { return static_cast<uint64_t>(static_cast<int64_t>(address << 16) >> 16); }

}  // namespace

// Of the addresses of two steps: none of one is one of the other, or each row has the same one in both and no two rows
// have one in common, unless all have the same.
enum class Writer::Overlap { None, Rows, Other };

Writer::Overlap Writer::overlap_of(const GroupColumn& a, const GroupColumn& b, size_t rows) {
  const auto distance = static_cast<int64_t>(sign_extended(a.first - b.first)),
             a_last = static_cast<int64_t>((rows - 1) * a.stride), b_last = static_cast<int64_t>((rows - 1) * b.stride);
  const int64_t low = std::min<int64_t>(0, b_last) - std::max<int64_t>(0, a_last),
                high = std::max<int64_t>(0, b_last) - std::min<int64_t>(0, a_last);
  if (distance + a.size <= low || distance >= high + b.size) return Overlap::None;
  if (distance != 0 || a.stride != b.stride || a.size != b.size) return Overlap::Other;
  const uint64_t step = static_cast<int64_t>(a.stride) < 0 ? 0 - a.stride : a.stride;
  return step == 0 || step >= a.size ? Overlap::Rows : Overlap::Other;
}

// What must be so of the states; false: the steps cannot be taken one by one.
bool Writer::begin_columns(std::span<const GroupStep> steps, const GroupLane* lanes, GroupColumn* columns) {
  uint64_t seen = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const GroupStep& step = steps[i];
    const GroupLane& lane = lanes[i];
    const Model::State& s = *lane.state;
    if (step.does == Does::Opaque || s.expr != step.expr || (step.does == Does::Write && step.expr)) return false;
    const uint64_t bit = 1ull << (lane.index * 0x9e3779b1u >> 26);
    if (seen & bit)
      for (size_t k = 0; k < i; ++k)
        if (lanes[k].index == lane.index) return false;
    seen |= bit;
    if (step.does == Does::Read && !s.listed) return false;
    const bool access = step.does == Does::Read || step.does == Does::Write;
    if (!access && (s.stride != 0 || s.offset + lane.base != 0 || lane.first != 0)) return false;
    if (step.does == Does::Pin && step.pinned >= i) return false;
    GroupColumn& c = columns[i];
    c.does = step.does;
    c.size = step.size;
    c.at_value = step.at_value;
    c.formula = step.does == Does::Write ? s.formula : 0;
    if (!c.formula) continue;
    for (int k = 0; k < 3; ++k) {
      c.source[k] = kElsewhere;
      c.given[k] = model_.state_at(s.source[k]).value;
      for (size_t j = 0; j < steps.size(); ++j) {
        if (lanes[j].index != s.source[k]) continue;
        if (j >= i) return false;  // of the row before
        c.source[k] = static_cast<uint16_t>(j);
      }
    }
  }
  return true;
}

// Addresses: how many rows are in the lane and on the way.
size_t Writer::group_addresses(const GroupStep& step, const GroupLane& lane, GroupColumn& c, const stem_rec* first,
                               size_t apart, size_t rows) {
  const char* at = reinterpret_cast<const char*>(first) + step.at_addr;
  c.first = (step.addr + (step.at_addr ? load_as<uint64_t>(at) : 0)) & kAddress;
  c.stride = 0;
  if (c.first - lane.first >= lane.length) return 0;
  if (!step.at_addr || rows == 1) return rows;
  const uint64_t start = load_as<uint64_t>(at);
  c.stride = load_as<uint64_t>(at + apart) - start;
  size_t row = 1;
  uint64_t wanted = start;
  for (; row < rows; ++row)
    if (load_as<uint64_t>(at + row * apart) != (wanted += c.stride)) break;
  c.stride = sign_extended(c.stride);
  while (row > 1 && ((c.first + (row - 1) * c.stride) & kAddress) - lane.first >= lane.length) --row;
  return row;
}

// Values that were read.
size_t Writer::group_reads(std::span<const GroupStep> steps, const GroupColumn* columns, size_t i, GroupLane& lane,
                           const stem_rec* first, size_t apart, size_t rows) {
  const GroupColumn& c = columns[i];
  const char* at = reinterpret_cast<const char*>(first) + c.at_value;
  const char* written = nullptr;  // by a step before it, or after it in the row before
  bool before = false;
  for (size_t k = 0; k < steps.size(); ++k) {
    if (columns[k].does != Does::Write) continue;
    const Overlap overlap = overlap_of(c, columns[k], rows);
    if (overlap == Overlap::None) continue;
    if (overlap == Overlap::Other) return 0;
    const char* its = reinterpret_cast<const char*>(first) + columns[k].at_value;
    if (k < i)
      written = its, before = false;
    else if (c.stride == 0 && (!written || before))
      written = its, before = true;
  }
  if (written && !before) return same_values(c.size, at, apart, rows, written, apart);
  if (!written && c.stride && rows > 1) {
    const uint64_t end = c.first + (rows - 1) * c.stride, low = std::min(c.first, end);
    if (const uint8_t* bytes = model_.shadow().known_bytes(low, std::max(c.first, end) + c.size - 1, lane.place))
      return same_values(c.size, at, apart, rows, reinterpret_cast<const char*>(bytes) + (c.first - low), c.stride);
  }
  if (!model_.shadow().holds(c.first, c.size, load(first, c.at_value, c.size), lane.place)) return 0;
  if (written) return 1 + same_values(c.size, at + apart, apart, rows - 1, written, apart);
  if (c.stride == 0) return 1 + same_values(c.size, at + apart, apart, rows - 1, at, 0);
  size_t row = 1;
  uint64_t addr = c.first;
  for (; row < rows; ++row) {
    addr += c.stride;
    if (!model_.shadow().holds(addr & kAddress, c.size,
                               load(first, static_cast<unsigned>(c.at_value + row * apart), c.size), lane.place))
      break;
  }
  return row;
}

// Values that were written: how many rows are as predicted.
size_t Writer::group_writes(const GroupColumn* columns, size_t i, const Model::State& s, const stem_rec* first,
                            size_t apart, size_t rows) {
  const GroupColumn& c = columns[i];
  uint64_t value = s.value;
  const uint64_t stride = s.value_stride;
  if (c.formula > 1) {  // 1: a copy
    Model::Numbers from[3];
    bool numbers = true;
    for (int k = 0; k < 3; ++k) {
      const bool elsewhere = c.source[k] == kElsewhere;
      from[k] = elsewhere ? Model::Numbers{reinterpret_cast<const char*>(&c.given[k]), 0}
                          : Model::Numbers{reinterpret_cast<const char*>(first) + columns[c.source[k]].at_value, apart};
      numbers &= elsewhere || columns[c.source[k]].size >= c.size;
    }
    if (numbers)
      return Model::calculate_rows(c.formula, c.size, from, {reinterpret_cast<const char*>(first) + c.at_value, apart},
                                   rows);
  }
  for (size_t row = 0; row < rows; ++row) {
    const auto by = static_cast<unsigned>(row * apart);
    const uint64_t actual = load(first, c.at_value + by, c.size);
    uint64_t from[3], predicted = value + stride;
    if (c.formula) {
      for (int k = 0; k < 3; ++k)
        from[k] = c.source[k] == kElsewhere
                      ? c.given[k]
                      : load(first, columns[c.source[k]].at_value + by, columns[c.source[k]].size);
      if (!Model::calculate(c.formula, c.size, from, predicted)) return row;
    }
    if (actual != predicted) return row;
    value = actual;
  }
  return rows;
}

// Gives how many rows were added.
size_t Writer::group_columns(std::span<const GroupStep> steps, GroupLane* lanes, const uint32_t* codes,
                             const uint32_t* hashes, const stem_rec* first, size_t size, size_t rows, uint32_t& ids) {
  std::array<GroupColumn, kMostGroupSteps> columns;
  const size_t n = steps.size(), apart = size * sizeof(stem_rec);
  size_t shape_at[Model::kMostMisses], shapes = 0;
  if (!begin_columns(steps, lanes, columns.data()) || !model_.predicts_round(codes, hashes, n, shape_at, shapes))
    return 0;
  for (size_t i = 0; i < n && rows; ++i)
    if (columns[i].does == Does::Read || columns[i].does == Does::Write)
      rows = group_addresses(steps[i], lanes[i], columns[i], first, apart, rows);
  for (size_t i = 0; i < n && rows; ++i) {
    if (columns[i].does == Does::Read)
      rows = group_reads(steps, columns.data(), i, lanes[i], first, apart, rows);
    else if (columns[i].does == Does::Write)
      rows = group_writes(columns.data(), i, *lanes[i].state, first, apart, rows);
    for (size_t k = 0; k < i && rows && columns[i].does == Does::Write; ++k)
      if (columns[k].does == Does::Write && overlap_of(columns[i], columns[k], rows) == Overlap::Other) rows = 0;
  }
  if (rows == 0 || (shapes && shape_at[shapes - 1] >= rows * n)) return 0;

  // What was not as predicted, in the order of the items.
  struct Miss {
    size_t item;
    Hit what;
    uint64_t value;
  };
  std::array<Miss, 4 * kMostGroupSteps> misses;
  size_t miss_count = 0;
  auto miss = [&](size_t item, Hit what, uint64_t value) {
    size_t at = miss_count++;
    for (; at > 0 && misses[at - 1].item > item; --at) misses[at] = misses[at - 1];
    misses[at] = {item, what, value};
  };
  for (size_t i = 0; i < n; ++i) {
    if (columns[i].does != Does::Branch) continue;
    uint64_t value = lanes[i].state->value, stride = lanes[i].state->value_stride;
    for (size_t row = 0; row < rows; ++row) {
      const uint64_t taken = first[row * size].head >> 32 & 0xff;
      if (taken != value + stride) {
        if (miss_count == misses.size() / 2)
          rows = row;  // not the first: others are left
        else
          miss(row * n + i, kHitValue, taken - value - stride);
      }
      stride = taken - value;
      value = taken;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    Model::State& s = *lanes[i].state;
    const GroupColumn& c = columns[i];
    const auto last = static_cast<unsigned>((rows - 1) * apart);
    s.failures = 0;
    if (c.does == Does::Branch) {
      const uint64_t value = first[(rows - 1) * size].head >> 32 & 0xff;
      s.value_stride = value - (rows > 1 ? first[(rows - 2) * size].head >> 32 & 0xff : s.value);
      s.value = value;
      continue;
    }
    const uint64_t value = load(first, c.at_value + last, c.size);
    s.value_stride =
        value - (rows > 1 ? load(first, static_cast<unsigned>(c.at_value + last - apart), c.size) : s.value);
    s.value = value;
    if (c.does == Does::Pin) continue;
    const uint64_t moved = c.first - lanes[i].base - s.offset;
    if (moved != s.stride) miss(i, kHitOffset, moved);
    s.stride = moved;
    if (rows > 1 && c.stride != moved) miss(n + i, kHitOffset, c.stride), s.stride = c.stride;
    s.offset = c.first + (rows - 1) * c.stride - lanes[i].base;
    if (c.does != Does::Write) continue;
    const char* from = reinterpret_cast<const char*>(first) + c.at_value;
    const uint64_t end = c.first + (rows - 1) * c.stride, low = std::min(c.first, end);
    if (uint8_t* bytes = model_.shadow().known_bytes(low, std::max(c.first, end) + c.size - 1, lanes[i].place)) {
      copy_values(c.size, from, apart, rows, bytes + (c.first - low), c.stride);
      continue;
    }
    uint64_t addr = c.first;
    for (size_t row = 0; row < rows; ++row, addr += c.stride)
      model_.shadow().set(addr & kAddress, c.size, load(first, static_cast<unsigned>(c.at_value + row * apart), c.size),
                          lanes[i].place);
  }
  for (size_t k = 0; k < shapes; ++k) {
    miss(shape_at[k], kHitShape, codes[shape_at[k] % n]);
    put(kShape, codes[shape_at[k] % n]);
  }
  model_.learn_successors(codes, hashes, n, shape_at, shapes);
  size_t item = 0;
  for (size_t k = 0; k < miss_count;) {
    const size_t at = misses[k].item;
    uint8_t control = 0xff;
    for (; k < miss_count && misses[k].item == at; ++k) {
      control &= static_cast<uint8_t>(~misses[k].what);
      if (misses[k].what != kHitShape) put(misses[k].what == kHitValue ? kValue : kOffset, zigzag(misses[k].value));
    }
    hits_ += static_cast<uint32_t>(at - item);
    put_miss(control);
    item = at + 1;
  }
  hits_ += static_cast<uint32_t>(rows * n - item);
  events_ += rows * n;
  items_ += static_cast<uint32_t>(rows * n);
  std::array<const char*, kMostGroupSteps> leaves;
  std::array<unsigned, kMostGroupSteps> widths;
  size_t leaf_count = 0;
  bool long_ones = true;
  for (size_t i = 0; i < n; ++i) {
    if (!steps[i].leaf) continue;
    leaves[leaf_count] = reinterpret_cast<const char*>(first) + columns[i].at_value;
    widths[leaf_count++] = 8u * columns[i].size;
    long_ones &= columns[i].size == 8;
  }
  if (long_ones)
    model_.add_leaves(rows, leaf_count, widths.data(),
                      [&](size_t row, size_t k) { return load_as<uint64_t>(leaves[k] + row * apart); });
  else
    model_.add_leaves(rows, leaf_count, widths.data(), [&](size_t row, size_t k) {
      return load(reinterpret_cast<const stem_rec*>(leaves[k] + row * apart), 0, widths[k] / 8);
    });
  ids += static_cast<uint32_t>(rows * leaf_count);
  for (size_t back = 3; back > 0; --back) model_.followed_as_predicted(lanes[n - back].code);
  return rows;
}

// Kept for the groups that came last.
const uint32_t* Writer::round_hashes(std::span<const GroupStep> steps, const uint32_t* codes) {
  RoundHashes& kept = round_hashes_[steps[0].key * 0x9e3779b97f4a7c15ull >> 58];
  const size_t n = steps.size();
  if (kept.codes.size() == n && std::memcmp(kept.codes.data(), codes, n * sizeof *codes) == 0)
    return kept.hashes.data();
  kept.codes.assign(codes, codes + n);
  kept.hashes.resize(n);
  Model::round_hashes(codes, n, kept.hashes.data());
  return kept.hashes.data();
}

Writer::Groups Writer::repeat_groups(std::span<const GroupStep> steps, ThreadId thread, const stem_rec* first,
                                     size_t available, size_t size) {
  constexpr uint64_t kSame = ~(0xffull << 32);  // a head without the branch's outcome
  const size_t n = steps.size();
  Groups done;
  if (n == 0 || n > kMostGroupSteps || thread != model_.thread()) return done;
  std::array<GroupLane, kMostGroupSteps> lanes;
  std::array<uint32_t, kMostGroupSteps> codes;
  for (size_t i = 0; i < n; ++i) {
    codes[i] = 0;
    if (steps[i].does == Does::Opaque) continue;
    const Lane& lane = lanes_[lane_index(steps[i].key, thread)];
    if (lane.raw != steps[i].key || lane.thread != thread || *lane.stamp_at != lane.stamp) return done;
    lanes[i] = {&model_.state_at(lane.state), lane.state, lane.code, lane.first, lane.length, lane.base, {nullptr}};
    codes[i] = lane.code;
  }
  size_t rows = 1;  // how many there are
  for (; (rows + 1) * size <= available && ((first[rows * size].head ^ first->head) & kSame) == 0; ++rows)
    __builtin_prefetch(first + (rows + 16) * size);  // they come from another processor's cache
  const uint32_t* hashes = rows > 1 && n > 2 ? round_hashes(steps, codes.data()) : nullptr;
  while (done.rows < rows) {
    const size_t room = (kBlockItems - 2 - std::min(items_, kBlockItems - 2)) / n,
                 more = std::min(rows - done.rows, room);
    if (more > 1 && hashes) {
      const size_t did =
          group_columns(steps, lanes.data(), codes.data(), hashes, first + done.rows * size, size, more, done.ids);
      done.rows += did;
      if (did) continue;
    }
    done.steps = group_row(steps, lanes.data(), first + done.rows * size, done.ids);
    if (done.steps < n) return done;
    done.steps = 0;
    ++done.rows;
  }
  return done;
}

}  // namespace stem::trace
