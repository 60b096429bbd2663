#include "cli/table.h"

#include <nlohmann/json.hpp>

#include "util/error.h"
#include "util/text.h"

namespace stem::cli {
namespace {

// Widths are known only at the end, so rows wait. For people: numbers to the right, NULL is empty.
class Table : public RowPrinter {
 public:
  explicit Table(std::ostream& out) : out_(out) {}
  void header(const std::vector<std::string>& names) override {
    end();
    for (const std::string& name : names) {
      header_.push_back(printable(name));
      widths_.push_back(columns(header_.back()));
    }
  }
  void row(const db::Row& row) override {
    std::vector<Cell> cells;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool number = std::holds_alternative<int64_t>(row[i]) || std::holds_alternative<double>(row[i]);
      cells.push_back({printable(db::to_text(row[i])), number});
      widths_[i] = std::max(widths_[i], columns(cells.back().text));
    }
    rows_.push_back(std::move(cells));
  }
  void end() override {
    if (header_.empty()) return;
    std::vector<Cell> names;
    for (const std::string& name : header_) names.push_back({name, false});
    line(names);
    std::string rule;
    for (size_t width : widths_) rule += (rule.empty() ? "" : "  ") + std::string(width, '-');
    out_ << rule << '\n';
    for (const auto& cells : rows_) line(cells);
    out_ << fmt::format("({} row{})\n", rows_.size(), rows_.size() == 1 ? "" : "s");
    header_.clear();
    widths_.clear();
    rows_.clear();
  }

 private:
  struct Cell {
    std::string text;
    bool right;
  };
  void line(const std::vector<Cell>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths_[i] - columns(cells[i].text), ' ');
      if (i) text += "  ";
      text += cells[i].right ? space + cells[i].text : cells[i].text + space;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out_ << text << '\n';
  }
  std::ostream& out_;
  std::vector<std::string> header_;
  std::vector<size_t> widths_;
  std::vector<std::vector<Cell>> rows_;
};

class Csv : public RowPrinter {
 public:
  explicit Csv(std::ostream& out) : out_(out) {}
  void header(const std::vector<std::string>& names) override {
    for (size_t i = 0; i < names.size(); ++i) out_ << (i ? "," : "") << quote(names[i]);
    out_ << "\r\n";
  }
  void row(const db::Row& row) override {
    for (size_t i = 0; i < row.size(); ++i) out_ << (i ? "," : "") << quote(db::to_text(row[i]));
    out_ << "\r\n";
  }
  void end() override {}

 private:
  static std::string quote(const std::string& raw) {
    const std::string text = valid_utf8(raw);
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  }
  std::ostream& out_;
};

class JsonRows : public RowPrinter {
 public:
  explicit JsonRows(std::ostream& out) : out_(out) {}
  void header(const std::vector<std::string>& names) override {
    names_.clear();
    for (const std::string& name : names) names_.push_back(valid_utf8(name));
  }
  void row(const db::Row& row) override {
    nlohmann::ordered_json object;
    for (size_t i = 0; i < row.size(); ++i) {
      if (std::holds_alternative<std::monostate>(row[i])) object[names_[i]] = nullptr;
      else if (const auto* integer = std::get_if<int64_t>(&row[i])) object[names_[i]] = *integer;
      else if (const auto* real = std::get_if<double>(&row[i])) object[names_[i]] = *real;
      else object[names_[i]] = valid_utf8(db::to_text(row[i]));
    }
    out_ << (first_ ? "[\n" : ",\n") << object.dump();
    first_ = false;
  }
  void end() override { out_ << (first_ ? "[]\n" : "\n]\n"); }

 private:
  std::ostream& out_;
  std::vector<std::string> names_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<RowPrinter> make_printer(const std::string& format, std::ostream& out) {
  if (format == "table") return std::make_unique<Table>(out);
  if (format == "csv") return std::make_unique<Csv>(out);
  if (format == "json") return std::make_unique<JsonRows>(out);
  user_error("--format {}: choose table, csv or json.", format);
}

}  // namespace stem::cli
