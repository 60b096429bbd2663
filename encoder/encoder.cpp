// Builds the formula, asks it, and turns a model into a schedule and an input.
#include "encoder/encoder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "encoder/paper.h"
#include "encoder/values.h"
#include "util/error.h"

namespace stem::encoder {

namespace {

std::string query_name(uint32_t w, uint32_t r) {
  return "pair_w" + (w == kInitial ? std::string("0") : std::to_string(w)) + "_r" + std::to_string(r);
}

// What was computed before a window begins rests on the inputs as they were.
Options for_scope(Options options, const Scope& scope) {
  options.free_inputs &= scope.first == 0;
  return options;
}

}  // namespace

struct Encoder::Impl {
  Impl(const Index& index, Options options, const Scope& scope)
      : options(for_scope(std::move(options), scope)), suffix(scope.name.empty() ? "" : "_" + scope.name), f(index, this->options, scope), values(f),
        solver(f.z3) {
    add_certain_order(f);
    f.close();
    values.find_relevant_reads();
    add_objects(f);
    if (this->options.paper) {
      add_paper(f, values);
    } else {
      add_mutexes(f);
      add_rwlocks(f);
      add_conditions(f);
      add_semaphores(f);
      values.add_semantics();
      values.add_matching();
    }
    if (incremental() && f.given_up.empty()) prepare(solver);
  }

  bool incremental() const { return options.incremental && !options.paper; }

  void prepare(z3::solver& s) {
    z3::params params(f.z3);
    if (options.timeout_ms) params.set("timeout", options.timeout_ms);
    params.set("ctrl_c", false);  // an interrupt belongs to the program around
    s.set(params);
    for (const z3::expr& constraint : f.constraints) s.add(constraint);
  }

  void dump(const std::string& name, const z3::expr& pair, const Answer& answer) {
    z3::solver whole(f.z3);
    for (const z3::expr& constraint : f.constraints) whole.add(constraint);
    whole.add(pair);
    std::error_code ignored;  // the file will tell
    std::filesystem::create_directories(options.dump, ignored);
    const std::string path = options.dump + "/" + name + ".smt2";
    std::ofstream file(path);
    file << "; " << name << ": " << (f.target == trace::kNone ? "does r take a byte from w?" : "does the branch go the other way?") << " answered " << status(answer) << "\n"
         << whole.to_smt2();
    file.flush();
    if (!file) user_error("{}: cannot write the query; choose another folder with --dump-smt", path);
  }
  static const char* status(const Answer& answer) {
    switch (answer.kind) {
      case Answer::Kind::Feasible: return "sat";
      case Answer::Kind::Infeasible: return "unsat";
      case Answer::Kind::Unknown: return "unknown";
    }
    return "?";
  }

  void read_model(const z3::model& model, uint32_t r, Answer& answer) {
    const auto position = [&](const z3::expr& o) {
      const z3::expr value = model.eval(o, true);
      int64_t number = 0;
      STEM_CHECK(value.is_numeral_i64(number));
      return number;
    };
    std::vector<std::pair<int64_t, uint32_t>> order;
    const int64_t end = f.prefix ? position(f.cut) : 0;
    for (uint32_t e : f.events) {
      if (f.past(e) || !f.has_position(e) || (f.prefix && e == r)) continue;
      const int64_t at = position(f.position(e));
      if (!f.prefix || at < end) order.push_back({at, e});
    }
    std::sort(order.begin(), order.end());
    for (uint32_t e = 0; e < f.first; ++e) answer.schedule.push_back(e);
    if (f.prefix) order.push_back({end, r});
    // Events without a position come right before the next of their thread that has one.
    std::vector<size_t> next(f.threads.size());
    for (size_t t = 0; t < next.size(); ++t)
      while (next[t] < f.threads[t].size() && f.past(f.threads[t][next[t]])) ++next[t];
    for (const auto& [at, e] : order) {
      const auto& thread = f.threads[f.event(e).thread];
      size_t& i = next[f.event(e).thread];
      while (true) {
        answer.schedule.push_back(thread[i]);
        if (thread[i++] == e) break;
      }
    }
    answer.inputs = f.trace.inputs;
    for (uint32_t i = 0; i < answer.inputs.size() && options.free_inputs; ++i)
      for (uint32_t k = 0; k < answer.inputs[i].bytes.size(); ++k) {
        const z3::expr value = model.eval(values.input_byte(i, k));
        uint64_t byte = 0;
        if (value.is_numeral_u64(byte)) answer.inputs[i].bytes[k] = static_cast<uint8_t>(byte);  // else it does not matter
      }
  }

  Answer decide(uint32_t w, uint32_t r) {
    STEM_CHECK(f.in_scope(r) && reads(f.event(r)));
    const auto start = std::chrono::steady_clock::now();
    Answer answer;
    answer.name = query_name(w, r) + suffix;
    if (w != kInitial && !f.past(w) && !f.in_scope(w)) {
      answer.kind = Answer::Kind::Infeasible;
      return answer;
    }
    const z3::expr pair = values.defuse(w, r);
    ask(pair, r, asked.insert({w, r}).second, answer);
    answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!options.dump.empty() && f.given_up.empty()) dump(answer.name, pair, answer);
    return answer;
  }

  Answer negate(const Wish& wish) {
    STEM_CHECK(f.prefix && f.target != trace::kNone && f.in_scope(f.target));
    const auto start = std::chrono::steady_clock::now();
    Answer answer;
    answer.name = "branch_" + std::to_string(f.target) + (wishes++ ? "_" + std::to_string(wishes) : "") + suffix;
    const z3::expr other = values.negated(f.target, wish);
    ask(other, f.target, true, answer);
    answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!options.dump.empty() && f.given_up.empty()) dump(answer.name, other, answer);
    return answer;
  }

  // Does the formula allow `question`? r is where the execution ends.
  void ask(const z3::expr& question, uint32_t r, bool first, Answer& answer) {
    if (!f.given_up.empty()) {
      answer.reason = f.given_up;
      return;
    }
    try {
      z3::check_result result;
      z3::solver fresh(f.z3);
      z3::solver& s = incremental() ? solver : fresh;
      if (incremental()) {
        z3::expr selector = f.z3.bool_const(answer.name.c_str());
        if (first) s.add(z3::implies(selector, question));
        result = s.check(1, &selector);
      } else {
        prepare(s);
        s.add(question);
        result = s.check();
      }
      if (result == z3::sat) {
        answer.kind = Answer::Kind::Feasible;
        read_model(s.get_model(), r, answer);
      } else if (result == z3::unsat) {
        answer.kind = Answer::Kind::Infeasible;
      } else {
        answer.reason = s.reason_unknown();
      }
    } catch (const z3::exception& error) {
      answer.kind = Answer::Kind::Unknown;
      answer.reason = error.msg();
    }
  }

  Options options;
  const std::string suffix;
  Formula f;
  Values values;
  z3::solver solver;
  std::set<std::pair<uint32_t, uint32_t>> asked;
  unsigned wishes = 0;
  std::unique_ptr<Index> own_index;
};

Encoder::Encoder(const Index& index, Options options, Scope scope)
    : impl_(std::make_unique<Impl>(index, std::move(options), scope)) {}

Encoder::Encoder(const trace::Trace& trace, Options options) {
  auto index = std::make_unique<Index>(trace);
  impl_ = std::make_unique<Impl>(*index, std::move(options), Scope{});
  impl_->own_index = std::move(index);
}

Encoder::~Encoder() = default;

Answer Encoder::decide(uint32_t w, uint32_t r) { return impl_->decide(w, r); }

Answer Encoder::negate(const Wish& wish) { return impl_->negate(wish); }

void Encoder::set_timeout(unsigned ms) {
  impl_->options.timeout_ms = ms;
  z3::params params(impl_->f.z3);
  params.set("timeout", ms ? ms : ~0u);
  impl_->solver.set(params);
}

void Encoder::interrupt() { impl_->f.z3.interrupt(); }

}  // namespace stem::encoder
