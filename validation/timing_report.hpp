// Published timings of single kernels and collectives (docs/formats/measurements.md), and the
// predictions of them.
#pragma once

#include <iosfwd>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "calibration/error_statistics.hpp"
#include "calibration/timing.hpp"
#include "core/base/units.hpp"

namespace shardwright {
class ObjectReader;
}

namespace shardwright::validation {

// One row. The error is that of the time: positive where the prediction is slower.
struct TimingComparison {
  std::string id, source;
  // The device as the row spells it.
  std::string device;
  // The kind of kernel or collective, with its number format where it has one.
  std::string op;
  // The profile that it was predicted with.
  std::string profile;
  Seconds measured, predicted;
  // The size of a collective's message; a kernel has none.
  Bytes bytes;
  bool skipped = false;
  // Why the row was skipped.
  std::string reason;
  // Assumptions of the row: "dtype: bf16".
  std::vector<std::string> filled_in;

  double error() const { return predicted / measured - 1.0; }
};

struct TimingReport {
  // In the order of the file.
  std::vector<TimingComparison> rows;
  std::size_t skipped = 0;
  calibration::ErrorSummary all;
  calibration::ErrorsByName by_device, by_op, by_source;
  // Named "DEVICE  OP".
  calibration::ErrorsByName by_device_and_op;
  // The errors of collectives by size class, from small to large. Latency rules the smallest
  // one, the bandwidth of links the largest.
  std::vector<std::pair<std::string, calibration::ErrorSummary>> by_size;
  std::map<std::string, std::size_t> skipped_by_reason;
};

// Read a file. Throw InputError with all problems of it, each with its line and JSON pointer.
std::vector<calibration::KernelTiming> read_kernel_timings(const std::string& file);
std::vector<calibration::CollectiveTiming> read_collective_timings(const std::string& file);

// Read the lines of a stream; `source` names it in errors.
std::vector<calibration::KernelTiming> read_kernel_timings(std::istream& stream,
                                                           const std::string& source);
std::vector<calibration::CollectiveTiming> read_collective_timings(std::istream& stream,
                                                                   const std::string& source);

// Reads what rows of kernels and of collectives have in common.
void read_origin(ObjectReader& row, calibration::Timing& timing);

// The timing before it is predicted: skipped, if it is not supported.
TimingComparison described(const calibration::Timing& timing);

TimingReport report_on(std::vector<TimingComparison> rows);

// Predict every timing of a file with the shipped profile of its device, or on its cluster. Timings
// that are not supported and those that no such machine reaches are skipped with their reason.
TimingReport validate_kernels(const std::string& file);
TimingReport validate_collectives(const std::string& file);

nlohmann::ordered_json to_json(const TimingReport& report);

}  // namespace shardwright::validation
