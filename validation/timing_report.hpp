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
  std::string device;   // as the row spells it
  std::string op;       // kind of kernel or collective, with its number format where it has one
  std::string profile;  // what it was predicted with
  Seconds measured, predicted;
  bool skipped = false;
  std::string reason;                  // why it was skipped
  std::vector<std::string> filled_in;  // what was assumed: "dtype: bf16"

  double error() const { return predicted / measured - 1.0; }
};

struct TimingReport {
  std::vector<TimingComparison> rows;  // in the order of the file
  std::size_t skipped = 0;
  calibration::ErrorSummary all;
  calibration::ErrorsByName by_device, by_op, by_source;
  calibration::ErrorsByName by_device_and_op;  // "DEVICE  OP"
  std::map<std::string, std::size_t> skipped_by_reason;
};

TimingReport report_on(std::vector<TimingComparison> rows);

// True if there are rows and their median and 90th percentile are at most these ratios.
bool within_tolerance(const TimingReport& report, double median, double p90);

nlohmann::ordered_json to_json(const TimingReport& report);

}  // namespace shardwright::validation
