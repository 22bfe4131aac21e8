// Nsight Systems' recordings, exported as SQLite (nsys export --type sqlite).
#pragma once

#include <string>

#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

// Reads kernels, copies, fills, launches and NVTX ranges; tables and columns that this export lacks
// count as empty. Throws InputError where the file is no database, damaged, or no such export.
// `source` names it in errors and in the trace.
Trace read_nsys(const std::string& file, const std::string& source);

}  // namespace shardwright::calibration
