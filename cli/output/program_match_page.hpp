// What a trace measured beside what its plan predicts, as text.
#pragma once

#include <vector>

#include "calibration/traces/program_match.hpp"
#include "cli/output/page.hpp"

namespace shardwright::cli {

// The first rank in detail; of several also a line for each.
void add_program_matches(Page& page, const std::vector<calibration::ProgramMatch>& matches);

}  // namespace shardwright::cli
