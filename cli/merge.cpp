// `stem merge A.db B.db...`: results of several machines in one database.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/state.h"
#include "db/merge.h"
#include "util/error.h"

namespace stem::cli {

void add_merge(CLI::App& app) {
  struct Arguments {
    std::string into;
    std::vector<std::string> files;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("merge", "Bring the results of several databases together");
  command->footer(
      "Adds what every later database knows to the first, which is made if it is not there. The others are not changed.\n"
      "With --into, all of them are added to that one instead.\n"
      "Example: stem merge --into all.db machine1.db machine2.db");
  command->add_option("databases", arguments->files, "A.db B.db ...")->type_name("FILE")->required();
  command->add_option("--into", arguments->into, "The database to add to (default: the first)")->type_name("FILE");
  command->callback([arguments] {
    std::vector<std::string> from = arguments->files;
    std::string into = arguments->into;
    if (into.empty()) {
      into = from.front();
      from.erase(from.begin());
      if (from.empty()) user_error("merge what? Give two databases or more: stem merge A.db B.db");
    }
    for (const std::string& file : from) {  // before anything is changed
      std::error_code ignored;
      if (std::filesystem::equivalent(file, into, ignored)) user_error("{} cannot be merged into itself.", file);
      db::Database check(file, db::Mode::Read);
    }
    db::Database database(into, db::Mode::Create);
    for (const std::string& file : from) {
      const db::Merged merged = db::merge(database, file);
      fmt::print("{}: {} runs, {} pairs, {} verdicts, {} findings more\n", file, merged.runs, merged.pairs, merged.verdicts, merged.findings);
    }
  });
}

}  // namespace stem::cli
