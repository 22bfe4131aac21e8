// The options of a run: the executor's command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/runtime/rank_trainer.hpp"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace shardwright::executor {

inline constexpr const char* kAutomaticBatch = "auto";

struct RunOptions {
  std::string plan;
  std::filesystem::path data, out;
  std::string device = "auto";
  bool share_gpu = false;
  TrainingOptions training;
  // --warmup-steps was given.
  bool warmup_given = false;
  // Steps to record, from 0 on; empty stands for five steps of the second half.
  std::vector<std::int64_t> timeline_steps;
  // Seconds after which a silent rank has failed.
  double timeout_s = 60.0;
  // Steps between checkpoints; 0 stands for none.
  std::int64_t checkpoint_every = 0;
  std::int64_t keep_checkpoints = 2;
  // Checkpoints are written while training continues.
  bool async_checkpoints = false;
  // The run ends after this step with a checkpoint, although the learning rate follows all steps;
  // 0: it trains all of them.
  std::int64_t stop_after = 0;
  // The batch is the plan's, or doubles as the gradient noise scale grows, up to `most_batch`
  // sequences.
  std::string global_batch = "plan";
  std::int64_t most_batch = 0;
  // The share of the sequences that is held out from training, the steps between two validations on
  // them (0: only after the last step), and the batches of each.
  double validation_ratio = 0.0;
  std::int64_t validate_every = 0, validation_batches = 8;
  // Initial weights; empty stands for random ones.
  std::filesystem::path init_from;
  // Resume from the newest intact checkpoint in `out`, if there is one.
  bool resume = false;
  // Restarts after failures, from the newest checkpoint.
  std::int64_t restarts = 0;
  // Restart without the lost ranks, under another plan.
  bool elastic = false;
  // Move work away from ranks that have become slower.
  bool rebalance = false;
  // The command shardwright, which makes the plans of either.
  std::string planner;
  // The plan file with which the run continues; empty stands for `plan`.
  std::string continued_plan;
  // The slowdown of each rank that this plan was made for; empty: all are 1.
  std::vector<double> slowdowns;
  // Start the ranks on this machine, even under another launcher.
  bool local = false;
  bool force = false;
  bool no_progress = false;
  bool verbose = false;

  bool grows_batch() const { return global_batch == kAutomaticBatch; }
  const std::string& plan_now() const { return continued_plan.empty() ? plan : continued_plan; }
  std::vector<std::int64_t> recorded_steps() const;
  // The steps after which this run ends.
  std::int64_t last_step() const { return stop_after > 0 ? stop_after : training.steps; }
  // True if a validation follows the step that is `number`-th from 1 on.
  bool validates_after(std::int64_t number) const {
    if (validation_ratio <= 0.0) return false;
    return number == last_step() || (validate_every > 0 && number % validate_every == 0);
  }
  // True if a checkpoint follows the step that is `number`-th from 1 on.
  bool saves_after(std::int64_t number) const {
    // A checkpoint at the end says that no larger batch and no other plan is asked for.
    const bool ends = number == last_step() && (stop_after > 0 || grows_batch() || rebalance);
    return ends || (checkpoint_every > 0 && number % checkpoint_every == 0);
  }
  std::filesystem::path metrics_file() const { return out / "metrics.jsonl"; }
  std::filesystem::path checkpoint_folder() const { return out / "checkpoints"; }
  CheckpointOptions checkpoints(std::function<void()> check_others) const;
  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  }
};

void add_run_options(CLI::App& app, RunOptions& options);

// Adds --device and --share-gpu; `automatic` describes "auto".
void add_device_options(CLI::App& app, std::string& device, bool& share_gpu,
                        const std::string& automatic);

// Checks combinations of options. Throws InputError.
void check_run_options(const RunOptions& options);

// Returns warnings about options with an unexpected effect or none.
std::vector<std::string> remarks_on(const RunOptions& options);

// Validators for values on the command line.

// Accepts finite numbers from `least` on, up to `most` if given. (CLI::Range accepts NaN.)
CLI::Validator number_from(double least, std::optional<double> most = std::nullopt);

// Accepts integers in digits from `least` on, up to `most` or 10^15.
CLI::Validator integer_from(std::int64_t least, std::optional<std::int64_t> most = std::nullopt);

// Accepts such integers separated by commas, which read_integers parses.
CLI::Validator integers_from(std::int64_t least);
std::vector<std::int64_t> read_integers(const std::string& list);

// Accepts integers from 0 to 2^64 - 1.
CLI::Validator unsigned_integer();

}  // namespace shardwright::executor
