#include "tracer/launch/message.h"

#include <doctest/doctest.h>

using namespace stem;
using namespace stem::launch;

namespace {

trace::Trace names() {
  trace::Trace run;
  run.sites.resize(3);
  run.sites[1] = {0x11, "/src/q.c", 12, 3, "worker", "q->lock", ""};
  run.sites[2] = {0x22, "/src/q.c", 20, 3, "", "", ""};
  run.threads = {{"main", trace::kNone, "main"}, {"main/1", 0, "worker"}};
  run.objects.push_back({trace::ObjectKind::Global, 0x1000, 40, "table_lock", trace::kNone, 0, "table_lock", false, {}});
  return run;
}

}  // namespace

TEST_CASE("a deadlock names threads, variables and lines") {
  std::string text = render_message(
      R"({"kind":"deadlock","threads":[{"thread":"main/1","op":"lock","addr":"9999","site":"0000000000000011","holder":"main"},
          {"thread":"main","op":"lock","addr":"1008","site":"0000000000000022","holder":"main/1"}]})", names());
  CHECK(text ==
        "deadlock: no thread can go on\n"
        "  thread main/1 (worker) waits to lock q->lock at /src/q.c:12 in worker, held by thread main\n"
        "  thread main waits to lock table_lock at /src/q.c:20, held by thread main/1 (worker)");
}

TEST_CASE("a divergence says what was wanted and what came") {
  std::string text = render_message(
      R"({"kind":"divergence","step":3,"thread":"main/1","wanted":{"op":"read","site":"0000000000000011"},"found":{"op":"end"},"why":"another operation"})", names());
  CHECK(text ==
        "the run left the schedule at step 3: another operation\n"
        "  the schedule wants thread main/1 (worker) to read q->lock at /src/q.c:12 in worker\n"
        "  but it is about to end");
}

TEST_CASE("anything else is shown as it is, never a crash") {
  trace::Trace run = names();
  CHECK(render_message("plain text", run) == "plain text");
  CHECK(render_message("{\"kind\":3}", run) == "{\"kind\":3}");
  CHECK(render_message(R"({"kind":"note","why":"hello"})", run) == "hello");
  CHECK(render_message(R"({"kind":"deadlock","threads":7})", run) == "deadlock: no thread can go on");
  CHECK(render_message(R"({"kind":"deadlock","threads":[1,{}]})", run) == "deadlock: no thread can go on\n  a thread waits to go on");
  CHECK(message_kind("x") == "note");
  CHECK(message_kind(R"({"kind":"livelock"})") == "livelock");
}
