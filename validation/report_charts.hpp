// The drawings of a validation report, as SVG that stands inside of an HTML page.
#pragma once

#include <string>
#include <vector>

#include "validation/validation.hpp"

namespace shardwright::validation {

// Draws predicted over measured step time, both logarithmic: one dot a row, coloured by
// accelerator. Dots on the diagonal are right. Rows without a time are left out.
std::string scatter_chart(const std::vector<const RowComparison*>& rows);

// Draws how many rows have which signed error, in bins of 5 %; the outermost bins take the rest.
std::string error_histogram(const std::vector<const RowComparison*>& rows);

// Draws the parts of a predicted step's time as one bar.
std::string breakdown_bar(const sim::TimeBreakdown& time);

}  // namespace shardwright::validation
