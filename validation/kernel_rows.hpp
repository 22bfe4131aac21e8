// Published timings of single kernels (docs/formats/measurements.md).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "calibration/kernel_timing.hpp"
#include "validation/timing_report.hpp"

namespace shardwright::validation {

// Reads a file. Throws InputError with all problems of it, each with its line and JSON pointer.
std::vector<calibration::KernelTiming> read_kernel_timings(const std::string& file);

// Reads the lines of a stream; `source` names it in errors.
std::vector<calibration::KernelTiming> read_kernel_timings(std::istream& stream,
                                                           const std::string& source);

// Predicts every timing of the file with the shipped profile of its device. Timings that are not
// supported and those that are faster than the device can be are skipped with their reason.
TimingReport validate_kernels(const std::string& file);

}  // namespace shardwright::validation
