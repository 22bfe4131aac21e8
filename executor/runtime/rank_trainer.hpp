// One rank of a training run: parameters, program and steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/data/batch_loader.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/op_queues.hpp"
#include "executor/runtime/op_runner.hpp"
#include "executor/runtime/parameter_store.hpp"
#include "executor/runtime/server_links.hpp"
#include "executor/runtime/slow_ranks.hpp"
#include "executor/runtime/step_runner.hpp"

namespace shardwright::executor {

// Training hyperparameters besides the plan.
struct TrainingOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 100;
  // The peak of the learning rate.
  double learning_rate = 3e-4;
  // The learning rate of the last step relative to the peak.
  double least_rate_ratio = 0.1;
  // Steps in which the rate rises from 0 to the peak.
  std::int64_t warmup_steps = 10;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  // Applies to matrices.
  double weight_decay = 0.1;
  // The limit on the norm of all gradients; 0 disables clipping.
  double clip_norm = 1.0;
  // Weight of the loss that balances experts, of which each sequence and layer has one; 0: none.
  double balance_loss = 0.0;
};

// What a rank asks for after a step. All ranks learn of it with the loss of this step.
struct RankRequests {
  // A checkpoint, after which training goes on.
  bool save = false;
  // A checkpoint, and the end of the run.
  bool stop = false;
  // Another plan.
  bool replan = false;
};

struct StepReport {
  // Counts from 0.
  std::int64_t step = 0;
  // Mean over the tokens of the global batch, in nats.
  double loss = 0.0;
  // Before clipping.
  double gradient_norm = 0.0;
  double learning_rate = 0.0;
  // Time from the first op of this rank to its last.
  double seconds = 0.0;
  PhaseTimes phases;
  // Mean of the squared norms of the data-parallel ranks' own gradients, each over its part of the
  // batch. Only some steps have it, only plans with dp > 1, and not if two stages hold a tied
  // embedding.
  std::optional<double> small_batch_squares;
  // Mean over samples that are held out from training, after the step; only after some steps.
  std::optional<double> validation_loss;
  // Only replicas that push to parameter servers without an agreement in each step have it. Their
  // loss is that of this replica's part of the batch.
  std::optional<UpdateCounts> update;
  // What any rank asked for, and the time that each has computed in the forward and the backward
  // pass, without the wait for others (on a GPU 0 in steps that are not recorded). Replicas without
  // an agreement in each step have neither.
  RankRequests requested;
  std::vector<double> rank_compute_s;
  // The slowest rank of the last steps, if the run watches the ranks' speeds.
  std::optional<SlowestRank> slowest;
};

// True if a rank's gradient over its own part of the batch is complete before the reduction, and
// there is another one to compare it with: steps then report small_batch_squares.
bool knows_own_gradients(const ModelSpec& model, const Program& program);

class RankTrainer {
 public:
  // The parameters are not set yet. The references must outlive the trainer; kernels, communicators
  // and queues belong to one device. Throws CommunicationError.
  RankTrainer(const ModelSpec& model, const Program& program, std::int64_t rank, Kernels& kernels,
              const OpenCommunicator& open, const TrainingOptions& options,
              const MakeQueues& make_queues = make_stream_queues);

  // Sets the parameters to random values, which depend on the seed alone and not on the plan.
  void set_initial_parameters();

  // Asks for this rank's requests at the end of each step from now on.
  void poll_requests(std::function<RankRequests()> requests) { requests_ = std::move(requests); }

  // Runs a step on this rank's part of the batch; all ranks call it. Throws OpError,
  // CommunicationError.
  StepReport step(std::int64_t step, const Batch& batch, StepRecorder* recorder = nullptr);

  // Returns the mean loss of a batch, which changes no parameters. It takes as long as a step,
  // because it runs the same program. All ranks call it, of plans whose replicas agree in each
  // step. Throws as `step` does.
  double validation_loss(const Batch& batch);

  // Repeats a step whose loss or gradient norm was not finite, and which therefore changed no
  // parameters, and checks what each op writes. All ranks call it. Returns nothing if all results
  // of this rank are finite. Throws as `step` does.
  std::optional<NotFiniteOp> find_not_finite(std::int64_t step, const Batch& batch);

  // True if some steps report small_batch_squares.
  bool reports_small_batches() const { return knows_own_gradients_; }
  ParameterStore& parameters() { return parameters_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t world() const { return program_.plan.world_size(); }
  const RankCoordinates& place() const { return place_; }
  // Returns the sum over all ranks, which all call it.
  double sum_over_world(double own);
  // Bytes of what replicas exchanged compressed, after local steps or with parameter servers since
  // the start.
  double exchanged_bytes() const {
    return ops_.exchange().carried_bytes() + servers_.carried_bytes();
  }
  // Takes the states of parameter servers, if there are any, into those of the first replica,
  // before they are saved. All ranks call it.
  void collect_states();
  std::string last_op() const { return runner_.last_op(); }
  std::size_t peak_tensor_bytes() const { return runner_.peak_tensor_bytes(); }

 private:
  void prepare();
  // Replaces each value by its sum over all ranks, by way of room for them on the device.
  void replace_by_sums(std::span<double> own, double* on_device);
  // Uploads the batch and returns the state of a step.
  StepState state_of(std::int64_t step, const Batch& batch);
  // This rank's addend of the loss over the whole batch, and the mean that follows from their sum.
  double addend(double own_loss) const;
  double mean_loss(double sum) const;
  // Sets the loss, the requests and the times of `report` from those of all ranks, which all call
  // it.
  void share_report(double own_loss, StepReport& report);

  // Sums in device memory.
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
  ServerLinks servers_;
  bool shares_states_;
  std::shared_ptr<void> sums_, report_sums_;
  std::shared_ptr<void> tokens_, targets_;
  OpRunner ops_;
  StepRunner runner_;
  std::function<RankRequests()> requests_;
};

}  // namespace shardwright::executor
