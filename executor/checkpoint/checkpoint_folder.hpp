// The checkpoints of a run on disk: one folder each, which is complete or not there.
//
//   checkpoints/step-00000200/model.safetensors      weights, with Hugging Face's names
//                             optimizer.safetensors  AdamW's moments: NAME.exp_avg, NAME.exp_avg_sq
//                             state.json             state of the run; checksums of the others
//
// A checkpoint is written under another name, flushed to disk, and renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/telemetry/noise_scale.hpp"

namespace shardwright::executor {

// The state of a run besides its tensors. Fields that older checkpoints lack read as 0 or empty.
struct RunState {
  // Completed steps.
  std::int64_t steps = 0;
  // Samples that were trained on.
  std::uint64_t samples = 0;
  std::uint64_t seed = 0;
  std::int64_t seq_len = 0;
  std::string model;
  // The checksum of its architecture (architecture_checksum).
  std::string model_checksum;
  std::uint64_t data_tokens = 0;
  std::string data_checksum;
  // The run's hyperparameters, by option.
  std::map<std::string, std::string> options;
  // The running means that rank 0 keeps.
  NoiseMeans noise;

  bool operator==(const RunState&) const = default;
};

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "state.json";

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Returns the steps of the complete checkpoints, newest first.
  std::vector<std::int64_t> steps() const;
  std::filesystem::path path(std::int64_t steps) const;

  // Makes an empty folder for the checkpoint of this step. Throws RuntimeFailure.
  std::filesystem::path begin(std::int64_t steps) const;
  std::filesystem::path unfinished(std::int64_t steps) const;
  // True if there is a checkpoint whose writing has not ended.
  bool has_unfinished() const;
  // Adds state and checksums and turns the folder into a complete checkpoint. Throws
  // RuntimeFailure.
  void finish(const RunState& state);

  // Returns a sentence about what is wrong with a checkpoint, or nothing if it is intact.
  std::optional<std::string> find_damage(std::int64_t steps);
  // Reads the state of an intact checkpoint.
  RunState read_state(std::int64_t steps) const;
  // Returns a checksum that differs between checkpoints of one step with different content.
  std::uint64_t checksum(std::int64_t steps) const;

  // Deletes unfinished checkpoints and those older than the newest `keep` intact ones. Reads
  // checkpoints that this object has neither written nor checked yet.
  void prune(std::int64_t keep);

 private:
  bool is_intact(std::int64_t steps);

  std::filesystem::path folder_;
  std::set<std::int64_t> intact_;
};

}  // namespace shardwright::executor
