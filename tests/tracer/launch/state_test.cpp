#include "tracer/launch/state.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "util/error.h"

using namespace stem;
using namespace stem::launch;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/stem-state-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
  fs::path path;
};

}  // namespace

TEST_CASE("runs get ids and keep them, whoever records at the same time") {
  Folder folder;
  State state(folder.path / "s");
  CHECK(state.runs().empty());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      RunEntry run;
      run.trace = folder.file("t" + std::to_string(i), std::to_string(i));
      run.program = "p" + std::to_string(i);
      State(folder.path / "s").add(run);
    });
  for (auto& thread : threads) thread.join();
  auto runs = state.runs();
  REQUIRE(runs.size() == 8);
  for (size_t i = 0; i < 8; ++i) {
    CHECK(runs[i].id == i + 1);
    std::string text;
    std::ifstream(runs[i].trace) >> text;
    CHECK("p" + text == runs[i].program);
  }
  CHECK(state.find(3)->program == runs[2].program);
  CHECK_FALSE(state.find(9));
}

TEST_CASE("damaged lines are skipped, their ids are not reused for another trace") {
  Folder folder;
  fs::create_directories(folder.path / "s/traces");
  std::ofstream(folder.path / "s/runs.jsonl") << "nonsense\n{\"id\":\"x\"}\n{\"id\":4,\"trace\":\"traces/4.stemtrace\"}\n";
  std::ofstream(folder.path / "s/traces/5.stemtrace") << "somebody's";
  RunEntry run;
  run.trace = folder.file("t", "new");
  CHECK(State(folder.path / "s").add(run).id == 6);
}

TEST_CASE("a folder that cannot be written is the user's error") {
  RunEntry run;
  run.trace = "/nowhere";
  CHECK_THROWS_AS(State("/proc/no").add(run), UserError);
}
