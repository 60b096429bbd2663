// Writer::repeat_groups: the events of a stretch of code that runs over and over, straight from its recorder's groups.
//
// The same as repeat() for each event, and the same file byte by byte; what is the same for every run of the stretch is looked up once
// for all those that follow one another: the last event of each shape, its state in the model, the page of memory. From the second run
// on the shapes are known to be predicted, if they are, so nothing is done about them until the end.
#include <array>
#include <cstring>

#include "trace/writer.h"

namespace stem::trace {

namespace {

using Does = GroupStep::Does;

uint64_t load(const stem_rec* r, unsigned at, unsigned size) {
  const char* from = reinterpret_cast<const char*>(r) + at;
  uint64_t value = 0;
  switch (size) {
    case 8: std::memcpy(&value, from, 8); break;
    case 4: std::memcpy(&value, from, 4); break;
    default: std::memcpy(&value, from, size);
  }
  return value;
}

}  // namespace

// What a step needs of this writer.
struct Writer::GroupLane {
  Model::State* state;
  uint32_t index;  // of the state
  uint32_t code;
  uint64_t first, length, base;
  Shadow::Place place;  // the page it accessed last
};

// Gives how many steps were done: one that cannot be, or has to be looked at, is the first that was not. kRun: nothing is done about
// shapes, and the block has room.
template <bool kRun>
inline size_t Writer::group_row(std::span<const GroupStep> steps, GroupLane* lanes, const stem_rec* r, uint32_t& ids) {
  uint32_t hits = 0;  // kRun: since the last control byte, and not in hits_
  size_t i = 0;
  for (; i < steps.size(); ++i) {
    const GroupStep& step = steps[i];
    const ExprId next = model_.next_expr();
    if (step.does == Does::Opaque) {
      const uint64_t value = step.at_value ? load(r, step.at_value, step.size) : 0;
      add_expr(Op::Opaque, step.width, step.expr ? next - step.expr : 0, step.other ? next - step.other : 0, 0, value & width_mask(step.width));
      ++ids;
      continue;
    }
    GroupLane& lane = lanes[i];
    Model::State& s = *lane.state;
    uint8_t control = 0xff;
    const bool access = step.does == Does::Read || step.does == Does::Write;
    uint64_t addr = 0;
    if (access) {
      addr = step.addr;
      if (step.at_addr) addr += load(r, step.at_addr, 8);
      addr &= 0xffffffffffffull;
    }
    if (addr - lane.first >= lane.length) break;
    const uint64_t value = step.does == Does::Branch ? r->head >> 32 & 0xff : load(r, step.at_value, step.size);
    if (step.does == Does::Read) {
      const Shadow::Seen seen = model_.shadow().get(addr, step.size, lane.place);
      if (seen.value != value || seen.known != (1u << step.size) - 1) break;
      s.failures = 0;
    } else {
      const Kind kind = step.does == Does::Write ? Kind::Write : step.does == Does::Pin ? Kind::Pin : Kind::Branch;
      const uint64_t predicted = model_.predict_value(s, kind, access ? step.size : 0, addr, step.expr ? next - step.expr : 0);
      if (value != predicted) {
        control &= static_cast<uint8_t>(~kHitValue);
        put(kValue, zigzag(value - predicted));
        if (kind == Kind::Write && step.expr == 0) model_.learn_formula(s, step.size, value);
      } else {
        s.failures = 0;
      }
      if (kind == Kind::Write) model_.shadow().set(addr, step.size, value, lane.place);
    }
    bool predicted_shape = true;
    if constexpr (!kRun) {
      predicted_shape = model_.predicted_shape() == lane.code;
      if (!predicted_shape) {
        control &= static_cast<uint8_t>(~kHitShape);
        put(kShape, lane.code);
      }
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
    if (!kRun) {
      put_control(control);
    } else if (control == 0xff) {
      ++hits;
    } else {
      hits_ += hits;
      hits = 0;
      put_miss(control);
    }
    if (step.does == Does::Read) {
      model_.note_read(lane.index);
      if (step.leaf) {
        model_.add_leaf(8u * step.size, value);
        ++ids;
      }
    }
    if constexpr (!kRun) {
      if (predicted_shape) model_.followed_as_predicted(lane.code);
      else model_.followed_by(lane.code);
      ++events_;
      item_done();
    }
  }
  if constexpr (kRun) {
    hits_ += hits;
    events_ += i;
    items_ += static_cast<uint32_t>(i);
  }
  return i;
}

Writer::Groups Writer::repeat_groups(std::span<const GroupStep> steps, ThreadId thread, const stem_rec* first, size_t available, size_t size) {
  constexpr uint64_t kSame = ~(0xffull << 32);  // a head without the branch's outcome
  const size_t n = steps.size();
  Groups done;
  if (n == 0 || n > kMostGroupSteps || thread != model_.thread()) return done;
  std::array<GroupLane, kMostGroupSteps> lanes;
  std::array<uint32_t, kMostGroupSteps> codes;
  bool steady = n >= 3;
  for (size_t i = 0; i < n; ++i) {
    if (steps[i].does == Does::Opaque) {
      steady = false;
      continue;
    }
    const Lane& lane = lanes_[lane_index(steps[i].key, thread)];
    if (lane.raw != steps[i].key || lane.thread != thread || *lane.stamp_at != lane.stamp) return done;
    lanes[i] = {&model_.state_at(lane.state), lane.state, lane.code, lane.first, lane.length, lane.base, {}};
    codes[i] = lane.code;
  }
  auto same = [&](const stem_rec* r) { return available >= size && ((r->head ^ first->head) & kSame) == 0; };
  bool run = false;
  // The context as if each shape had been followed: the last three do.
  auto follow = [&](size_t end) {
    for (size_t back = 3; run && back > 0; --back) model_.followed_as_predicted(codes[(end + n - back) % n]);
    run = false;
  };
  for (const stem_rec* r = first; same(r); r += size) {
    if (items_ + n >= kBlockItems - 1) follow(n);
    done.steps = run ? group_row<true>(steps, lanes.data(), r, done.ids) : group_row<false>(steps, lanes.data(), r, done.ids);
    if (done.steps < n) break;
    done.steps = 0;
    ++done.rows;
    available -= size;
    if (!run && steady && same(r + size)) run = model_.predicts_round(codes.data(), n);
  }
  follow(done.steps ? done.steps : n);
  return done;
}

}  // namespace stem::trace
