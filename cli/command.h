// How a subcommand is written: `add_<name>` registers it, its callback does the work and throws UserError for what the
// user can put right, or CLI::RuntimeError(1) for "done, with findings".
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace stem::cli {

#define STEM_COMMAND(name) void add_##name(CLI::App& app);
#include "cli/commands.def"
#undef STEM_COMMAND

// For a command that runs a program (prefix_command()): the program and its arguments, with or without `--` before them.
// Throws UserError for an option that the command does not have.
std::vector<std::string> program_words(const CLI::App& command);

}  // namespace stem::cli
