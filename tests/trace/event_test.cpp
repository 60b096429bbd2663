#include <doctest/doctest.h>

#include "trace/event.h"

using namespace stem::trace;

TEST_CASE("the tables of kinds and operations agree with their enums") {
  CHECK(kind_name(Kind::Start) == doctest::String("start"));
  CHECK(kind_name(Kind::Exit) == doctest::String("exit"));
  CHECK(is_visible(Kind::Rmw));
  CHECK_FALSE(is_visible(Kind::Branch));
  CHECK(op_arity(Op::Ite) == 3);
}
