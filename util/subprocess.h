// Runs a helper program (git, mostly) without a shell and keeps what it prints.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stem {

struct Finished {
  int code = 0;        // exit code; 128 + signal if one ended it
  std::string output;  // standard output; standard error is thrown away
};

// Nothing: the program could not be started.
std::optional<Finished> run_program(const std::vector<std::string>& argv, const std::filesystem::path& folder = {});

}  // namespace stem
