// Checkpoints of a run of several ranks, which share the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/runtime/rank_trainer.hpp"

namespace shardwright::executor {

class RunCheckpoints {
 public:
  // `say` is told, on rank 0, what people should know: a checkpoint that is damaged.
  RunCheckpoints(std::filesystem::path folder, std::int64_t keep, const ModelSpec& model,
                 RankTrainer& trainer, std::function<void(const std::string&)> say);

  // All ranks call it, between two steps. Throws RuntimeFailure on all of them if it failed on one;
  // earlier checkpoints are as they were.
  void save(const RunState& state);

  // The newest checkpoint that is whole; nothing if there is none. All ranks call it. Throws
  // RuntimeFailure if there are checkpoints and none is whole.
  std::optional<RunState> load_newest();

 private:
  // Runs `work`, and throws on all ranks if it threw on any of them.
  void together(const std::function<void()>& work);
  std::int64_t newest_whole() const;
  bool is_first() const;

  CheckpointFolder folder_;
  std::int64_t keep_;
  const ModelSpec& model_;
  RankTrainer& trainer_;
  std::function<void(const std::string&)> say_;
};

}  // namespace shardwright::executor
