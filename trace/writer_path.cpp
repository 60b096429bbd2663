// Writing along a path (trace/path.h).
#include <algorithm>

#include "trace/writer.h"

namespace stem::trace {

namespace {

constexpr uint64_t kAddress = 0xffffffffffffull;
using Step = Path::Step;

bool is_event(const Step& step) { return step.what != Step::kExpr && step.what != Step::kRounds; }

}  // namespace

bool Writer::complete(Step& step, ThreadId thread) const {
  auto code_of = [this](Op op, unsigned width) { return op_codes_[static_cast<unsigned>(op) & 63][width] - 1; };
  switch (step.what) {
    case Step::kRead:
    case Step::kWrite:
    case Step::kOther: {
      const Lane& lane = lanes_[lane_index(step.key, thread)];
      step.code = lane.code;
      return lane.raw == step.key && lane.thread == thread;
    }
    case Step::kExpr:
      step.code = code_of(step.op, step.width);
      if (step.fresh) step.constant_code = code_of(Op::Const, step.constant_width);
      return step.code != UINT32_MAX && step.constant_code != UINT32_MAX;
    case Step::kRounds:
      step.code = model_.find_shape(Shape::of_rounds(step.round));
      return step.code != model_.shape_count();
  }
  return false;
}

bool Writer::complete(Path& path) const {
  // Twice round: then the three items before each are known.
  uint32_t last[3] = {};
  auto next = [&last](uint32_t code) {
    const uint32_t hash = Model::Context::hash_of(last[0], last[1], last[2]);
    last[2] = last[1], last[1] = last[0], last[0] = code;
    return hash;
  };
  for (int round = 0; round < 4; ++round) {
    for (Step& step : path.steps) {
      if (step.fresh) step.constant_hash = next(step.constant_code);
      step.hash = next(step.code);
    }
  }
  // One prediction cannot serve two.
  std::vector<std::pair<uint32_t, uint32_t>> predictions;
  for (const Step& step : path.steps) {
    if (step.fresh) predictions.emplace_back(step.constant_hash, step.constant_code);
    predictions.emplace_back(step.hash, step.code);
  }
  std::sort(predictions.begin(), predictions.end());
  for (size_t i = 1; i < predictions.size(); ++i)
    if (predictions[i].first == predictions[i - 1].first && predictions[i].second != predictions[i - 1].second)
      return false;
  path.events_added = 0;
  path.contexts = 0;
  for (const auto& [hash, code] : predictions) path.contexts |= 1ull << (hash & 63);
  path.items = path.events = path.locals = path.globals = 0;
  path.by_local.clear();
  path.runs.clear();
  path.fresh.clear();
  path.columns = true;
  std::vector<uint32_t> states;
  for (Step& step : path.steps) {
    if (step.fresh) {
      path.fresh.push_back(static_cast<uint16_t>(&step - path.steps.data()));
      ++path.items, ++path.globals;
    }
    step.item = path.items++;
    step.local = path.locals;
    step.global = step.result = path.globals;
    step.result_width = static_cast<uint8_t>(step.leaf ? 8u * step.size : step.width);
    if (step.what == Step::kRounds) {
      const Round& round = rounds_[step.round];
      const uint32_t exprs = round.count() * step.rounds;
      if (path.locals + exprs > Model::kRecent) {
        path.columns = false;
        continue;
      }
      step.result += round.result_of(step.rounds);
      step.result_width = static_cast<uint8_t>(round.width());
      path.by_local.resize(path.locals + exprs, Path::kNoStep);
      path.by_local[path.locals + exprs - round.count() + round.result()] =
          static_cast<uint16_t>(&step - path.steps.data());
      path.runs.emplace_back(path.globals + round.constants(), exprs);
      path.locals += exprs, path.globals += round.exprs(step.rounds);
      continue;
    }
    if (step.what != Step::kExpr) {
      ++path.events;
      states.push_back(model_.state_index(step.code));
    }
    if (step.what == Step::kExpr || step.leaf) {
      path.by_local.push_back(static_cast<uint16_t>(&step - path.steps.data()));
      if (path.runs.empty() || path.runs.back().first + path.runs.back().second != path.globals)
        path.runs.emplace_back(path.globals, 0);
      ++path.runs.back().second;
      ++path.locals, ++path.globals;
    }
  }
  path.events_lead = path.steps.size() >= 3 && std::all_of(path.steps.begin(), path.steps.begin() + 3,
                                                           [](const Step& step) { return is_event(step); });
  std::sort(states.begin(), states.end());
  if (std::adjacent_find(states.begin(), states.end()) != states.end())
    path.columns = false;  // what one leaves the other changes
  return true;
}

// Events that were added, and changed predictions in the path's contexts, may have changed the answers.
bool Writer::is_up_to_date(Path& path) const {
  if (path.events_added != added_ || !model_.changed_only_outside(path.changes, path.contexts)) return false;
  path.changes = model_.changes();
  return true;
}

void Writer::look_up(Path& path) {
  path.events_added = added_;
  path.changes = model_.changes();
  for (Step& step : path.steps) {
    step.predicted = model_.predicts(step.hash, step.code);
    if (!is_event(step)) {
      step.operands = &model_.template_at(step.hash, step.code);
      if (!step.fresh) continue;
      step.constant_predicted = model_.predicts(step.constant_hash, step.constant_code);
      step.constant_operands = &model_.template_at(step.constant_hash, step.constant_code);
    } else {
      const Lane& lane = lanes_[lane_index(step.key, path.thread)];
      const bool same =
          lane.raw == step.key && lane.thread == path.thread && lane.code == step.code && *lane.stamp_at == lane.stamp;
      step.state = lane.state, step.first = lane.first, step.base = lane.base;
      step.length = same ? lane.length : 0;  // no address will do
    }
  }
}

// Control byte of an item, as far as its shape goes. Leading: the first three items of a run, whose predictions depend
// on what was before the path.
template <bool leading>
inline uint8_t Writer::follow_shape(uint32_t code, uint32_t hash, bool& predicted) {
  if (leading ? model_.predicted_shape() == code : predicted) {
    if (leading) model_.followed_as_predicted(code);
    return 0xff;
  }
  put(kShape, code);
  if (leading) {
    model_.followed_by(code);
  } else {
    model_.set_prediction(hash, code);
    predicted = true;
  }
  return static_cast<uint8_t>(~kHitShape);
}

// False: nothing was added.
template <bool leading, Step::What what>
inline bool Writer::follow_event(Step& step, const stem_rec& r, IdRuns& ids) {
  const uint64_t addr = r.head & kAddress;
  if (r.head >> 48 != step.head || r.site != step.site || addr - step.first >= step.length) return false;
  uint64_t value = r.value;
  ExprId expr = 0;
  const auto kind = what == Step::kRead    ? Kind::Read
                    : what == Step::kWrite ? Kind::Write
                                           : static_cast<Kind>(step.head & 0xff);
  if (what != Step::kOther) {
    value &= step.mask;
    if (what == Step::kWrite && r.expr) expr = ids.find(r.expr);
  } else if (!step.fixed) {
    expr = ids.find(r.expr);
  } else if (r.expr != step.expr || (kind == Kind::Signal && value)) {  // a signal that wakes somebody names a thread
    return false;
  }
  Model::State& s = model_.state_at(step.state);
  uint8_t control = 0xff;
  if (!put_value(s, kind, step.size, addr, value, expr, control)) return false;
  control &= follow_shape<leading>(step.code, step.hash, step.predicted);
  put_place(s, addr - step.base, value, expr, control);
  put_control(control);
  if (what == Step::kRead) {
    model_.note_read(step.state);
    if (step.leaf) {
      ids.add(model_.next_expr());
      model_.add_leaf(8u * step.size, value);
    }
  }
  ++events_;
  item_done();
  return true;
}

template <bool leading>
inline bool Writer::follow_expr(Step& step, const stem_rec& r, IdRuns& ids, Constants& constants) {
  if (r.head != step.head) return false;
  const ExprId next = model_.next_expr();
  if (next >= UINT32_MAX - 2) return false;
  ExprId a = 0, b = 0, constant = 0;
  const uint64_t number = r.value & width_mask(step.constant_width);
  if (step.constant) {
    if ((step.constant == 1 ? r.expr : r.site) != 0) return false;
    constant = constants.find(step.constant_width, number, next);
    if ((constant == 0) != step.fresh) return false;
  }
  if (step.constant != 1 && (a = ids.find(r.expr)) == 0) return false;
  if (step.binary && step.constant != 2 && (b = ids.find(r.site)) == 0) return false;
  if (!step.binary && step.op == Op::Opaque && r.site) return false;
  if (step.fresh) {
    constant = next;
    Model::Template& t = leading ? model_.current_template(step.constant_code) : *step.constant_operands;
    const uint8_t control = follow_shape<leading>(step.constant_code, step.constant_hash, step.constant_predicted);
    put_operands(t, Op::Const, step.constant_width, 0, 0, 0, number, control);
    constants.add(step.constant_width, number, constant);
    item_done();
  }
  if (step.constant == 1) a = constant;
  if (step.constant == 2) b = constant;
  ids.add(model_.next_expr());
  const uint64_t given = step.op == Op::Opaque    ? r.value & width_mask(step.width)
                         : step.op == Op::Extract ? r.head >> 16 & 0xff
                                                  : 0;
  Model::Template& t = leading ? model_.current_template(step.code) : *step.operands;
  const uint8_t control = follow_shape<leading>(step.code, step.hash, step.predicted);
  put_operands(t, step.op, step.width, a, b, 0, given, control);
  item_done();
  return true;
}

template <bool leading>
inline bool Writer::follow_rounds(Step& step, const stem_rec& r, IdRuns& ids) {
  const ExprId input = ids.find(r.expr), next = model_.next_expr();
  if (r.head >> 48 != step.head || r.site != step.site || r.value < 1 || r.value > Round::kMostRounds || input == 0)
    return false;
  const Round& round = rounds_[step.round];
  const auto rounds = static_cast<uint32_t>(r.value);
  if (round.exprs(rounds) >= UINT32_MAX - next) return false;
  Model::Template& t = leading ? model_.current_template(step.code) : *step.operands;
  const uint8_t control = follow_shape<leading>(step.code, step.hash, step.predicted);
  put_rounds(t, round, input, rounds, control);
  ids.add(next + round.constants(), round.count() * rounds);
  item_done();
  return true;
}

template <bool leading>
inline bool Writer::follow_step(Step& step, const stem_rec& r, IdRuns& ids, Constants& constants) {
  switch (step.what) {
    case Step::kRead:
      return follow_event<leading, Step::kRead>(step, r, ids);
    case Step::kWrite:
      return follow_event<leading, Step::kWrite>(step, r, ids);
    case Step::kOther:
      return follow_event<leading, Step::kOther>(step, r, ids);
    case Step::kExpr:
      return follow_expr<leading>(step, r, ids, constants);
    case Step::kRounds:
      return follow_rounds<leading>(step, r, ids);
  }
  return false;
}

size_t Writer::follow(Path& path, const stem_rec* first, const stem_rec* end, IdRuns& ids, Constants& constants) {
  if (path.thread != model_.thread()) return 0;
  if (!is_up_to_date(path)) look_up(path);
  Step* const steps = path.steps.data();
  const size_t count = path.steps.size();
  const stem_rec* r = first;
  size_t i = path.at;
  auto stop = [&] {
    path.at = i;
    return static_cast<size_t>(r - first);
  };
  auto columns = [&](bool leading) {
    if (i != 0 || !path.columns) return false;
    if (path.columns_wait) return --path.columns_wait, false;
    const size_t most = static_cast<size_t>(end - r) / count;
    if (const size_t rounds = take_columns(path, r, most, ids, constants, leading)) {
      path.refusals = 0;
      path.columns_wait = rounds < std::min(most, kMostRounds);  // what ended it is still there
      r += rounds * count;
      return true;
    }
    if (++path.refusals > 1) path.columns_wait = std::min(path.refusals, 8u);
    return false;
  };
  if (!path.events_lead || !columns(true)) {
    for (int lead = 3; lead; --lead, ++r) {
      if (r == end || !follow_step<true>(steps[i], *r, ids, constants)) return stop();
      if (++i == count) i = 0;
    }
    if (!is_up_to_date(path)) look_up(path);
  }
  while (r != end) {
    if (columns(false)) continue;
    if (!follow_step<false>(steps[i], *r, ids, constants)) break;
    ++r;
    if (++i == count) i = 0;
  }
  path.changes = model_.changes();  // what changed, changed here
  uint32_t last[4];                 // the items behind us, latest first
  size_t n = 0;
  for (size_t k = i; n < 3;) {
    const Step& step = steps[k = (k ? k : count) - 1];
    last[n++] = step.code;
    if (step.fresh) last[n++] = step.constant_code;
  }
  while (n) model_.followed_as_predicted(last[--n]);
  return stop();
}

}  // namespace stem::trace
