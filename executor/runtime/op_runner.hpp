// Runs one op of a program: finds its operands' shapes and parameters and calls the kernel or the
// collective.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/rank_grid.hpp"
#include "core/program/shard_shape.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

struct NotFiniteCounts;

inline bool is_backward(Phase phase) {
  return phase == Phase::BackwardInput || phase == Phase::BackwardWeight;
}

// An op in its place, with its tensors.
struct BoundOp {
  const Op* op = nullptr;
  const Call* call = nullptr;
  std::vector<void*> reads, writes;
  std::span<const PartId> covered;
  Queue queue = nullptr;
};

// What a step works on and brings about besides tensors and parameters, in the device's memory.
struct StepState {
  const std::int32_t* tokens = nullptr;   // of all microbatches, one after another
  const std::int32_t* targets = nullptr;  // the token that follows each token
  AdamStep adam;

  double* loss = nullptr;              // sum over the tokens of this rank; on the last stage
  double* gradient_squares = nullptr;  // of all parameters, once the program has added them up
  double* own_squares = nullptr;  // of this rank's gradients before they are reduced; null: not
                                  // asked for
  NotFiniteCounts* not_finite = nullptr;  // of each op of the step; null: not looked for
};

class OpRunner {
 public:
  // Everything referred to outlives the runner.
  OpRunner(const ModelSpec& model, const Program& program, std::int64_t rank, Kernels& kernels,
           const RankCommunicators& communicators, ParameterStore& parameters);

  // Has the kernels make what the op needs beside its operands.
  void prepare(const Op& op, Queue queue);
  // Throws CommunicationError; `state` outlives what is issued.
  void run(const BoundOp& bound, StepState& state);
  // The same, and adds to `counts`, in the device's memory.
  void run_checked(const BoundOp& bound, StepState& state, NotFiniteCounts* counts);

 private:
  struct Weights {
    const void* weight = nullptr;
    const void* bias = nullptr;
    void* weight_gradient = nullptr;
    void* bias_gradient = nullptr;
  };

  // A norm's weight or bias: where its gradient lies, and where in the message that carries those
  // of all norms.
  struct NormGradient {
    std::size_t unit = 0, offset = 0, elements = 0, in_message = 0;
  };

  // op_runner.cpp: kernels
  void compute(const BoundOp& bound, StepState& state);
  void gemm(const BoundOp& bound);
  void norm(const BoundOp& bound);
  void rope(const BoundOp& bound);
  RopeShape rope_shape() const;
  void activation(const BoundOp& bound);
  void attention(const BoundOp& bound);
  void embedding(const BoundOp& bound, const StepState& state);
  void loss(const BoundOp& bound, StepState& state);
  Weights weights_of(const BoundOp& bound, std::size_t index) const;
  // Of the microbatch that the op works on.
  std::span<const std::int32_t> part(const std::int32_t* all, const BoundOp& bound) const;
  VocabularyShard vocabulary() const;

  // state_ops.cpp: what works on all parameters of the rank
  void gradient_norm(const BoundOp& bound, StepState& state);
  void optimizer(const BoundOp& bound, const StepState& state);
  bool counts_in_norm(const ParameterUnit& unit, const ParameterSlice& slice) const;
  void add_own_squares(std::size_t unit, const StepState& state, Queue queue);

  // finite_checks.cpp
  // The weights and biases that the op applies, with their units.
  void for_each_applied(
      const BoundOp& bound,
      const std::function<void(std::size_t unit, const ParameterSlice&)>& visit) const;
  void count_weights(const BoundOp& bound, double* count);
  void count_gradients(const BoundOp& bound, double* count);

  // communication_ops.cpp
  void communicate(const BoundOp& bound, StepState& state);
  void exchange_tensors(const BoundOp& bound, const CommunicationWork& work);
  void message(const BoundOp& bound, const CommunicationWork& work);
  void softmax_statistics(const BoundOp& bound, Communicator& group);
  void reduce_gradients(const BoundOp& bound, Communicator& group, StepState& state);
  void gather_parameters(const BoundOp& bound, Communicator& group);
  void add_replicated_gradients(const BoundOp& bound, Communicator& group, const StepState& state);
  void add_tied_gradient(const BoundOp& bound, Communicator& group);
  std::size_t elements_of(TensorRef ref) const;

  const ModelSpec& model_;
  const Program& program_;
  ShardShape shape_;
  RankCoordinates place_;
  Kernels& kernels_;
  const RankCommunicators& communicators_;
  ParameterStore& parameters_;
  // Of the norms whose gradients tensor-parallel ranks know addends of; and their elements.
  std::vector<NormGradient> split_norms_;
  std::size_t split_norm_elements_ = 0;
  // Memory of ops that need some of their own; those of one kind run one after another.
  // `norm_message_`: the norms' gradients, then as they were before the data-parallel reduction.
  std::shared_ptr<void> own_maxima_, norm_message_;
};

}  // namespace shardwright::executor
