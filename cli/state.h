// The option that every command that uses the database has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "explorer/state.h"

namespace stem::cli {

using explorer::absolute_path;
using explorer::find_state;
using explorer::project_path;
using explorer::State;
using explorer::state_at;

// `--db FILE`. Empty: explorer::find_state() looks for it.
CLI::Option* add_database_option(CLI::App& command, std::string& file);

}  // namespace stem::cli
