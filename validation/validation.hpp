// Compares simulated steps with published measurements.
#pragma once

#include <functional>
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
#include "validation/prediction_errors.hpp"

namespace shardwright::validation {

// One row: measured beside predicted. Errors are relative to the measurement and are those of the
// step time, also where the metric is a rate: positive where the simulated step is slower.
struct RowComparison {
  std::string id;
  // The names that rows are summed up by.
  std::string source, accelerator, stack, parallelism, group;
  // As compact JSON: the plan, and the values that were chosen for its open fields.
  std::string plan, chosen;
  // "A", "B", "C" or none.
  std::string grade;
  std::string metric;
  double measured = 0.0;
  // In the unit of the metric.
  double predicted = 0.0;
  // 80 % of measurements lie in such intervals; by the class of the prediction.
  double interval_low = 0.0, interval_high = 0.0;
  std::string prediction_class;
  // The kind of run by which validated_ground.hpp tells plans apart, and its extent.
  std::string run_kind, architecture, family;
  bool experts = false, low_precision = false;
  std::int64_t accelerators = 0, sequence = 0;
  // A ratio.
  double error = 0.0;
  // Tokens of a step.
  double tokens = 0.0;
  std::optional<Bytes> measured_memory;
  Bytes predicted_memory;
  // The time of the bottleneck stage; its parts add up to the predicted step.
  sim::TimeBreakdown predicted_time;
  // The whole memory of the device, on the stage that the source reads.
  sim::MemoryPeak predicted_peak;
  bool out_of_memory_measured = false;
  bool out_of_memory_predicted = false;
  // Open fields of the plan were chosen, if possible such that it fits.
  bool chosen_to_fit = false;
  // There is a measurement of time to compare with.
  bool timed = false;
  // The row was not simulated.
  bool skipped = false;
  // Why the row was skipped.
  std::string reason;
  // The profiles that the row was simulated with; empty where it was skipped.
  std::string accelerator_profile, cluster_profile, stack_profile;
  // Assumptions of the row: "zero_stage: 1".
  std::vector<std::string> filled_in;
};

// Verdicts on memory. Positive: the step does not fit.
struct OutOfMemoryTable {
  std::size_t true_positive = 0, false_positive = 0, true_negative = 0, false_negative = 0;
  // The true negatives whose plan was chosen among those that fit, and which prove nothing.
  std::size_t chosen_to_fit = 0;
};

struct ValidationReport {
  // In the order of the files.
  std::vector<RowComparison> rows;
  // True if the validation was stopped before the last row.
  bool partial = false;
  std::size_t skipped = 0;
  // The number of rows of grades that were not asked for, which are not in `rows`.
  std::size_t other_grades = 0;
  calibration::ErrorSummary time;
  calibration::ErrorSummary memory;
  calibration::ErrorsByName by_source, by_accelerator, by_stack, by_parallelism, by_class;
  calibration::ErrorsByName memory_by_source;
  OutOfMemoryTable out_of_memory;
};

struct ValidationOptions {
  // The grades of the rows that are taken. Rows without a grade, such as runs out of memory, are
  // always taken.
  std::string grades = "ABC";
  // Rows that have not begun when a stop is requested are left out.
  std::stop_token stop{};
  // Called from several threads with the share of the rows that are done.
  std::function<void(double)> progress{};
};

// Simulates every row of the files. Rows run in parallel; the report does not depend on the number
// of threads. Throws InputError if a file cannot be read.
ValidationReport validate_rows(const std::vector<std::string>& files,
                               const ValidationOptions& options = {});

// The class of the prediction for a measurement by a scenario without open fields, as if its source
// had published nothing.
PredictionClass class_of(const Measurement& measurement, const Scenario& scenario);

RowComparison compare_row(const Measurement& measurement);

// Compares with a scenario without open fields: that of the measurement, or another.
RowComparison compare_with(const Measurement& measurement, const Scenario& scenario);

nlohmann::ordered_json to_json(const ValidationReport& report);

// Charts and the rows, the worst first, as a part of an HTML page.
std::string html_report(const ValidationReport& report);

}  // namespace shardwright::validation
