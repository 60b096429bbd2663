// Where a project keeps what STEM knows: `.stem/` beside it, with stem.db, traces/ and ignore.
#pragma once

#include <filesystem>
#include <string>

namespace stem::explorer {

struct State {
  std::filesystem::path project;  // the folder that holds .stem: paths in the database are below it
  std::filesystem::path folder;   // .stem
  std::filesystem::path database;
  std::filesystem::path traces;
  std::filesystem::path ignore;  // suppressions
};

// Of `database_file`; empty: .stem/stem.db of the current folder or the nearest folder above it that has one; where
// there is none, in the current folder (STEM_STATE names another place for .stem).
State find_state(const std::string& database_file = "");
State state_at(const std::filesystem::path& folder);  // of a given .stem

// Below the project's folder without it, anything else absolute: how files and programs are named in the database.
std::string project_path(const State& state, const std::string& path, const std::string& relative_to = "");

// The other way round.
std::string absolute_path(const State& state, const std::string& project_path);

}  // namespace stem::explorer
