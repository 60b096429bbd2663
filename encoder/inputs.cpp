#include "encoder/inputs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <unordered_set>

#include "encoder/decision.h"
#include "encoder/terms.h"
#include "util/error.h"

namespace stem::encoder {

using trace::Event;
using trace::ExprId;
using trace::Kind;
using trace::Op;

namespace {

// Each read is what its recorded writes wrote; those that depend on no input are constants.
class FixedTerms : public Terms {
 public:
  FixedTerms(z3::context& z3, const Index& index) : Terms(z3, index, true), dependent_(trace_.exprs.size(), Dependence::Unasked) {
    std::unordered_map<Place, uint32_t, PlaceHash> last;  // by byte: its last writer, if that depends on an input
    for (uint32_t e = 0; e < trace_.events.size(); ++e) {
      const Event& event = trace_.events[e];
      const bool writes = event.kind == Kind::Write || event.kind == Kind::Rmw || event.kind == Kind::External;
      if (event.kind == Kind::Read || event.kind == Kind::Rmw) pass_read(e, last);
      if (writes && (depends(event.expr) || !last.empty()))
        for (unsigned k = 0; k < event.size; ++k) {
          const Place byte{event.object, event.addr + k};
          if (depends(event.expr)) last[byte] = e;
          else last.erase(byte);
        }
      const bool decides = event.kind == Kind::Branch || event.kind == Kind::Pin || event.kind == Kind::Assert;
      const bool pinned_read = event.flags & trace::kPinned && sources_.count(e);
      if ((decides && depends(event.expr)) || pinned_read) conditions.push_back(e);
    }
  }

  std::vector<uint32_t> conditions;  // events that bind an input, in recorded order

  bool depends(ExprId id) {
    if (!id) return false;
    std::vector<ExprId> stack{id};
    while (!stack.empty()) {
      const ExprId next = stack.back();
      const trace::Expr& e = trace_.exprs[next];
      if (dependent_[next] != Dependence::Unasked) {
        stack.pop_back();
        continue;
      }
      bool ready = true, any = e.op == Op::Input || (e.op == Op::Read && sources_.count(static_cast<uint32_t>(e.value)));
      for (ExprId child : {e.a, e.b, e.c}) {
        if (!child) continue;
        if (dependent_[child] == Dependence::Unasked) ready = false, stack.push_back(child);
        any |= dependent_[child] == Dependence::Yes;
      }
      if (!ready) continue;
      stack.pop_back();
      dependent_[next] = any ? Dependence::Yes : Dependence::No;
    }
    return dependent_[id] == Dependence::Yes;
  }

  Term read(uint32_t e) override {
    auto known = reads_.find(e);
    if (known != reads_.end()) return known->second;
    const Event& event = trace_.events[e];
    auto source = sources_.find(e);
    if (source == sources_.end()) return {z3_.bv_val(event.value, 8 * event.size), z3_.bool_val(true)};
    z3::expr_vector bytes(z3_);
    std::vector<z3::expr> all_known;
    for (unsigned k = event.size; k-- > 0;) {
      const uint32_t from = source->second[k];
      if (from == trace::kNone) {
        bytes.push_back(z3_.bv_val(static_cast<unsigned>(event.value >> 8 * k & 0xff), 8));
        continue;
      }
      const Term whole = written(from);
      const unsigned offset = static_cast<unsigned>(event.addr + k - trace_.events[from].addr);
      bytes.push_back(whole.bits.extract(8 * offset + 7, 8 * offset));
      if (k + 1 == event.size || source->second[k + 1] != from) all_known.push_back(whole.known);
    }
    return reads_.emplace(e, Term{(bytes.size() == 1 ? bytes[0] : z3::concat(bytes)).simplify(), all(all_known)}).first->second;
  }

  // The input bytes that an expression rests on (input << 32 | offset). The terms of all reads on the way are made, the
  // earliest first, so that none of them recurses deeply.
  std::vector<uint64_t> support(ExprId id) {
    std::vector<ExprId> todo{id};
    std::unordered_set<ExprId> seen;
    std::vector<uint32_t> reads;
    std::vector<uint64_t> bytes;
    while (!todo.empty()) {
      const ExprId next = todo.back();
      todo.pop_back();
      if (!next || !depends(next) || !seen.insert(next).second) continue;
      const trace::Expr& e = trace_.exprs[next];
      if (e.op == Op::Input)
        for (unsigned k = 0; 8 * k < e.width; ++k) bytes.push_back(e.value + k);
      if (e.op == Op::Read) {
        reads.push_back(static_cast<uint32_t>(e.value));
        for (uint32_t from : sources_.at(reads.back()))
          if (from != trace::kNone) todo.push_back(trace_.events[from].expr);
      }
      todo.insert(todo.end(), {e.a, e.b, e.c});
    }
    std::sort(reads.begin(), reads.end());
    for (uint32_t r : reads) read(r);
    std::sort(bytes.begin(), bytes.end());
    bytes.erase(std::unique(bytes.begin(), bytes.end()), bytes.end());
    return bytes;
  }

  // That an event before the branch binds as recorded.
  z3::expr holds(uint32_t e) {
    const Event& event = trace_.events[e];
    const bool reads = event.kind == Kind::Read || event.kind == Kind::Rmw;
    const Term term = reads ? read(e) : expression(event.expr);
    return all({term.known, term.bits == z3_.bv_val(event.value, term.bits.get_sort().bv_size())});
  }
  std::vector<uint64_t> support_of(uint32_t e) {
    const Event& event = trace_.events[e];
    if (event.kind != Kind::Read && event.kind != Kind::Rmw) return support(event.expr);
    std::vector<uint64_t> bytes;
    for (uint32_t from : sources_.at(e)) {
      if (from == trace::kNone) continue;
      const auto more = support(trace_.events[from].expr);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }

 private:
  enum class Dependence : uint8_t { Unasked, No, Yes };
  struct PlaceHash {
    size_t operator()(const Place& p) const { return (p.second * 0x9e3779b97f4a7c15ull) ^ p.first; }
  };

  void pass_read(uint32_t e, const std::unordered_map<Place, uint32_t, PlaceHash>& last) {
    if (last.empty()) return;
    const Event& event = trace_.events[e];
    std::vector<uint32_t> from(event.size, trace::kNone);
    bool any = false;
    for (unsigned k = 0; k < event.size; ++k)
      if (auto it = last.find({event.object, event.addr + k}); it != last.end()) from[k] = it->second, any = true;
    if (any) sources_.emplace(e, std::move(from));
  }

  std::vector<Dependence> dependent_;                             // by expression
  std::unordered_map<uint32_t, std::vector<uint32_t>> sources_;   // by read that depends on an input: writers of its bytes
  std::unordered_map<uint32_t, Term> reads_;
};

// Which input bytes are tied together.
class Ties {
 public:
  size_t find(uint64_t byte) {
    auto [it, fresh] = number_.try_emplace(byte, parent_.size());
    if (fresh) parent_.push_back(parent_.size());
    size_t at = it->second;
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void tie(const std::vector<uint64_t>& bytes) {
    for (size_t i = 1; i < bytes.size(); ++i) {
      const size_t a = find(bytes[0]), b = find(bytes[i]);  // find first: it may grow parent_
      parent_[b] = a;
    }
  }

 private:
  std::map<uint64_t, size_t> number_;
  std::vector<size_t> parent_;
};

}  // namespace

struct InputSolver::Impl {
  Impl(const Index& index, Options options) : trace(index.trace), options(std::move(options)), terms(z3, index) {}

  Answer solve(uint32_t branch, const Wish& wish, const std::function<bool(uint32_t)>& executes) {
    const auto start = std::chrono::steady_clock::now();
    Answer answer;
    answer.name = "inputs_" + std::to_string(branch) + (asked++ ? "_" + std::to_string(asked) : "");
    answer.inputs = trace.inputs;
    const Event& event = trace.events[branch];
    if (!terms.depends(event.expr)) {
      answer.kind = Answer::Kind::Infeasible;
      return answer;
    }
    try {
      z3::solver solver(z3, "QF_BV");
      z3::params params(z3);
      if (options.timeout_ms) params.set("timeout", options.timeout_ms);
      params.set("ctrl_c", false);
      solver.set(params);
      const std::vector<uint64_t> own = terms.support(event.expr);
      for (const z3::expr& part : decides(z3, terms.expression(event.expr), event.value, wish)) solver.add(part);
      const std::vector<uint32_t> tied = conditions(branch, own, executes);
      for (uint32_t e : tied) solver.add(terms.holds(e));
      const z3::check_result result = solver.check();
      if (result == z3::sat) {
        answer.kind = Answer::Kind::Feasible;
        std::vector<uint64_t> bytes = own;
        for (uint32_t e : tied) {
          const auto& more = supports.at(e);
          bytes.insert(bytes.end(), more.begin(), more.end());
        }
        read_model(solver.get_model(), bytes, answer);
      } else if (result == z3::unsat) {
        answer.kind = Answer::Kind::Infeasible;
      } else {
        answer.reason = solver.reason_unknown();
      }
      if (!options.dump.empty()) dump(solver, answer);
    } catch (const z3::exception& error) {
      answer.kind = Answer::Kind::Unknown;
      answer.reason = error.msg();
    }
    answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return answer;
  }

  // The executed conditions that share input bytes with the branch, directly or by way of others.
  std::vector<uint32_t> conditions(uint32_t branch, const std::vector<uint64_t>& own, const std::function<bool(uint32_t)>& executes) {
    std::vector<uint32_t> executed;
    Ties ties;
    ties.tie(own);
    for (uint32_t e : terms.conditions) {
      if (e >= branch) break;
      if (!executes(e) || same_decision(trace, e, branch)) continue;
      executed.push_back(e);
      auto it = supports.find(e);
      if (it == supports.end()) it = supports.emplace(e, terms.support_of(e)).first;
      ties.tie(it->second);
    }
    std::vector<uint32_t> tied;
    for (uint32_t e : executed)
      if (!supports.at(e).empty() && ties.find(supports.at(e)[0]) == ties.find(own[0])) tied.push_back(e);
    return tied;
  }

  void read_model(const z3::model& model, const std::vector<uint64_t>& bytes, Answer& answer) {
    for (uint64_t byte : bytes) {
      const uint32_t input = static_cast<uint32_t>(byte >> 32), offset = static_cast<uint32_t>(byte);
      uint64_t value = 0;
      if (model.eval(terms.input_byte(input, offset)).is_numeral_u64(value))
        answer.inputs.at(input).bytes.at(offset) = static_cast<uint8_t>(value);
    }
  }

  void dump(z3::solver& solver, const Answer& answer) const {
    std::error_code ignored;  // the file will tell
    std::filesystem::create_directories(options.dump, ignored);
    const std::string path = options.dump + "/" + answer.name + ".smt2";
    std::ofstream file(path);
    file << "; " << answer.name << ": inputs that lead the branch the other way in the recorded order? answered "
         << (answer.kind == Answer::Kind::Feasible ? "sat" : answer.kind == Answer::Kind::Infeasible ? "unsat" : "unknown") << "\n"
         << solver.to_smt2();
    file.flush();
    if (!file) user_error("{}: cannot write the query; choose another folder with --dump-smt", path);
  }

  const trace::Trace& trace;
  const Options options;
  z3::context z3;
  FixedTerms terms;
  std::unordered_map<uint32_t, std::vector<uint64_t>> supports;  // by condition
  unsigned asked = 0;
};

InputSolver::InputSolver(const Index& index, Options options) : impl_(std::make_unique<Impl>(index, std::move(options))) {}
InputSolver::~InputSolver() = default;

bool InputSolver::depends(uint32_t branch) const { return impl_->terms.depends(impl_->trace.events.at(branch).expr); }

Answer InputSolver::solve(uint32_t branch, const Wish& wish, const std::function<bool(uint32_t)>& executes) {
  return impl_->solve(branch, wish, executes);
}

}  // namespace stem::encoder
