#include "cli/output/error_table.hpp"

#include "core/base/quantity_text.hpp"

namespace shardwright::cli {

Table error_table(const std::string& what) {
  return Table({{what, ColumnKind::Prose},
                {"rows", kNumber},
                {"median", kNumber, "%"},
                {"p90", kNumber, "%"},
                {"bias", kNumber, "%"}});
}

void add_errors(Table& table, const std::string& name, const calibration::ErrorSummary& summary) {
  if (summary.n == 0) {
    table.add_row({name, "none", "", "", ""});
    return;
  }
  table.add_row({name, format_count(static_cast<std::int64_t>(summary.n)),
                 format_percent(summary.median_abs), format_percent(summary.p90_abs),
                 format_percent(summary.bias)});
}

}  // namespace shardwright::cli
