// Loops among the records: where the same ones are about to come three times, the first round is learned as a path
// (trace/path.h). From then on records that come along it are written by Writer::follow(), which looks nothing up.
#include <algorithm>
#include <span>

#include "tracer/launch/collect/record_fields.h"
#include "tracer/launch/collect/translate.h"

namespace stem::collect {

using trace::Path;

namespace {

constexpr unsigned kMostFailures = 16, kPatience = 32;

uint64_t bit(unsigned kind) { return kind < 64 ? 1ull << kind : 0; }
constexpr uint64_t kAccesses = 1ull << STEM_KIND_Read | 1ull << STEM_KIND_Write;
constexpr uint64_t kDecides = 1ull << STEM_KIND_Branch | 1ull << STEM_KIND_Pin | 1ull << STEM_KIND_Assert;
constexpr uint64_t kPlain = 1ull << STEM_KIND_Lock | 1ull << STEM_KIND_Unlock | 1ull << STEM_KIND_BarrierArrive |
                            1ull << STEM_KIND_BarrierLeave | 1ull << STEM_KIND_Signal;

// As far as it is the same in every round.
bool alike(const stem_rec& a, const stem_rec& b) {
  if (a.head >> 48 != b.head >> 48) return false;
  return kind_of(a) == STEM_RAW_Expr ? a.head == b.head : a.site == b.site;
}

// After how many records they come again, and once more; 0: they do not.
size_t coming_period(std::span<const stem_rec> records, size_t most) {
  for (size_t period = 1; period <= most && 3 * period <= records.size(); ++period) {
    size_t i = 0;
    while (i < 2 * period && alike(records[i], records[i + period])) ++i;
    if (i == 2 * period) return period;
  }
  return 0;
}

// Does a record come three times, as far apart?
bool holds_loop(std::span<const stem_rec> round) {
  for (size_t i = 0; i < round.size(); ++i)
    for (size_t k = 1; i + 2 * k < round.size(); ++k)
      if (kind_of(round[i]) != STEM_RAW_Expr && alike(round[i], round[i + k]) && alike(round[i], round[i + 2 * k]))
        return true;
  return false;
}

size_t index_of(uint64_t key, trace::ThreadId thread) { return (key + thread) * 0x9e3779b97f4a7c15ull >> 54; }

}  // namespace

bool Translator::can_learn(const stem_rec& r) const {
  const unsigned kind = kind_of(r);
  if (kind == STEM_RAW_Rounds) return r.value <= trace::Round::kMostRounds;
  if (kind == STEM_RAW_Expr) {
    const unsigned op = aux_of(r);
    return op < STEM_OP_COUNT && (arity_of(op) == 1 || arity_of(op) == 2);
  }
  if (kind == STEM_KIND_Signal && r.value) return false;  // names a thread
  return (bit(kind) & (kAccesses | kDecides | kPlain)) != 0;
}

// The record just written, which added expressions from `before` on, becomes a step.
void Translator::learn(const stem_rec& r, trace::ExprId before) {
  if (!can_learn(r)) {
    learning_->steps.clear();
    learning_ = nullptr;
    return;
  }
  Path::Step step;
  const unsigned kind = kind_of(r), aux = aux_of(r);
  step.key = key_of(r);
  step.head = r.head >> 48;
  step.site = r.site;
  if (kind == STEM_RAW_Rounds) {
    step.what = Path::Step::kRounds;
    step.round = rounds_[r.site - 1];
    step.rounds = static_cast<uint32_t>(r.value);
  } else if (kind == STEM_RAW_Expr) {
    const ExprFields f(r);
    step.what = Path::Step::kExpr;
    step.head = r.head;
    step.op = f.op;
    step.width = static_cast<uint8_t>(f.width);
    step.binary = arity_of(aux) == 2 && (f.op != trace::Op::Opaque || r.site);
    if (f.op != trace::Op::Opaque && (r.expr == 0 || (step.binary && r.site == 0))) {
      step.constant = r.expr == 0 ? 1 : 2;
      step.constant_width = static_cast<uint8_t>(r.expr == 0 ? f.first_width() : f.second_width());
      step.constant_value = r.value & trace::width_mask(step.constant_width);
      step.fresh = writer_.next_expr() - before == 2;
    }
  } else if (bit(kind) & kAccesses) {
    step.what = kind == STEM_KIND_Read ? Path::Step::kRead : Path::Step::kWrite;
    step.size = aux & 0xf;
    step.mask = trace::width_mask(8u * step.size);
    step.leaf = kind == STEM_KIND_Read && (aux & STEM_AUX_LEAF) && !leafless_;
  } else if (bit(kind) & kPlain) {
    step.fixed = true;
    step.expr = r.expr;
    step.key ^= static_cast<uint64_t>(r.expr) << 48;
  }
  learning_->steps.push_back(step);
  if (!writer_.complete(learning_->steps.back(), learning_->thread) ||
      (--learn_left_ == 0 && !writer_.complete(*learning_))) {
    learning_->steps.clear();
    learning_ = nullptr;
  } else if (learn_left_ == 0) {
    learning_ = nullptr;
  }
}

// Gives how many records were written, from `at` on.
size_t Translator::along_path(const stem_rec* at, const stem_rec* end) {
  const uint64_t key = key_of(*at);
  const trace::ThreadId thread = thread_->id;
  Path& path = loops_[index_of(key, thread) % loops_.size()];
  if (learning_) return 0;
  if (path.key == key && path.thread == thread) {
    if (!path.steps.empty()) {
      path.at = 0;
      const size_t used = writer_.follow(path, at, end, thread_->ids, constants_);
      if (used >= path.steps.size())
        path.failures = 0;
      else if (++path.failures > kMostFailures)
        path.steps.clear();
      return used;
    }
    if (path.failures) return --path.failures, 0;
  }
  path = Path{};
  path.key = key;
  path.thread = thread;
  const size_t period = coming_period({at, end}, Path::kMostSteps);
  const bool outer = period && holds_loop({at, period});  // the loop in it is better by itself
  if (period == 0 || outer || !std::all_of(at, at + period, [this](const stem_rec& r) { return can_learn(r); })) {
    path.failures = outer ? 64 * kPatience : kPatience;  // before it is tried again
    return 0;
  }
  learning_ = &path;
  learn_left_ = period;
  return 0;
}

}  // namespace stem::collect
