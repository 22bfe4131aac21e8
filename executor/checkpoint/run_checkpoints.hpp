// Checkpoints of a run of several ranks, which share the file system.
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

// A failure that was said before, or that another rank meets too and says.
struct SaidElsewhere : RuntimeFailure {
  using RuntimeFailure::RuntimeFailure;
};

// … and that is one of the input: all ranks end with the same code.
struct BadInputSaidElsewhere : SaidElsewhere {
  using SaidElsewhere::SaidElsewhere;
};

struct CheckpointOptions {
  std::filesystem::path folder;
  std::int64_t keep = 2;
  bool in_background = false;  // training goes on while a checkpoint is written
  // What writing one may take before the run has failed.
  std::chrono::milliseconds write_limit{30 * 60'000};
  // See CheckpointWriter.
  std::function<void()> check_others = nullptr;
};

// Of all checkpoints of a run.
struct CheckpointTimes {
  std::int64_t count = 0;
  double stalled_s = 0.0;  // training stood still
};

class RunCheckpoints {
 public:
  // `store` is a table that all ranks share, of this object alone. `say` is told, on rank 0, what
  // people should know: a checkpoint that is damaged, or that none is whole. What is referred to
  // outlives the object.
  RunCheckpoints(const CheckpointOptions& options, const ModelSpec& model, RankTrainer& trainer,
                 Store& store, std::function<void(const std::string&)> say);

  // All ranks call it, between two steps. In the background, it returns once the state is copied,
  // which waits for the checkpoint before. Throws RuntimeFailure on all ranks if this one, or in
  // the background the one before, failed on one of them; earlier checkpoints are as they were.
  void save(const RunState& state);
  // Waits for what is being written. All ranks call it. Throws like `save`.
  void finish();

  // The newest checkpoint that is whole; nothing if there is none. All ranks call it. `accept` sees
  // its state before its tensors are read, and may throw, on all ranks alike. Throws SaidElsewhere
  // on all ranks if there are checkpoints and none is whole, which `say` was told.
  std::optional<RunState> load_newest(const std::function<void(const RunState&)>& accept =
                                          [](const RunState&) {});

  const CheckpointTimes& times() const { return times_; }

 private:
  // Runs `work`, and throws on all ranks if it threw on any of them.
  void together(const std::function<void()>& work);
  std::int64_t newest_whole();
  // Throws RuntimeFailure on all ranks if one has another checkpoint of these steps than the first.
  void check_same(std::int64_t steps);
  bool is_first() const;

  CheckpointFolder folder_;
  bool in_background_;
  const ModelSpec& model_;
  RankTrainer& trainer_;
  std::function<void(const std::string&)> say_;
  std::vector<ParameterPiece> copy_;  // what the writer reads
  CheckpointTimes times_;
  CheckpointWriter writer_;
};

}  // namespace shardwright::executor
