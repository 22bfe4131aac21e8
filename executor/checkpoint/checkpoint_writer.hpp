// Writes checkpoints on a thread of each rank, one after another, while training goes on.
//
// The threads coordinate through the store, so that they add no collective to those of the
// training:
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
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/parameter_files.hpp"
#include "executor/comm/store.hpp"

namespace shardwright::executor {

class CheckpointWriter {
 public:
  // The references must outlive the writer. `limit` bounds the time to write one checkpoint. The
  // writer's thread calls `check_others`, unless it is null, while it waits for other ranks; it
  // throws if one of them is gone.
  CheckpointWriter(CheckpointFolder& folder, std::int64_t keep, const ModelSpec& model,
                   Store& store, std::int64_t rank, std::int64_t world,
                   std::chrono::milliseconds limit, std::function<void()> check_others = nullptr);
  // Abandons a checkpoint that is being written.
  ~CheckpointWriter() = default;

  // Begins a checkpoint. `pieces` must not change until `wait` returns. No other checkpoint may be
  // in progress.
  void start(const RunState& state, const std::vector<ParameterPiece>& pieces);
  // Waits until the checkpoint is complete on all ranks. Throws RuntimeFailure on every rank if one
  // failed. Returns at once if no checkpoint is in progress.
  void wait();

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void write(const RunState& state, const std::vector<ParameterPiece>& pieces,
             const std::stop_token& stop);
  void write_parts(const RunState& state, const std::vector<ParameterPiece>& pieces,
                   const std::stop_token& stop);
  // Runs `work` and reports its outcome under `key`. Throws what it threw.
  template <class Work>
  void report(const std::string& key, std::int64_t steps, const Work& work);
  // Waits until the rank that sets `key` has reported. Throws RuntimeFailure if it failed.
  void wait_for(const std::string& key, std::int64_t steps, const std::stop_token& stop);

  CheckpointFolder& folder_;
  std::int64_t keep_;
  const ModelSpec& model_;
  Store& store_;
  std::int64_t rank_, world_;
  std::chrono::milliseconds limit_;
  std::function<void()> check_others_;
  Deadline deadline_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace shardwright::executor
