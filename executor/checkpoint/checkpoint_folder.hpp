// The checkpoints of a run on disk: a folder for each, complete or not there.
//
//   checkpoints/step-00000200/model.safetensors      weights, with Hugging Face's names
//                             optimizer.safetensors  AdamW's moments: NAME.exp_avg, NAME.exp_avg_sq
//                             state.json             where the run stands; checksums of the others
//
// A checkpoint is written under another name, flushed to disk, and renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/telemetry/noise_scale.hpp"

namespace shardwright::executor {

// Where a run stands besides its tensors.
struct RunState {
  std::int64_t steps = 0;     // that were done
  std::uint64_t samples = 0;  // that were seen
  std::uint64_t seed = 0;
  std::int64_t seq_len = 0;
  std::string model;      // its name
  std::string model_sum;  // sum_of (architecture.hpp); empty in checkpoints of before it was kept
  std::uint64_t data_tokens = 0;  // of the data that it was trained on; 0 likewise
  std::string data_sum;           // TokenFile::sum of them; empty likewise
  NoiseMeans noise;               // as rank 0 knows them; of no step likewise

  bool operator==(const RunState&) const = default;
};

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kStateFile = "state.json";

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Steps of the complete checkpoints, the newest first.
  std::vector<std::int64_t> steps() const;
  std::filesystem::path path(std::int64_t steps) const;

  // An empty folder to write the checkpoint of this step into. Throws RuntimeFailure.
  std::filesystem::path begin(std::int64_t steps) const;
  std::filesystem::path unfinished(std::int64_t steps) const;
  // Adds state and checksums and makes it a complete checkpoint. Throws RuntimeFailure.
  void finish(const RunState& state);

  // What is wrong with a checkpoint, as a sentence; nothing if it is whole.
  std::optional<std::string> find_damage(std::int64_t steps);
  // Of a checkpoint that is whole.
  RunState read_state(std::int64_t steps) const;
  // The same: tells checkpoints of one step apart, by what is in them.
  std::uint64_t sum(std::int64_t steps) const;

  // Deletes what is older than the newest `keep` whole checkpoints, and what was left unfinished.
  // Those that this object has neither written nor looked into yet are read for that.
  void prune(std::int64_t keep);

 private:
  bool is_whole(std::int64_t steps);

  std::filesystem::path folder_;
  std::set<std::int64_t> whole_;  // that are known to be
};

}  // namespace shardwright::executor
