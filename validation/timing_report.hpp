// Predicted against published timings of single kernels and collectives.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "calibration/error_statistics.hpp"
#include "core/base/units.hpp"

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
  std::map<std::string, std::size_t> skipped_by_reason;
};

TimingReport report_on(std::vector<TimingComparison> rows);

// True if there are rows and their median and 90th percentile are at most these ratios.
bool within_tolerance(const TimingReport& report, double median, double p90);

nlohmann::ordered_json to_json(const TimingReport& report);

}  // namespace shardwright::validation
