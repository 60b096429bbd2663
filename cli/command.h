// How a subcommand is written: `add_<name>` registers it, its callback does the work and throws UserError for what the
// user can put right, or CLI::RuntimeError(1) for "done, with findings".
#pragma once

#include <CLI/CLI.hpp>

namespace stem::cli {

#define STEM_COMMAND(name) void add_##name(CLI::App& app);
#include "cli/commands.def"
#undef STEM_COMMAND

}  // namespace stem::cli
