// A validation report as one HTML file that needs nothing else.
#pragma once

#include <string>

#include "validation/validation.hpp"

namespace shardwright::validation {

// Summary tables, predicted against measured, the histogram of errors, every row from the worst to
// the best with where its predicted time goes and what was filled in, and the skipped rows with
// their reasons.
std::string html_report(const ValidationReport& report);

}  // namespace shardwright::validation
