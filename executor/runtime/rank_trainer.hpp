// One rank of a training run: its parameters, its program, and the steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/program/program.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/data/batch.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/op_runner.hpp"
#include "executor/runtime/parameter_store.hpp"
#include "executor/runtime/step_runner.hpp"
#include "executor/runtime/stream_queues.hpp"
#include "executor/runtime/training_options.hpp"

namespace shardwright::executor {

struct StepReport {
  std::int64_t step = 0;       // from 0 on
  double loss = 0.0;           // mean over the tokens of the global batch, in nats
  double gradient_norm = 0.0;  // before clipping
  double learning_rate = 0.0;
  double seconds = 0.0;  // from the first op of this rank to its last
  PhaseTimes phases;
  // The mean of the squared norms of the data-parallel ranks' own gradients, each over its part of
  // the batch; of some steps of plans with several such ranks, unless the embedding is tied and two
  // stages hold it.
  std::optional<double> small_batch_squares;
};

class RankTrainer {
 public:
  // Parameters begin as `fill_initial` says. Everything referred to outlives the trainer; kernels,
  // communicators and queues are those of one device. Throws CommunicationError.
  RankTrainer(const ModelSpec& model, const Program& program, std::int64_t rank, Kernels& kernels,
              const OpenCommunicator& open, const TrainingOptions& options,
              const MakeQueues& make_queues = make_stream_queues);

  // Runs step `step` on this rank's part of the batch; all ranks do so. Throws OpError,
  // CommunicationError.
  StepReport step(std::int64_t step, const Batch& batch, StepRecorder* recorder = nullptr);

  // After a step whose loss or gradient norm is not finite, and which so left all parameters as
  // they were: repeats it, and looks at what each op writes. All ranks do so. Nothing if all of
  // this rank's results are finite. Throws as `step` does.
  std::optional<NotFiniteOp> find_not_finite(std::int64_t step, const Batch& batch);

  // After it each rank has all of its weights as the last step left them (ZeRO-1 may gather them
  // only in the next step).
  void gather_parameters();

  // Whether some steps report small_batch_squares.
  bool reports_small_batches() const { return knows_own_gradients_; }
  ParameterStore& parameters() { return parameters_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t world() const { return program_.plan.world_size(); }
  const RankCoordinates& place() const { return place_; }
  // Of a number of each rank; all ranks call it.
  double sum_over_world(double own);
  // See StepRunner.
  std::string last_op() const { return runner_.last_op(); }
  std::size_t peak_tensor_bytes() const { return runner_.peak_tensor_bytes(); }

 private:
  void make_ready();
  void initialise();
  // The device's memory of a step.
  StepState state_of(std::int64_t step, const Batch& batch);

  // What the device adds up, beside tensors.
  struct Sums {
    double loss = 0.0, gradient_squares = 0.0, own_squares = 0.0, over_world = 0.0;
  };

  const ModelSpec& model_;
  const Program& program_;
  Kernels& kernels_;
  TrainingOptions options_;
  std::int64_t rank_;
  RankCoordinates place_;
  bool knows_own_gradients_;
  RankCommunicators communicators_;
  ParameterStore parameters_;
  std::shared_ptr<void> sums_;              // Sums
  std::shared_ptr<void> tokens_, targets_;  // of a step
  OpRunner ops_;
  StepRunner runner_;
};

}  // namespace shardwright::executor
