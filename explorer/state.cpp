#include "explorer/state.h"

#include <cstdlib>

namespace stem::explorer {
namespace fs = std::filesystem;
namespace {

// Of the current folder and those above it, the nearest that has a .stem; the current one if none has.
fs::path find_project() {
  std::error_code ignored;
  const fs::path here = fs::current_path();
  for (fs::path folder = here;; folder = folder.parent_path()) {
    if (fs::is_directory(folder / ".stem", ignored)) return folder;
    if (folder == folder.parent_path()) return here;
  }
}

}  // namespace

State find_state(const std::string& database_file) {
  State state;
  const char* elsewhere = std::getenv("STEM_STATE");
  if (elsewhere && *elsewhere) {
    state.folder = fs::absolute(elsewhere);
    state.project = state.folder.has_parent_path() ? state.folder.parent_path() : fs::current_path();
  } else {
    state.project = find_project();
    state.folder = state.project / ".stem";
  }
  if (!database_file.empty()) {
    state.database = database_file;
    const fs::path folder = fs::absolute(state.database).parent_path();
    if (folder.filename() == ".stem") {  // another project's
      state.folder = folder;
      state.project = folder.parent_path();
    }
  } else {
    state.database = state.folder / "stem.db";
  }
  state.traces = state.folder / "traces";
  state.ignore = state.folder / "ignore";
  return state;
}

State state_at(const fs::path& folder) {
  State state;
  state.folder = fs::absolute(folder).lexically_normal();
  if (state.folder.filename().empty()) state.folder = state.folder.parent_path();
  state.project = state.folder.parent_path();
  state.database = state.folder / "stem.db";
  state.traces = state.folder / "traces";
  state.ignore = state.folder / "ignore";
  return state;
}

std::string absolute_path(const State& state, const std::string& path) {
  return path.empty() || path[0] == '/' ? path : (state.project / path).string();
}

std::string project_path(const State& state, const std::string& path, const std::string& relative_to) {
  if (path.empty()) return path;
  fs::path whole = path;
  if (whole.is_relative()) whole = fs::path(relative_to.empty() ? fs::current_path() : fs::path(relative_to)) / whole;
  whole = whole.lexically_normal();
  const fs::path below = whole.lexically_relative(state.project.lexically_normal());
  if (below.empty() || *below.begin() == "..") return whole.string();
  return below.string();
}

}  // namespace stem::explorer
