#include "predictor/worker.h"

#include <algorithm>
#include <map>

#include "util/error.h"

namespace stem::predictor {

Worker::Worker(const Shared& shared)
    : shared_(shared),
      model_(shared.model),
      engine_(shared.model, shared.options.meaning, shared.options.decisions),
      harvest_(shared.model),
      local_(shared.candidates.pairs.size(), 0) {}

bool Worker::any_wanted(uint32_t read) const {
  for (uint32_t pair : shared_.candidates.pairs_of_use(shared_.candidates.use_class(read)))
    if (wanted(pair)) return true;
  return false;
}

Findings Worker::run(const Task& task, const std::vector<uint8_t>& decided) {
  findings_ = {};
  decided_ = &decided;
  task_ = task;
  if (task.states) enumerate();
  for (uint32_t r : task.reads) {
    if (findings_.enumerated || !(task.freeze || task.sweep)) break;
    if (!any_wanted(r)) continue;
    if (shared_.stop()) {
      findings_.finished = false;
      break;
    }
    if (task.freeze && shared_.options.meaning == Meaning::Prefix) freeze(r);
    if (!task.sweep || !any_wanted(r)) continue;
    if (!opened_ || first_ != task.first || last_ != task.last) {
      engine_.open(task.first, task.last);
      opened_ = true, first_ = task.first, last_ = task.last;
    }
    sweep(r);
  }
  for (uint32_t pair : touched_) local_[pair] = 0;
  touched_.clear();
  return std::move(findings_);
}

bool Worker::confirm(const Shared& shared, Witness& witness, Findings& findings) {
  assign_wakeups(shared.model.trace, witness);
  const auto rejection = shared.checker.check(witness, shared.options.meaning);
  if (!rejection) return true;
  ++findings.rejected;
  findings.rejections.push_back(fmt::format("witness of ({}, {}) refused at step {}: {}", witness.pair.write,
                                            witness.pair.read, rejection->step, rejection->reason));
  return false;
}

void Worker::found(uint32_t w, uint32_t r, Layer layer, std::vector<uint32_t> schedule) {
  const uint32_t pair = shared_.candidates.find(w, r);
  Witness witness{{w, r}, model_.trace.inputs, std::move(schedule), {}};
  // A window's suffix is only hoped to follow (FULL): the checker says whether it does.
  const bool hoped = shared_.options.meaning == Meaning::Full && !(task_.first == 0 && task_.last == model_.position.size());
  Findings aside;
  if (!confirm(shared_, witness, hoped ? aside : findings_)) {
    leave_open(pair, {w, r});
    return;
  }
  local_[pair] = 1;
  touched_.push_back(pair);
  findings_.found.push_back({pair, layer, std::move(witness)});
  if (shared_.options.meaning != Meaning::Full || hoped) return;
  // A whole execution shows all its flows.
  const std::vector<uint32_t> whole = findings_.found.back().witness.schedule;
  harvest_.collect(whole, [&](uint32_t w2, uint32_t r2) {
    const uint32_t other = shared_.candidates.find(w2, r2);
    if (!wanted(other)) return;
    Witness second{{w2, r2}, model_.trace.inputs, whole, {}};
    if (!confirm(shared_, second, findings_)) return;
    local_[other] = 1;
    touched_.push_back(other);
    findings_.found.push_back({other, Layer::Harvest, std::move(second)});
  });
}

// --- enumeration -----------------------------------------------------------------------------------------------------

uint32_t Worker::label(uint32_t write) {
  const uint32_t def = shared_.candidates.def_class(write);
  return def_wanted_[def] ? def + 1 : 0;
}

void Worker::flow(uint32_t write, uint32_t read) {
  const uint32_t pair = shared_.candidates.find(write, read);
  if (!wanted(pair)) return;
  const size_t before = findings_.found.size();
  found(write, read, Layer::Enumeration, enumerate_->schedule(read));
  wanted_left_ -= findings_.found.size() - before;
}

bool Worker::stop() { return wanted_left_ == 0 || shared_.stop(); }

void Worker::enumerate() {
  if (shared_.stop()) {
    findings_.finished = false;
    return;
  }
  const Candidates& all = shared_.candidates;
  def_wanted_.assign(all.def_classes(), 0);
  std::vector<uint8_t> seen(all.use_classes(), 0);
  wanted_left_ = 0;
  for (uint32_t r : task_.reads)
    if (uint8_t& flag = seen[all.use_class(r)]; !flag) {
      flag = 1;
      for (uint32_t pair : all.pairs_of_use(all.use_class(r)))
        if (wanted(pair)) ++wanted_left_, def_wanted_[all.def_class(all.pairs[pair].example.write)] = 1;
    }
  if (wanted_left_ == 0) return;
  if (!enumerate_) enumerate_ = std::make_unique<Enumerate>(model_, shared_.independence, shared_.options.meaning);
  const Enumerate::Outcome outcome = enumerate_->run(task_.first, task_.last, task_.states, *this);
  findings_.states += enumerate_->states();
  findings_.enumerated = outcome == Enumerate::Outcome::Complete;
  if (findings_.enumerated) count_excluded();
}

void Worker::count_excluded() {
  std::map<uint32_t, uint64_t> excluded;
  for (uint32_t r : task_.reads)
    for (unsigned k = 0; k < model_.atom_count[r]; ++k) {
      const uint32_t atom = model_.first_atom[r] + k;
      const uint32_t start = task_.first == 0 ? kFromStart : model_.last_write_before(atom, task_.first);
      if (const uint32_t pair = shared_.candidates.find(start, r); wanted(pair)) ++excluded[pair];
      const auto writes = model_.writes_of(atom);
      for (auto it = std::lower_bound(writes.begin(), writes.end(), task_.first); it != writes.end() && *it < task_.last; ++it)
        if (const uint32_t pair = shared_.candidates.find(*it, r); *it != r && wanted(pair)) ++excluded[pair];
    }
  findings_.excluded.assign(excluded.begin(), excluded.end());
}

void Worker::freeze(uint32_t r) {
  harvest_.freeze(task_.first, task_.last, r, [&](uint32_t w) {
    if (wanted(shared_.candidates.find(w, r))) found(w, r, Layer::Harvest, harvest_.schedule());
    return any_wanted(r);
  });
}

void Worker::sweep(uint32_t r) {
  const auto query = std::chrono::steady_clock::now() + std::chrono::milliseconds(shared_.options.query_ms);
  engine_.set_deadline(shared_.options.query_ms ? std::min(query, shared_.deadline) : shared_.deadline);
  const Engine::Reach reached = engine_.aim(r);
  if (reached == Engine::Reach::Yes) {
    for (unsigned k = 0; k < model_.atom_count[r]; ++k) sweep_atom(r, model_.first_atom[r] + k);
  } else {  // never: the recording reached it
    for (uint32_t pair : shared_.candidates.pairs_of_use(shared_.candidates.use_class(r)))
      if (wanted(pair)) leave_open(pair, shared_.candidates.pairs[pair].example);
  }
  engine_.leave();
}

void Worker::sweep_atom(uint32_t r, uint32_t atom) {
  const Candidates& all = shared_.candidates;
  const uint32_t start = task_.first == 0 ? kFromStart : model_.last_write_before(atom, task_.first);
  if (const uint32_t pair = all.find(start, r); wanted(pair)) ask(pair, start, kFromStart, r, atom);
  const Window& window = engine_.window();
  for (const Chain& chain : model_.write_chains(atom)) {
    const bool own = chain.thread == model_.trace.events[r].thread;
    const uint32_t base = window.base[chain.thread], end = base + window.length[chain.thread];
    size_t pushed = 0;
    Engine::Reach reached = Engine::Reach::Yes;
    for (auto it = std::lower_bound(chain.positions.begin(), chain.positions.end(), base);
         it != chain.positions.end() && *it < end; ++it) {
      const uint32_t w = model_.events_of[chain.thread][*it];
      if (w == r) continue;
      const uint32_t pair = all.find(w, r);
      if (!wanted(pair)) continue;
      if (own && *it > model_.position[r]) reached = Engine::Reach::No;
      if (reached == Engine::Reach::Yes && !own) {
        reached = engine_.reach(w);
        ++pushed;
      }
      if (reached == Engine::Reach::Yes) ask(pair, w, w, r, atom);
      else if (reached == Engine::Reach::No) findings_.tried.push_back(pair);
      else leave_open(pair, {w, r});
    }
    while (pushed-- > 0) engine_.retreat();
  }
}

void Worker::ask(uint32_t pair, uint32_t w, uint32_t writer, uint32_t r, uint32_t atom) {
  ++findings_.queries;
  switch (engine_.decide(writer, atom)) {
    case Engine::Result::Feasible:
      found(w, r, engine_.decisions() ? Layer::Search : Layer::Saturation, engine_.schedule());
      break;
    case Engine::Result::Infeasible:
      findings_.tried.push_back(pair);
      if (engine_.decisions()) findings_.searched.push_back(pair);
      break;
    case Engine::Result::Undecided: leave_open(pair, {w, r}); break;
  }
}

}  // namespace stem::predictor
