// Writes one checkpoint after another beside the training: a thread on each rank.
//
// The ranks' threads tell each other through the table of the rendezvous how far they are, so that
// they need no exchange that training would meet:
//
//   first rank   makes the files                 checkpoint.made      = step
//   each rank    writes its part                 checkpoint.part.RANK = step
//   first rank   checksums, renames, prunes      checkpoint.whole     = step
//
// A value "step: why" says that it failed.
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
  // Everything referred to outlives the writer. `limit`: what writing a checkpoint may take.
  // `check_others`, unless null, is asked while it waits for other ranks, by a thread of its own,
  // and throws if one of them is gone.
  CheckpointWriter(CheckpointFolder& folder, std::int64_t keep, const ModelSpec& model,
                   Store& store, std::int64_t rank, std::int64_t world,
                   std::chrono::milliseconds limit, std::function<void()> check_others = nullptr);
  // Gives up what is being written.
  ~CheckpointWriter() = default;

  // Begins; `pieces` stay as they are until `wait` returns. Nothing else is being written.
  void start(const RunState& state, const std::vector<ParameterPiece>& pieces);
  // Until the checkpoint is there, on all ranks. Throws RuntimeFailure on each of them if it failed
  // on one. Returns at once if nothing is being written.
  void wait();

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void write(const RunState& state, const std::vector<ParameterPiece>& pieces,
             const std::stop_token& stop);
  void write_parts(const RunState& state, const std::vector<ParameterPiece>& pieces,
                   const std::stop_token& stop);
  // Runs `work` and says under `key` how it went. Throws what it threw.
  template <class Work>
  void tell(const std::string& key, std::int64_t steps, const Work& work);
  // Until the rank that sets `key` has said how it went. Throws RuntimeFailure if it failed.
  void await(const std::string& key, std::int64_t steps, const std::stop_token& stop);

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
