// Compares forecasts of whole runs with published ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "calibration/error_statistics.hpp"
#include "sim/run/run_model.hpp"
#include "validation/published_run.hpp"

namespace shardwright::validation {

// Interruptions in the days in which a source counted them.
struct ComparedInterruptions {
  double measured = 0.0, days = 0.0;
  // Without planned stops.
  bool unexpected = false;
  sim::Percentiles predicted;

  bool inside() const { return predicted.p10 <= measured && measured <= predicted.p90; }
};

// The interval between checkpoints that people chose, beside that of the shortest run.
struct ComparedInterval {
  Seconds published, best, young, daly;
  // How much longer the mean run is with the published interval than with the best one.
  double extra = 0.0;
};

// One run: published beside predicted. Errors are relative to the published figure, positive where
// the prediction is larger.
struct RunRow {
  std::string id, source, grade;
  // The scenario as profiles name it, and its plan in short.
  std::string model, cluster, stack, parallelism;
  std::int64_t gpus = 0;
  double tokens = 0.0;
  // The source leaves open no part of the plan that sets the time of its step.
  bool plan_known = false;
  CountedHours counted = CountedHours::Run;
  double measured_gpu_hours = 0.0, predicted_gpu_hours = 0.0;
  // 80 % of runs lie between.
  double low_gpu_hours = 0.0, high_gpu_hours = 0.0;
  double measured_days = 0.0;
  sim::Percentiles predicted_days;
  // Predicted: one over them are the inefficiencies of the step and of the run.
  double step_mfu = 0.0, goodput = 0.0;
  // The goodput that the source prints; 0 where it does not.
  double published_goodput = 0.0;
  // GPU-hours of steps, and the factor on them for everything else: 1 + error is the product of
  // 1 + step_error and 1 + run_error. Where the source has a time of its step, or its goodput.
  std::optional<double> step_error, run_error;
  std::vector<ComparedInterruptions> interruptions;
  std::optional<ComparedInterval> interval;
  std::vector<OtherFigure> others;
  // Why the run was not simulated; empty if it was.
  std::string skipped;
  std::vector<std::string> filled_in;

  double error() const { return predicted_gpu_hours / measured_gpu_hours - 1.0; }
  bool covered() const {
    return low_gpu_hours <= measured_gpu_hours && measured_gpu_hours <= high_gpu_hours;
  }
};

struct RunReport {
  // In the order of the file.
  std::vector<RunRow> rows;
  bool partial = false;
  std::size_t skipped = 0, other_grades = 0;
  // Errors of GPU-hours: of runs whose plan is known, of those of them whose hours are those of the
  // whole run, of runs whose plan is not known, and of all.
  calibration::ErrorSummary known, whole, inferred, all;
  // Errors of the steps and of what comes on top, of the runs that say both.
  calibration::ErrorSummary steps, overheads;
};

RunRow compare_run(const PublishedRun& run);

// Forecasts every run of the file with one of these grades; the report does not depend on the
// number of threads. A run that breaks a rule is skipped with its reason. Throws InputError if the
// file cannot be read. `progress` is called from several threads with the share of the runs that
// are done.
RunReport validate_runs(const std::string& file, const std::string& grades,
                        std::stop_token stop = {},
                        const std::function<void(double)>& progress = {});

nlohmann::ordered_json to_json(const RunReport& report);

}  // namespace shardwright::validation
