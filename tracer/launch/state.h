// The state folder `.stem/`: traces/<id>.stemtrace, and runs.jsonl, one line a recorded run. Lines are only ever appended,
// under a lock, so that several `stem record` at once lose nothing and a run keeps its id for good.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stem::launch {

struct RunEntry {
  uint64_t id = 0;               // from 1
  std::string trace;             // path of the trace
  std::string program;
  std::vector<std::string> argv;
  std::string mode;
  uint64_t seed = 0;
  std::string outcome;           // as a sentence: "exited with 0"
  uint64_t events = 0;
  uint64_t threads = 0;
  std::string test;              // the test file that gave the inputs and schedule, if any
};

class State {
 public:
  // `given` or STEM_STATE or ".stem" in the current folder. Nothing is created yet.
  explicit State(const std::string& given = "");

  const std::string& folder() const { return folder_; }
  std::string traces() const { return folder_ + "/traces"; }

  // Gives the run an id, moves its trace to traces/<id>.stemtrace and remembers it.
  RunEntry add(RunEntry run);

  std::vector<RunEntry> runs() const;
  std::optional<RunEntry> find(uint64_t id) const;

 private:
  std::string folder_;
};

}  // namespace stem::launch
