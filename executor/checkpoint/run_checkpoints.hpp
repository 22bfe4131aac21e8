// The checkpoints of a run whose ranks share a file system.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/checkpoint_writer.hpp"
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
  // See CheckpointWriter.
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
  // a checkpoint is damaged, or none is intact. The references must outlive the object.
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
  bool is_first() const;

  CheckpointFolder folder_;
  bool in_background_;
  const ModelSpec& model_;
  RankTrainer& trainer_;
  std::function<void(const std::string&)> warn_;
  // The copy that the writer reads.
  std::vector<ParameterPiece> copy_;
  CheckpointTimes times_;
  CheckpointWriter writer_;
};

}  // namespace shardwright::executor
