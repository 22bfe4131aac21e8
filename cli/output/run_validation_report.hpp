// Forecasts of published runs beside the published figures, as a page.
#pragma once

#include "cli/output/page.hpp"
#include "validation/run_validation.hpp"

namespace shardwright::cli {

void add_run_report(Page& page, const validation::RunReport& report);

}  // namespace shardwright::cli
