#include <doctest/doctest.h>

#include "trace/builder.h"
#include "trace/text.h"
#include "util/error.h"

using namespace stem::trace;

namespace {

Trace example() {
  Builder b;
  b.trace().meta.argv = {"./a", "tab\tquote\"\\\n\x01"};
  b.trace().nondets.push_back({"time", {1, 2, 255}});
  b.trace().messages = {"{\"kind\":\"note\"}"};
  auto x = b.global("x", 4, 7);
  auto m = b.sync("m");
  auto in = b.input("a", 258, 4);
  auto t = b.spawn("worker");
  b.lock(t, m, b.site("dir/a file.c", 3, "m"));
  auto r = b.read(t, x, 7, b.site("a.c", 4, "x"));
  auto sum = b.op(Op::Add, 32, b.leaf(r), b.input_leaf(in, 32));
  b.write(t, x, 265, b.site("a.c", 5, "x"), sum);
  b.branch(t, b.op(Op::Ult, 1, sum, b.constant(32, 300)), 1, b.site("a.c", 6));
  b.unlock(t, m);
  b.expr(Op::Opaque, 16, sum, 0, 0, 9);
  b.end(t);
  b.join(0, t);
  b.at(b.size() - 1).flags = 0x8000 | kTainted;
  auto h = b.alloc(0, "heap(main:9)", 24, b.site("a.c", 9), kZeroed);
  b.free(0, h);
  return b.take(Outcome::Signalled, -3);
}

}  // namespace

TEST_CASE("the text form comes back exactly") {
  Trace trace = example();
  std::string text = print(trace);
  CHECK(parse(text) == trace);
  CHECK(print(parse(text)) == text);
  CHECK(text.find("main/1 a.c:4:1 x") != std::string::npos);
}

TEST_CASE("a slip in a hand-written trace is reported with its line") {
  auto message = [](const std::string& text) -> std::string {
    try {
      parse(text, "t.txt");
    } catch (const stem::UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message("") == "t.txt:0: not a trace in text form: it must begin with 'stem-trace 1'");
  CHECK(message("stem-trace 2\n") == "t.txt:1: this is version 2 of the text form; this STEM reads version 1");
  CHECK(message("stem-trace 1\nthread t1 path=\"main\"\n") == "t.txt:2: thread t1 is out of order: the next one is t0");
  CHECK(message("stem-trace 1\n\nt0 read\n") == "t.txt:3: there is no thread t0");
  CHECK(message("stem-trace 1\nthread t0 path=\"main\"\nt0 raed\n") == "t.txt:3: 'raed' is no kind of event");
  CHECK(message("stem-trace 1\ne1 add:32 e1 e2\n") == "t.txt:2: operand e1 is not defined before");
  CHECK(message("stem-trace 1\nvariable v0 \"x\n") == "t.txt:2: a string without its closing quote");
}
