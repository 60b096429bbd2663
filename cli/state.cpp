#include "cli/state.h"

namespace stem::cli {

CLI::Option* add_database_option(CLI::App& command, std::string& file) {
  return command.add_option("--db", file, "The database (default: .stem/stem.db here or in a folder above)")->type_name("FILE");
}

}  // namespace stem::cli
