#include "queries/catalog.h"

#include "queries/embedded.h"
#include "util/text.h"

namespace stem::queries {
namespace {

Query parse(std::string_view name, std::string_view sql) {
  Query query{std::string(name.substr(0, name.rfind('.'))), "", {}, sql};
  for (std::string_view line : split_lines(sql)) {
    if (!line.starts_with("--")) break;
    line = trim(line.substr(2));
    if (line.starts_with(':')) {
      const size_t space = line.find(' ');
      query.parameters.push_back({std::string(line.substr(1, space - 1)), std::string(trim(line.substr(std::min(space, line.size()))))});
    } else {
      query.title += (query.title.empty() ? "" : " ") + std::string(line);
    }
  }
  return query;
}

}  // namespace

const std::vector<Query>& catalog() {
  static const std::vector<Query> all = [] {
    std::vector<Query> found;
    for (const EmbeddedFile& file : embedded_files()) found.push_back(parse(file.name, file.text));
    return found;
  }();
  return all;
}

const Query* find(std::string_view name) {
  for (const Query& query : catalog()) {
    if (query.name == name) return &query;
  }
  return nullptr;
}

}  // namespace stem::queries
