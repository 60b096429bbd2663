// `stem query`: a named question or SQL, on the database of this project. Nothing is changed unless --write is given.
#include <charconv>
#include <fmt/core.h>
#include <iostream>

#include "cli/command.h"
#include "cli/state.h"
#include "cli/table.h"
#include "db/embedded.h"
#include "queries/catalog.h"
#include "util/error.h"

namespace stem::cli {
namespace {

struct Arguments {
  std::string what, database, other, format = "table";
  std::vector<std::string> parameters, values;
  bool list = false, schema = false, show = false, write = false;
};

void print_list() {
  size_t width = 0;
  for (const auto& query : queries::catalog()) width = std::max(width, query.name.size());
  for (const auto& query : queries::catalog()) {
    fmt::print("{:{}}  {}\n", query.name, width, query.title);
    for (const auto& parameter : query.parameters) {
      fmt::print("{:{}}    --param {}=...  {}\n", "", width, parameter.name, parameter.help);
    }
  }
}

// Text that looks like SQL, and not like a name that was mistyped.
bool is_sql(const std::string& text) { return text.find_first_of(" \n\t;(") != std::string::npos; }

db::Value parse_value(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return number;
  return text;
}

[[noreturn]] void no_such_query(const std::string& name) {
  std::string close;
  for (const auto& query : queries::catalog()) {
    if (query.name.find(name) != std::string::npos) close += (close.empty() ? "" : ", ") + query.name;
  }
  user_error("there is no query {}{}. `stem query --list` shows all; SQL goes in quotes: stem query \"SELECT ...\"", name,
             close.empty() ? "" : " (did you mean " + close + "?)");
}

db::Parameters parameters_of(const Arguments& arguments, const queries::Query* named) {
  db::Parameters parameters;
  for (const std::string& text : arguments.parameters) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) user_error("--param {}: write it as name=value.", text);
    parameters[text.substr(0, equals)] = parse_value(text.substr(equals + 1));
  }
  for (size_t i = 0; i < arguments.values.size(); ++i) {  // stem query pairs-of-line queue.c 12
    if (!named || i >= named->parameters.size()) user_error("{}: a value too many; the query takes {}.", arguments.values[i], named ? named->parameters.size() : 0);
    parameters[named->parameters[i].name] = parse_value(arguments.values[i]);
  }
  return parameters;
}

void run(const Arguments& arguments) {
  if (arguments.list) return print_list();
  if (arguments.schema) {
    fmt::print("{}\n{}", db::embedded_file("schema.sql"), db::embedded_file("views.sql"));
    return;
  }
  if (arguments.what.empty()) user_error("which query? `stem query --list` shows them; or give SQL in quotes.");
  const queries::Query* named = queries::find(arguments.what);
  if (!named && !is_sql(arguments.what)) no_such_query(arguments.what);
  if (arguments.show) {
    fmt::print("{}", named ? named->sql : arguments.what);
    return;
  }
  auto printer = make_printer(arguments.format, std::cout);
  const db::Parameters parameters = parameters_of(arguments, named);
  db::Database database(find_state(arguments.database).database, arguments.write ? db::Mode::Write : db::Mode::Read);
  if (!arguments.other.empty()) database.attach(arguments.other, "other");
  const std::string_view sql = named ? named->sql : std::string_view(arguments.what);
  if (named && arguments.other.empty() && sql.find("other.defuse") != std::string_view::npos) {
    user_error("{} compares with another database: add --other FILE.", named->name);
  }
  database.query(sql, parameters, [&](const auto& names) { printer->header(names); }, [&](const db::Row& row) { printer->row(row); });
  printer->end();
}

}  // namespace

void add_query(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("query", "Ask the database a named question, or in SQL");
  command->footer(
      "Examples:\n"
      "  stem query --list\n"
      "  stem query pairs-of-variable --param variable=head\n"
      "  stem query pairs-of-line queue.c 42\n"
      "  stem query \"SELECT variable, state, count(*) FROM defuse GROUP BY 1, 2\" --format csv\n"
      "  stem query diff-databases --other main.db");
  command->add_option("query", arguments->what, "A name from --list, or SQL in quotes")->type_name("NAME|SQL");
  command->add_option("values", arguments->values, "Values of the parameters, in the order --list shows them");
  command->add_option("--param", arguments->parameters, "Value of a parameter, name=value")->type_name("K=V")->expected(1)->take_all();
  command->add_option("--format", arguments->format, "table, csv or json")->capture_default_str();
  add_database_option(*command, arguments->database);
  command->add_option("--other", arguments->other, "Another database, in SQL as other.defuse ...")->type_name("FILE");
  command->add_flag("--write", arguments->write, "Let the SQL change the database");
  command->add_flag("--list", arguments->list, "List the named queries");
  command->add_flag("--show", arguments->show, "Print the SQL of a named query");
  command->add_flag("--schema", arguments->schema, "Print the documented schema and the views");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace stem::cli
