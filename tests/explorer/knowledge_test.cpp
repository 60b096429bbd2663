// Gamma and Sigma on a small program: if (p) { x = 1 } in one thread, if (q) { use x } in the other; z is used by nobody else.
#include "explorer/knowledge.h"

#include <doctest/doctest.h>

using namespace stem;
using namespace stem::explorer;
using analysis::BranchOutcome;

namespace {

constexpr uint64_t kP = 10, kWrite = 11, kQ = 20, kRead = 21, kLocal = 30;

analysis::Result program() {
  analysis::Result r;
  const auto site = [&](uint64_t key, std::vector<BranchOutcome> escorts, analysis::SiteKind kind = analysis::SiteKind::Access) {
    analysis::StaticSite s;
    s.key = key;
    s.kind = kind;
    s.escorts = std::move(escorts);
    r.sites.push_back(std::move(s));
    return static_cast<uint32_t>(r.sites.size() - 1);
  };
  const uint32_t p = site(kP, {}, analysis::SiteKind::Branch), write = site(kWrite, {{p, 1, false}});
  const uint32_t q = site(kQ, {}, analysis::SiteKind::Branch), read = site(kRead, {{q, 1, false}});
  const uint32_t local = site(kLocal, {});
  r.pairs = {{analysis::kInitial, read, "x", true, true}, {write, read, "x", true, true}, {analysis::kInitial, local, "z", false, false}};
  r.escorts = {{{p, 1, false}, {q, 1, false}}, {BranchOutcome{}, {q, 1, false}}};
  r.dominated = {{{p, 1, false}, {write}}, {{q, 1, false}, {read}}};
  return r;
}

}  // namespace

TEST_CASE("a pair is found once, and covers the escort pairs it lies between") {
  Knowledge known(program(), Sigma::Ours);
  CHECK(known.open_pairs() == 2);
  CHECK(known.open_escorts() == 2);
  CHECK(known.wanted(kWrite, kRead, "x"));
  CHECK(known.predicted({kWrite, kRead, "x"}).size() == 1);
  CHECK(known.seen({kWrite, kRead, "x"}).empty());
  CHECK_FALSE(known.wanted(kWrite, kRead, "x"));
  CHECK(known.open_pairs() == 1);
  CHECK(known.open_escorts() == 1);
  known.refute_rest();
  CHECK(known.open_pairs() == 0);
  CHECK(known.potential()[0].refuted);
  CHECK_FALSE(known.potential()[1].refuted);
}

TEST_CASE("the paper's Sigma has no initial definitions, its pairs remain") {
  Knowledge known(program(), Sigma::Paper);
  CHECK(known.escorts().size() == 1);
  CHECK(known.open_pairs() == 2);
}

TEST_CASE("what only one thread uses, what no source allows and inputs are not asked for") {
  Knowledge known(program(), Sigma::Ours);
  CHECK_FALSE(known.wanted(kInitialKey, kLocal, "z"));
  CHECK_FALSE(known.wanted(kRead, kWrite, "x"));
  CHECK_FALSE(known.wanted(kInputKey, kRead, "x"));
}

TEST_CASE("a name that no run uses stands for whatever runs call the variable") {
  Knowledge known(program(), Sigma::Ours);
  CHECK(known.wanted(kWrite, kRead, "main::x"));
  known.seen({kWrite, kRead, "main::x"});
  CHECK(known.open_pairs() == 1);
  known.seen({kInitialKey, kRead, "x"});
  CHECK(known.open_pairs() == 0);
}

TEST_CASE("what a branch may add: pairs whose other end is executed or ahead, escort pairs with outcomes taken") {
  Knowledge known(program(), Sigma::Ours);
  const auto q = known.outcome(kQ, 1), p = known.outcome(kP, 1);
  REQUIRE(q);
  REQUIRE(p);
  CHECK(known.gain({}, *q) == 1);                            // the initial value
  CHECK(known.gain({known.site(kWrite)}, *q) == 2);
  CHECK(known.open_with(*q, {}).size() == 1);
  CHECK(known.open_with(*q, {*p}).size() == 2);
  known.seen({kWrite, kRead, "x"});
  CHECK(known.gain({known.site(kWrite)}, *q) == 1);
  CHECK(known.open_with(*q, {*p}).size() == 1);
}
