// The checkpoints of a run whose ranks share a file system.
//
// A thread of each rank writes them, one after another, while training goes on. The threads
// coordinate through the store, so that they add no collective to those of the training:
//
//   first rank   makes the files                 checkpoint.created      = step
//   each rank    writes its part                 checkpoint.part.RANK = step
//   first rank   checksums, renames, prunes      checkpoint.complete     = step
//
// A value "STEP: REASON" reports a failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/parameter_files.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/runtime/rank_trainer.hpp"

namespace shardwright::executor {

// A failure that another rank reports, or that was reported before.
struct ReportedElsewhere : RuntimeFailure {
  using RuntimeFailure::RuntimeFailure;
};

// The same for bad input, after which all ranks exit with the same status.
struct BadInputReportedElsewhere : ReportedElsewhere {
  using ReportedElsewhere::ReportedElsewhere;
};

struct CheckpointOptions {
  std::filesystem::path folder;
  std::int64_t keep = 2;
  bool in_background = false;
  // The run fails if writing a checkpoint takes longer.
  std::chrono::milliseconds write_limit{30 * 60'000};
  // The writing thread calls it, unless it is null, while it waits for other ranks; it throws if
  // one of them is gone.
  std::function<void()> check_others = nullptr;
};

// Totals over the checkpoints of a run.
struct CheckpointTimes {
  std::int64_t count = 0;
  double stalled_s = 0.0;
};

class RunCheckpoints {
 public:
  // `store` connects all ranks and is used by this object alone. Rank 0 passes warnings to `warn`:
  // a checkpoint is damaged, or none is intact. The references must outlive the object, whose end
  // abandons a checkpoint that is being written.
  RunCheckpoints(const CheckpointOptions& options, const ModelSpec& model, RankTrainer& trainer,
                 Store& store, std::function<void(const std::string&)> warn);

  // All ranks call it between two steps. With `in_background` it returns once the state is copied,
  // for which it waits until the previous checkpoint is complete. Throws RuntimeFailure on all
  // ranks if writing this checkpoint (in the background: the previous one) failed on any; earlier
  // checkpoints remain.
  void save(const RunState& state);
  // Waits for the checkpoint in progress. All ranks call it. Throws like `save`.
  void finish();

  // Loads the newest intact checkpoint; returns nothing if there are no checkpoints. All ranks call
  // it. `accept` sees the state before the tensors are read and may throw, on all ranks alike.
  // Throws ReportedElsewhere on all ranks if there are checkpoints and none is intact.
  std::optional<RunState> load_newest(const std::function<void(const RunState&)>& accept =
                                          [](const RunState&) {});

  const CheckpointTimes& times() const { return times_; }

 private:
  // Runs `work` on each rank and throws on all ranks if it threw on any.
  void run_on_all(const std::function<void()>& work);
  std::int64_t newest_intact();
  // Throws RuntimeFailure on all ranks if one sees another checkpoint of this step than rank 0
  // does.
  void check_same(std::int64_t steps);
  bool is_first() const { return trainer_.rank() == 0; }
  // Called by the writing thread.
  void write(const RunState& state, const std::stop_token& stop);
  void write_parts(const RunState& state, const std::stop_token& stop);
  // Runs `work` and reports its outcome under `key`. Throws what it threw.
  void report(const std::string& key, std::int64_t steps, const std::function<void()>& work);
  // Waits until the rank that sets `key` has reported. Throws RuntimeFailure if it failed.
  void wait_for(const std::string& key, std::int64_t steps, const std::stop_token& stop);

  CheckpointOptions options_;
  CheckpointFolder folder_;
  const ModelSpec& model_;
  RankTrainer& trainer_;
  Store& store_;
  std::function<void(const std::string&)> warn_;
  // The copy that the thread writes.
  std::vector<ParameterPiece> copy_;
  CheckpointTimes times_;
  std::chrono::steady_clock::time_point deadline_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace shardwright::executor
