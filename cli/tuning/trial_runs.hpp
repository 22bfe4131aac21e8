// Trials of a tuning as runs of the executor, several at once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/options/tune_options.hpp"
#include "cli/programs/child_process.hpp"
#include "cli/tuning/tuning_folder.hpp"
#include "core/base/stop_signals.hpp"

namespace shardwright::cli {

// A signal asked to stop; what is complete is in the folder.
struct TuningStopped {
  int signal = 0;
};

class TrialRuns {
 public:
  // The references must outlive the object. `held` are the signals that stop it.
  TrialRuns(const TuneOptions& options, const TuningSetup& setup, TuningFolder& folder,
            const StopSignalsHeld& held);

  // Begins a job unless its loss is known.
  void start(const planner::TrialJob& job, std::size_t worker);
  // Waits for its end and records its loss, which is infinite if it diverged. Throws TuningStopped,
  // and RuntimeFailure or ExecutorRefused if the trial failed.
  double finish(const planner::TrialJob& job, std::size_t worker);

 private:
  std::vector<std::string> command_of(const planner::TrialJob& job) const;
  std::int64_t between_checkpoints(const planner::TrialJob& job) const;
  // The environment of a worker's trials.
  std::vector<std::string> gpus_of(std::size_t worker) const;
  std::string plan_file(const Plan& plan) const;
  void copy_state(const planner::TrialJob& job) const;
  double loss_of(const planner::TrialJob& job, int status) const;
  void stop_all();

  const TuneOptions& options_;
  const TuningSetup& setup_;
  TuningFolder& folder_;
  const StopSignalsHeld& held_;
  std::string executor_;
  // By worker.
  std::map<std::size_t, std::unique_ptr<ChildProcess>> running_;
};

}  // namespace shardwright::cli
