// Compares simulated steps with published measurements.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "calibration/error_statistics.hpp"
#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"
#include "validation/measurement.hpp"

namespace shardwright::validation {

// One row: measured beside predicted. Errors are relative to the measurement and are those of the
// step time, also where the metric is a rate: positive where the simulated step is slower.
struct RowComparison {
  std::string id;
  std::string source, accelerator, stack, parallelism, group;  // what it is summed up by
  std::string plan;                                            // as compact JSON
  std::string grade;                                           // "A", "B", "C" or none
  std::string metric;
  double measured = 0.0;
  double predicted = 0.0;                          // in the unit of the metric
  double interval_low = 0.0, interval_high = 0.0;  // 80 % of measurements lie in such intervals
  double error = 0.0;                              // ratio
  double tokens = 0.0;                             // of a step
  std::optional<Bytes> measured_memory;
  Bytes predicted_memory;
  sim::TimeBreakdown predicted_time;  // of the bottleneck stage; adds up to the predicted step
  sim::MemoryPeak predicted_peak;  // of the stage that the source reads, all that the device holds
  bool out_of_memory_measured = false;
  bool out_of_memory_predicted = false;
  bool chosen_to_fit = false;  // open parts of the plan are the fastest of those that fit
  bool timed = false;          // there is a measurement of time to compare with
  bool skipped = false;        // not simulated
  std::string reason;          // why it was skipped
  // The profiles that stand for what the row names; empty where it was skipped.
  std::string accelerator_profile, cluster_profile, stack_profile;
  std::vector<std::string> filled_in;  // what was assumed: "zero_stage: 1", …
};

// Positive: does not fit.
struct OutOfMemoryTable {
  std::size_t true_positive = 0, false_positive = 0, true_negative = 0, false_negative = 0;
  std::size_t chosen_to_fit = 0;  // of the true negatives: the reader looked for a plan that fits
};

struct ValidationReport {
  std::vector<RowComparison> rows;  // in the order of the files
  bool partial = false;             // stopped before the last row
  std::size_t skipped = 0;
  std::size_t other_grades = 0;  // rows of grades that were not asked for, which are not in `rows`
  calibration::ErrorSummary time;
  calibration::ErrorSummary memory;
  calibration::ErrorsByName by_source, by_accelerator, by_stack, by_parallelism;
  calibration::ErrorsByName memory_by_source;
  OutOfMemoryTable out_of_memory;
};

struct ValidationOptions {
  std::string grades = "ABC";  // rows of these grades; rows without a grade, as those that ran out
                               // of memory, are always taken
  std::stop_token stop{};      // rows that have not begun when it is requested are left out
};

// Simulates every row of the files. Rows run in parallel; the report does not depend on the number
// of threads. Throws InputError if a file cannot be read.
ValidationReport validate_rows(const std::vector<std::string>& files,
                               const ValidationOptions& options = {});

RowComparison compare_row(const Measurement& measurement);

// The same with a scenario at hand, which stands for that of the measurement.
RowComparison compare_with(const Measurement& measurement, const Scenario& scenario);

// True if there are timed rows and the median and the 90th percentile of their absolute errors are
// at most these ratios.
bool within_tolerance(const ValidationReport& report, double median, double p90);

nlohmann::ordered_json to_json(const ValidationReport& report);

}  // namespace shardwright::validation
