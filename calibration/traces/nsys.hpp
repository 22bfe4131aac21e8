// Nsight Systems' recordings, exported as SQLite (nsys export --type sqlite).
#pragma once

#include <string>

#include "calibration/traces/trace.hpp"
#include "core/base/large_json_file.hpp"

namespace shardwright::calibration {

// Reads kernels, copies, fills, launches and NVTX ranges; tables and columns that this export lacks
// count as empty. Throws InputError where the file is no database, damaged, or no such export.
// `source` names it in errors and in the trace. Throws ReadingStopped where `watch` asks for it;
// each row counts for the same share of the file's bytes.
Trace read_nsys(const std::string& file, const std::string& source, const ReadingWatch& watch = {});

}  // namespace shardwright::calibration
