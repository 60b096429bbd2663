#include "report/change.h"

#include <charconv>

#include "util/error.h"
#include "util/subprocess.h"
#include "util/text.h"

namespace stem::report {
namespace {

namespace fs = std::filesystem;

std::string git(const fs::path& folder, std::vector<std::string> arguments, const std::string& failure) {
  arguments.insert(arguments.begin(), {"git", "-c", "core.quotePath=false"});
  const auto finished = run_program(arguments, folder);
  if (!finished) user_error("--since needs git, and it cannot be run.");
  if (finished->code != 0) user_error("{}", failure);
  return finished->output;
}

// A name in a diff: "b/dir/file", in quotes with C escapes if it has special characters.
std::string unquote(std::string_view text) {
  std::string name;
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    if (text.ends_with('"')) text.remove_suffix(1);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        name += text[i];
        continue;
      }
      const char c = text[++i];
      if (c >= '0' && c <= '7' && i + 2 < text.size()) {
        name += static_cast<char>((c - '0') * 64 + (text[i + 1] - '0') * 8 + (text[i + 2] - '0'));
        i += 2;
      } else {
        name += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      }
    }
  } else {
    if (text.ends_with('\t')) text.remove_suffix(1);  // git adds it to names with a space
    name = text;
  }
  return name.starts_with("b/") ? name.substr(2) : name;
}

// "@@ -3,2 +5,4 @@": lines 5 to 8.
void add_hunk(std::string_view line, std::set<int64_t>& lines) {
  const size_t plus = line.find('+');
  if (plus == std::string_view::npos) return;
  int64_t first = 0, count = 1;
  const char* end = line.data() + line.size();
  auto result = std::from_chars(line.data() + plus + 1, end, first);
  if (result.ptr != end && *result.ptr == ',') std::from_chars(result.ptr + 1, end, count);
  for (int64_t i = 0; i < count; ++i) lines.insert(first + i);
}

bool touches(const Change& change, const Place& place) {
  const auto file = change.lines.find(place.file);
  return file != change.lines.end() && file->second.count(place.line);
}

// Compares by fingerprint with the base's pairs (fingerprint -> covered).
void fill(Change& change, const Model& model, const std::map<std::string, bool>& base) {
  for (size_t i = 0; i < model.pairs.size(); ++i) {
    const Pair& pair = model.pairs[i];
    const auto known = base.find(pair.fingerprint);
    const bool touched = touches(change, pair.use) || touches(change, pair.def);
    const bool added = change.base_known ? known == base.end() : touched;
    const bool no_more = known != base.end() && known->second && !pair.covered();
    if (added) change.added.push_back(i);
    if (no_more) change.uncovered_since.push_back(i);
    if ((added || touched || no_more) && pair.open()) change.untested.push_back(i);
  }
}

}  // namespace

std::map<std::string, std::set<int64_t>> changed_lines(const std::string& diff) {
  std::map<std::string, std::set<int64_t>> lines;
  std::string file;
  int64_t body = 0;  // lines of the hunk still to come: they may look like headers
  for (std::string_view line : split_lines(diff)) {
    if (body > 0 && (line.starts_with('+') || line.starts_with('-'))) {
      --body;
    } else if (line.starts_with("+++ ")) {
      file = line == "+++ /dev/null" ? "" : unquote(line.substr(4));
    } else if (line.starts_with("@@ ")) {
      std::set<int64_t> removed;
      std::set<int64_t>& added = lines[file];
      const size_t before = added.size();
      add_hunk(line, added);
      std::string old_side(line);
      old_side[old_side.find('+')] = ' ';
      old_side[old_side.find('-')] = '+';
      add_hunk(old_side, removed);
      body = static_cast<int64_t>(added.size() - before + removed.size());
    }
  }
  lines.erase("");
  return lines;
}

Change since(const Model& model, db::Database& database, const fs::path& project, const std::string& revision) {
  Change change;
  change.base = revision;
  const std::string commit = std::string(trim(
      git(project, {"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"},
          fmt::format("--since {}: git knows no such revision in {}.", printable(revision), project.string()))));
  change.lines = changed_lines(git(project, {"diff", "--unified=0", "--no-color", "--no-ext-diff", "--relative", "--src-prefix=a/", "--dst-prefix=b/", commit, "--", "."},
                                   "git diff failed in " + project.string()));
  std::string_view untracked_rest;
  const std::string untracked = git(project, {"ls-files", "-z", "--others", "--exclude-standard"}, "git ls-files failed");
  for (untracked_rest = untracked; !untracked_rest.empty();) {
    const std::string name(untracked_rest.substr(0, untracked_rest.find('\0')));
    untracked_rest.remove_prefix(std::min(untracked_rest.size(), name.size() + 1));
    const auto text = model.sources.find(name);
    if (text == model.sources.end()) continue;
    const auto count = static_cast<int64_t>(split_lines(text->second).size());
    for (int64_t line = 1; line <= count; ++line) change.lines[name].insert(line);
  }
  std::map<std::string, bool> base;
  std::map<std::string, int64_t> ids;
  for (const db::Row& row : database.rows(
           "SELECT p.fingerprint, max(e.state = 'explicit'), p.id FROM evidence e JOIN pair p ON p.id = e.pair_id "
           "JOIN version v ON v.id = e.version_id WHERE v.git_commit = :commit AND NOT v.git_dirty GROUP BY p.id",
           {{"commit", commit}})) {
    base[db::to_text(row[0])] = std::get<int64_t>(row[1]) != 0;
    ids[db::to_text(row[0])] = std::get<int64_t>(row[2]);
  }
  change.base_known = !base.empty();
  fill(change, model, base);
  std::set<std::string> present;
  for (const Pair& pair : model.pairs) present.insert(pair.fingerprint);
  for (const auto& [fingerprint, covered] : base) {
    if (present.count(fingerprint)) continue;
    const auto rows = database.rows("SELECT name, program, variable, def_kind, def_file, def_line, def_function, use_file, use_line, use_function, state "
                                    "FROM defuse WHERE pair_id = :id", {{"id", ids[fingerprint]}});
    if (rows.empty()) continue;
    const db::Row& r = rows[0];
    const auto line = [](const db::Value& value) { return std::holds_alternative<int64_t>(value) ? std::get<int64_t>(value) : 0; };
    Pair lost;
    lost.id = ids[fingerprint];
    lost.name = db::to_text(r[0]);
    lost.program = db::to_text(r[1]);
    lost.variable = db::to_text(r[2]);
    lost.fingerprint = fingerprint;
    lost.def_kind = db::to_text(r[3]);
    lost.def = {db::to_text(r[4]), line(r[5]), 0, db::to_text(r[6]), ""};
    lost.use = {db::to_text(r[7]), line(r[8]), 0, db::to_text(r[9]), ""};
    lost.state = db::state_from(db::to_text(r[10]));
    change.lost.push_back(lost);
  }
  return change;
}

Change compare(const Model& model, const fs::path& base_file, const fs::path& project) {
  Change change;
  change.base = base_file.string();
  change.base_known = true;
  db::Database database(base_file, db::Mode::Read);
  const Model old = load(database, project);
  std::map<std::string, bool> base;
  for (const Pair& pair : old.pairs) base[pair.fingerprint] = pair.covered();
  fill(change, model, base);
  std::set<std::string> present;
  for (const Pair& pair : model.pairs) present.insert(pair.fingerprint);
  for (const Pair& pair : old.pairs) {
    if (!present.count(pair.fingerprint)) change.lost.push_back(pair);
  }
  return change;
}

}  // namespace stem::report
