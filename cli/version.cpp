// `stem version`: what is installed.
#include <fmt/core.h>

#include "cli/command.h"

namespace stem::cli {

void add_version(CLI::App& app) {
  app.add_subcommand("version", "Print the version")->callback([] { fmt::print("stem {}\n", STEM_VERSION); });
}

}  // namespace stem::cli
