// The named queries: what the header comment of each file in queries/ says.
//   -- One sentence: the question.
//   -- :name  what to give for this parameter
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stem::queries {

struct Parameter {
  std::string name, help;
};

struct Query {
  std::string name;   // the file's, without .sql
  std::string title;
  std::vector<Parameter> parameters;
  std::string_view sql;
};

const std::vector<Query>& catalog();      // by name
const Query* find(std::string_view name);  // nullptr: no such query

}  // namespace stem::queries
