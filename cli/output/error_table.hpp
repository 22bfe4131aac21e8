// A table of prediction errors without intervals.
#pragma once

#include <string>

#include "calibration/error_statistics.hpp"
#include "cli/output/table.hpp"

namespace shardwright::cli {

// Returns an empty table; `what` is the title of the column of names.
Table error_table(const std::string& what);

void add_errors(Table& table, const std::string& name, const calibration::ErrorSummary& summary);

}  // namespace shardwright::cli
