// Alternate branches: golden case S1, and by hand what bounds an answer, assertions, switches, schedules.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "predictor/alternate.h"
#include "predictor/checker.h"
#include "trace/builder.h"
#include "trace/text.h"

using namespace stem;
using namespace stem::predictor;
using trace::Kind;
using trace::Op;

namespace {

trace::Trace load(const std::string& name) {
  const std::string path = std::string(STEM_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return trace::parse(text.str(), path);
}

uint32_t branch_at(const trace::Trace& trace, uint32_t line) {
  for (uint32_t e = 0; e < trace.events.size(); ++e)
    if (trace.events[e].kind == Kind::Branch && trace.sites[trace.events[e].site].line == line) return e;
  FAIL("no branch at line " << line);
  return 0;
}

int32_t number(const trace::Input& input) {
  uint32_t bits = 0;
  for (size_t k = 0; k < 4; ++k) bits |= static_cast<uint32_t>(input.bytes.at(k)) << 8 * k;
  return static_cast<int32_t>(bits);
}

}  // namespace

TEST_CASE("S1: which branches of each trace can go the other way") {
  for (const char* file : {"s1-pi1.trace", "s1-pi2.trace", "s1-pi3.trace"}) {
    CAPTURE(file);
    const trace::Trace trace = load(file);
    Alternates alternates(trace);
    const Alternate one = alternates.negate(branch_at(trace, 1));
    REQUIRE(one.kind == Alternate::Kind::Feasible);
    CHECK((number(one.witness.inputs[0]) > 1) == (std::string(file) != "s1-pi1.trace"));
    const Alternate six = alternates.negate(branch_at(trace, 6));
    REQUIRE(six.kind == Alternate::Kind::Feasible);
    CHECK(number(six.witness.inputs[1]) > 5);
    const Alternate fourteen = alternates.negate(branch_at(trace, 14));
    REQUIRE(fourteen.kind == Alternate::Kind::Feasible);
    CHECK(number(fourteen.witness.inputs[2]) < 2);
    const Alternate ten = alternates.negate(branch_at(trace, 10));
    if (std::string(file) == "s1-pi1.trace") {
      CHECK(ten.kind == Alternate::Kind::Infeasible);
      CHECK(!ten.bounded);
    } else {
      REQUIRE(ten.kind == Alternate::Kind::Feasible);
      for (size_t i = 0; i < 3; ++i) CHECK(ten.witness.inputs[i] == trace.inputs[i]);  // the order alone does it
      CHECK(ten.value == (std::string(file) == "s1-pi3.trace"));
    }
  }
}
