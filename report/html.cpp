// HTML: the template with the style, the script and the data put in. The data is JSON in a script element that is never
// executed; '<' is escaped in it, so nothing in a name or a source can end the element. The page asks for nothing.
#include "report/embedded.h"
#include "report/formats.h"
#include "report/json.h"
#include "util/error.h"

namespace stem::report {
namespace {

void put(std::string& page, std::string_view slot, std::string_view content) {
  const size_t at = page.find(slot);
  STEM_CHECK(at != std::string::npos);
  page.replace(at, slot.size(), content);
}

std::string escape_for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') out += "\\u003c";
    else if (c == '>') out += "\\u003e";
    else if (c == '&') out += "\\u0026";
    else out += c;
  }
  return out;
}

}  // namespace

std::string html(const Model& model, const Change* change) {
  std::string page(embedded_file("html/report.html"));
  put(page, "/*STYLE*/", embedded_file("html/report.css"));
  std::string script;
  for (const char* part : {"model", "list", "source", "witness", "main"}) script += embedded_file(std::string("html/") + part + ".js");
  put(page, "/*SCRIPT*/", script);
  put(page, "/*DATA*/", escape_for_script(to_json(model, change, true).dump()));
  return page;
}

}  // namespace stem::report
