// Published timings of single collectives (docs/formats/measurements.md).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "calibration/collective_timing.hpp"
#include "validation/timing_report.hpp"

namespace shardwright::validation {

// Reads a file. Throws InputError with all problems of it, each with its line and JSON pointer.
std::vector<calibration::CollectiveTiming> read_collective_timings(const std::string& file);

// Reads the lines of a stream; `source` names it in errors.
std::vector<calibration::CollectiveTiming> read_collective_timings(std::istream& stream,
                                                                   const std::string& source);

// Predicts every timing of the file on its cluster. Timings that are not supported and those that
// the cluster cannot have reached are skipped with their reason.
TimingReport validate_collectives(const std::string& file);

}  // namespace shardwright::validation
