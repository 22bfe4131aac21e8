// What a run is asked to do: the executor's command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/runtime/training_options.hpp"

namespace CLI {
class App;
}

namespace shardwright::executor {

struct RunOptions {
  std::string plan;  // file
  std::filesystem::path data, out;
  std::string device = "auto";  // "cpu", "cuda" or "auto"
  bool share_gpu = false;       // several ranks may use one GPU
  TrainingOptions training;
  bool warmup_given = false;  // rather than left at its default
  // Whose ops are recorded, from 0 on; empty: five in the second half of the run.
  std::vector<std::int64_t> timeline_steps;
  double timeout_s = 60.0;            // until a rank that does not answer has failed
  std::int64_t checkpoint_every = 0;  // steps; 0: none
  std::int64_t keep_checkpoints = 2;
  bool async_checkpoints = false;   // written while training goes on
  std::filesystem::path init_from;  // published weights to begin with; empty: random ones
  bool resume = false;         // from the newest checkpoint in `out` that is whole, if there is one
  std::int64_t restarts = 0;   // after failures, from the newest checkpoint
  bool elastic = false;        // without the ranks that were lost, under another plan
  std::string planner;         // the command shardwright, which makes that plan
  std::string continued_plan;  // file: what a run that lost ranks goes on under; empty: `plan`
  bool local = false;          // the ranks are started here, whatever another launcher has set
  bool force = false;          // write over an earlier run
  bool no_progress = false;

  const std::string& plan_now() const { return continued_plan.empty() ? plan : continued_plan; }
  std::vector<std::int64_t> recorded_steps() const;
  std::filesystem::path metrics_file() const { return out / "metrics.jsonl"; }
  std::filesystem::path checkpoint_folder() const { return out / "checkpoints"; }
  CheckpointOptions checkpoints(std::function<void()> check_others) const;
  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  }
};

void add_run_options(CLI::App& app, RunOptions& options);

// --device and --share-gpu; `automatic` says what "auto" does.
void add_device_options(CLI::App& app, std::string& device, bool& share_gpu,
                        const std::string& automatic);

// What no option by itself shows. Throws InputError.
void check_run_options(const RunOptions& options);

// What has another effect than it seems to, or none: for people, a line each.
std::vector<std::string> remarks_on(const RunOptions& options);

}  // namespace shardwright::executor
