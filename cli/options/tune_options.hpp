// The options of `tune`, and the study that they describe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/options/common_options.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/scenario.hpp"
#include "planner/tuning/study.hpp"
#include "planner/tuning/trial_schedule.hpp"
#include "sim/run/run_model.hpp"

namespace shardwright::cli {

struct TuneOptions {
  CommonOptions common;
  // Empty where the user gave none.
  std::string plan, data, out, steps, trials, search, reduction, rungs, ranks, seed, device, run,
      validation;
  std::vector<std::string> vary;
  bool simulate = false, resume = false;
};

void add_tune_options(CLI::App& command, TuneOptions& options);

// Within each job the states are saved so many times: a job that is killed loses a quarter of its
// steps at most.
inline constexpr std::int64_t kCheckpointsOfJob = 4;

// What is tuned: the steps of a plan, in which a trial with another batch trains as many tokens.
struct TuningSetup {
  Scenario scenario;
  planner::StudyRules rules;
  std::int64_t steps = 0;
  // Ranks that are there, and how many trials run at once on them.
  std::int64_t ranks = 0;
  std::size_t workers = 1;
  // With --simulate: false if a plan does not fit into memory, which was then reported.
  bool fits = true;
  // As CUDA_VISIBLE_DEVICES names them, one for each rank; empty if trials run on CPUs.
  std::vector<std::string> gpus;
  // Predicted, by global batch.
  std::map<std::int64_t, Seconds> step_times;
  // Before the first step of each job.
  Seconds startup;
  // The share of the corpus on which trials are compared; 0: the training loss compares them.
  double validation_ratio = 0.0;
  RunSpec run;
  // With --simulate: a trial that is trained to its end, by global batch.
  std::map<std::int64_t, sim::RunModel> runs;

  // The plan of trials with these values.
  Plan plan_of(const std::vector<double>& values) const;
  // The steps that a trial, one with this batch, has trained at a rung; the last is the whole
  // budget.
  std::int64_t steps_at(const std::vector<double>& values, std::size_t rung) const;
  std::int64_t steps_of_batch(std::int64_t batch, std::size_t rung) const;
  std::int64_t all_steps(const std::vector<double>& values) const {
    return steps_at(values, rules.rungs.size() - 1);
  }
  // The time of a job that nothing disturbs.
  Seconds time_of(const planner::TrialJob& job) const;
  // With the failures, checkpoints and pauses that a job meets in one of many simulated studies;
  // infinite if failures leave it no progress.
  Seconds simulated_time(const planner::TrialJob& job, std::int64_t study) const;
  // Hot spare nodes of all trials together.
  std::int64_t spare_nodes() const { return runs.empty() ? 0 : runs.begin()->second.spare_nodes(); }
};

// Studies that --simulate draws.
inline constexpr std::int64_t kSimulatedStudies = 100;

// The variable that tells CUDA the GPUs of a process.
inline constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

// The first `count` of the GPUs that the variable's value lists, or fewer if it lists fewer; those
// of these ordinals without a value (null).
std::vector<std::string> visible_gpus(const char* listed, std::int64_t count);

// Throws InputError with everything that is wrong.
TuningSetup read_tuning(const TuneOptions& options);

}  // namespace shardwright::cli
