// The answer about one pair. Never a bool: a feasible pair carries its witness, an infeasible one the bound within which it
// was refuted, an unknown one its reason; and each names the layer that gave it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "encoder/encoder.h"
#include "predictor/witness.h"

namespace stem::predictor {

using encoder::Meaning;

enum class Layer : uint8_t {
#define STEM_LAYER(Name, text) Name,
#include "predictor/layers.def"
};
const char* layer_name(Layer layer);

enum class Why : uint8_t {
#define STEM_UNKNOWN(Name, text) Name,
#include "predictor/unknowns.def"
};
const char* why_text(Why why);

// What part of the trace a refutation looked at: events [first, last) of it. The whole trace when whole is true.
struct Bound {
  bool whole = true;
  uint32_t first = 0;
  uint32_t last = 0;
};

struct Feasible {
  Witness witness;
};
struct Infeasible {
  Bound bound;
};
struct Unknown {
  Why why = Why::NotTried;
  std::string detail;  // a clause for people: "12 of 40 instances tried", "timeout 5 s"
};

class Verdict {
 public:
  Verdict() : answer_(Unknown{}) {}
  static Verdict feasible(Layer layer, Witness witness) { return {layer, Feasible{std::move(witness)}}; }
  static Verdict infeasible(Layer layer, Bound bound = {}) { return {layer, Infeasible{bound}}; }
  static Verdict unknown(Why why, std::string detail = {}, Layer layer = Layer::None) {
    return {layer, Unknown{why, std::move(detail)}};
  }

  bool is_feasible() const { return std::holds_alternative<Feasible>(answer_); }
  bool is_infeasible() const { return std::holds_alternative<Infeasible>(answer_); }
  bool is_unknown() const { return std::holds_alternative<Unknown>(answer_); }
  const Witness& witness() const { return std::get<Feasible>(answer_).witness; }
  const Bound& bound() const { return std::get<Infeasible>(answer_).bound; }
  const Unknown& reason() const { return std::get<Unknown>(answer_); }
  Layer layer() const { return layer_; }

 private:
  using Alternatives = std::variant<Feasible, Infeasible, Unknown>;
  Verdict(Layer layer, Alternatives answer) : layer_(layer), answer_(std::move(answer)) {}
  Layer layer_ = Layer::None;
  Alternatives answer_;
};

}  // namespace stem::predictor
