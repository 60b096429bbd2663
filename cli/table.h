// Rows of a query as a table for people, CSV (RFC 4180) or JSON (an array of objects).
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "db/database.h"

namespace stem::cli {

class RowPrinter {
 public:
  virtual ~RowPrinter() = default;
  virtual void header(const std::vector<std::string>& names) = 0;
  virtual void row(const db::Row& row) = 0;
  virtual void end() = 0;  // once, after everything
};

// format: table, csv, json. Throws UserError for any other.
std::unique_ptr<RowPrinter> make_printer(const std::string& format, std::ostream& out);

}  // namespace stem::cli
