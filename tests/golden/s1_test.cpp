// Golden case S1, the running example: on each of its three traces, the exact pairs, from brute force and from Z3.
//
//     T0(a)                 T1(b)                 T2(c)
//     1: if (a > 1)         6: if (b > 5)         14: if (c < 2)
//     2:   z = x + 2;       7:   b = y + 1;       15:   d = 1;
//        else {                else                    else
//     4:   z = x - 2;       9:   b = y - 1;       17:   d = 0;
//     5:   x = 3; }         10: if (x > 2)
//                           11:   y = z + 1;
//                              else
//                           13:   x = z - 1;
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "oracle/subjects.h"
#include "trace/text.h"

using namespace stem;

namespace {

using Names = std::set<std::string>;  // "x W13 R2": static pairs by line; W0 is the initial value

trace::Trace load(const std::string& name) {
  const std::string path = std::string(STEM_SOURCE_DIR) + "/tests/golden/" + name;
  std::ifstream file(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return trace::parse(text.str(), path);
}

Names names(const trace::Trace& trace, const std::set<predictor::EventPair>& pairs) {
  Names names;
  for (const auto& [write, read] : pairs) {
    const trace::Event& r = trace.events[read];
    const uint32_t line = write == predictor::kInitial ? 0 : trace.sites[trace.events[write].site].line;
    names.insert(fmt::format("{} W{} R{}", trace.variables[r.variable], line, trace.sites[r.site].line));
  }
  return names;
}

// Inputs occur in one comparison each (a > 1, b > 5, c < 2): one value on either side is all that can matter.
std::vector<oracle::InputVector> all_inputs() {
  std::vector<oracle::InputVector> all;
  for (uint8_t a : {1, 2})
    for (uint8_t b : {5, 6})
      for (uint8_t c : {1, 2}) all.push_back({{a, 0, 0, 0}, {b, 0, 0, 0}, {c, 0, 0, 0}});
  return all;
}

struct Golden {
  const char* file;
  Names observed, full, prefix;  // full and prefix: implicit, that is besides the observed
};

const Golden kGolden[] = {
    {"s1-pi1.trace", {"x W0 R2", "x W0 R10", "z W2 R13", "y W0 R9"}, {"x W13 R2", "z W0 R13"}, {"x W13 R2", "z W0 R13"}},
    {"s1-pi2.trace", {"x W0 R4", "z W4 R11", "x W5 R10", "y W0 R9"}, {}, {"x W0 R10"}},
    {"s1-pi3.trace",
     {"x W0 R4", "x W0 R10", "z W4 R13", "y W0 R9"},
     {"x W13 R4", "z W0 R13"},
     {"x W13 R4", "z W0 R13", "x W5 R10"}},
};

Names both(Names a, const Names& b) {
  a.insert(b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("S1: the pairs of each trace are exactly those of the theory") {
  for (const Golden& golden : kGolden) {
    CAPTURE(golden.file);
    const trace::Trace trace = load(golden.file);
    CHECK(names(trace, oracle::observed_pairs(trace)) == golden.observed);

    const auto truth = oracle::enumerate(trace, all_inputs(), 1000000);
    REQUIRE(truth);
    CHECK(names(trace, truth->full) == both(golden.observed, golden.full));
    CHECK(names(trace, truth->prefix) == both(golden.observed, golden.prefix));

    for (const oracle::Subject& subject : oracle::subjects()) {
      CAPTURE(subject.name);
      if (subject.full) CHECK(names(trace, subject.predict(trace, oracle::Meaning::Full)) == both(golden.observed, golden.full));
      if (subject.prefix)
        CHECK(names(trace, subject.predict(trace, oracle::Meaning::Prefix)) == both(golden.observed, golden.prefix));
    }
  }
}

TEST_CASE("S1: the text form of the golden traces parses back to itself") {
  for (const Golden& golden : kGolden) {
    const trace::Trace trace = load(golden.file);
    CHECK(trace::parse(trace::print(trace)) == trace);
  }
}
