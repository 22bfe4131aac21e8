// Runs one op of a program: determines shapes and parameters and calls the kernel or the
// collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/rank_grid.hpp"
#include "core/program/shard_shape.hpp"
#include "executor/comm/rank_communicators.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/expert_routing.hpp"
#include "executor/runtime/parameter_store.hpp"
#include "executor/runtime/replica_exchange.hpp"
#include "executor/runtime/server_links.hpp"

namespace shardwright::executor {

// Numbers of infinite or NaN values of an op; in device memory while a step runs.
struct NotFiniteCounts {
  // Values in the tensors and gradients that the op wrote or added to.
  double results = 0.0;
  // Values in the weights that the op applied.
  double weights = 0.0;
};

// The first op of a rank, in the order of issue, with results that are not finite. Its inputs from
// this rank were finite, except for the weights that are counted.
struct NotFiniteOp {
  std::string op;
  NotFiniteCounts counts;
  std::vector<std::string> weights;
  // The op is a collective or transfer, so its inputs include other ranks' values.
  bool received = false;
};

// "ffn.down of layer 1, microbatch 0: 12 values of its result and 3 of its weights
// layers.1.mlp.down_proj are not finite"
std::string describe_not_finite(const NotFiniteOp& found);

inline bool is_backward(Phase phase) {
  return phase == Phase::BackwardInput || phase == Phase::BackwardWeight;
}

// True if the op applies weights of routed experts.
bool is_of_experts(const Op& op);

// An op in its call, with pointers to its tensors.
struct BoundOp {
  const Op* op = nullptr;
  const Call* call = nullptr;
  std::vector<void*> reads, writes;
  std::span<const PartId> covered;
  // The op is the first to add to the unsharded gradient that it writes (FSDP).
  bool begins_gradient = false;
  Queue queue = nullptr;

  const void* read(std::size_t index) const { return reads.at(index); }
  void* write(std::size_t index) const { return writes.at(index); }
};

// Inputs and results of a step besides tensors and parameters, in device memory.
struct StepState {
  // Tokens of all microbatches, and the token that follows each of them.
  const std::int32_t* tokens = nullptr;
  const std::int32_t* targets = nullptr;
  AdamStep adam;
  // See TrainingOptions.
  double balance_loss = 0.0;
  // Only the loss is wanted: no parameter changes.
  bool validates = false;

  // Sum of the losses of this rank's tokens; on the last stage.
  double* loss = nullptr;
  // Sum of squares of all gradients, once the program has reduced it.
  double* gradient_squares = nullptr;
  // Sum of squares of this rank's gradients before their reduction; null if not needed.
  double* own_squares = nullptr;
  // Counts for each op of the step; null unless they are looked for.
  NotFiniteCounts* not_finite = nullptr;
};

class OpRunner {
 public:
  // The references must outlive the runner.
  OpRunner(const ModelSpec& model, const Program& program, std::int64_t rank, Kernels& kernels,
           const RankCommunicators& communicators, ParameterStore& parameters,
           ServerLinks& servers);

  // Bytes of a tensor of the call; gathered parameters and their gradient with the padding of their
  // layout.
  std::size_t bytes_of_tensor(TensorRef ref, const Call& call) const;
  // Prepares what the op needs besides its operands.
  void prepare(const Op& op, Queue queue);
  // `state` must outlive the issued work. Throws CommunicationError.
  void run(const BoundOp& bound, StepState& state);
  // The same, and adds to `counts` in device memory.
  void run_checked(const BoundOp& bound, StepState& state, NotFiniteCounts* counts);
  const ReplicaExchange& exchange() const { return exchange_; }

 private:
  struct Weights {
    const void* weight = nullptr;
    const void* bias = nullptr;
    void* weight_gradient = nullptr;
    void* bias_gradient = nullptr;
  };

  // The gradient of a norm's weight or bias (or of another parameter of which the rank has one
  // addend), as far as the rank holds it: its place in a unit and in the buffer that carries them
  // all.
  struct NormGradient {
    std::size_t unit = 0, offset = 0, elements = 0, in_buffer = 0;
  };

  // Defined in op_runner.cpp: kernels.
  void compute(const BoundOp& bound, StepState& state);
  void gemm(const BoundOp& bound);
  void norm(const BoundOp& bound);
  void head_norms(const BoundOp& bound);
  void rope(const BoundOp& bound);
  RopeShape rope_shape() const;
  void activation(const BoundOp& bound);
  void attention(const BoundOp& bound);
  void embedding(const BoundOp& bound, const StepState& state);
  void loss(const BoundOp& bound, StepState& state);
  void offload(const BoundOp& bound);
  Weights weights_of(const BoundOp& bound, std::size_t index) const;
  // The applied weights and their gradients where the op has them: with FSDP in the gathered copy
  // that it reads and in the unsharded gradient that it writes (norms: in `norm_sums_`), null
  // without those.
  void* applied(const BoundOp& bound, std::size_t unit, std::size_t element) const;
  void* gradient(const BoundOp& bound, std::size_t unit, std::size_t element) const;
  // Appends the parameters that `counts` selects, as far as they lie in the parts of units, one
  // after another in a buffer; returns its elements.
  std::size_t place_norms(std::vector<NormGradient>& norms,
                          const std::function<bool(const ParameterSlice&)>& counts,
                          const std::function<ElementRange(std::size_t unit)>& part_of_unit) const;
  void* norm_sum(const NormGradient& norm) const;
  // True if a tensor-parallel rank has one addend of the parameter's gradient.
  bool is_split(const ParameterSlice& slice) const;
  bool reads_gathered(const Op& op) const;
  bool writes_gradient(const Op& op) const;
  // Returns the part of the op's microbatch.
  std::span<const std::int32_t> part(const std::int32_t* all, const BoundOp& bound) const;
  VocabularyShard vocabulary() const;
  // The tokens over which a gradient is the mean.
  double tokens_of_gradient() const;

  // Defined in latent_attention_ops.cpp.
  bool is_latent() const;
  void bottleneck_norm(const BoundOp& bound);
  void latent_rope(const BoundOp& bound);
  void latent_rope_backward(const BoundOp& bound);
  RopeShape latent_rope_shape() const;
  // The rotary keys of all tokens that an op of the forward pass reads, in rows of `width`.
  struct RotaryKeys {
    const void* first = nullptr;
    std::int64_t width = 0;
  };
  RotaryKeys rotary_keys(const BoundOp& bound);
  void scale_queries(void* rows, Queue queue);
  void gather_rotary_key(const BoundOp& bound, Communicator& group);
  std::int64_t row_width(TensorRef ref, std::int64_t rows) const;
  // Elements of a row of a projection's outputs, which may lie in longer rows, or 0.
  std::int64_t output_width(TensorRef ref, std::int64_t rows) const;

  // Defined in context_parallel_ops.cpp.
  void context_attention(const BoundOp& bound, const AttentionWork& work);
  void context_collective(const BoundOp& bound, const CommunicationWork& work, Communicator& group);
  // Keys and values of all ranks, and the sums of their gradients, which lie behind that of the
  // queries.
  void gather_keys_values(const BoundOp& bound, Communicator& group);
  void scatter_key_value_gradients(const BoundOp& bound, Communicator& group);
  void* gathered_gradient(void* gradients) const;
  // Ring: keys and values that lie in rows with the queries are packed before they are sent.
  void find_ring_steps();
  void ring_attention(const BoundOp& bound, const AttentionWork& work);
  void shift_ring(const BoundOp& bound, Communicator& group);
  void add_ring_gradient(const BoundOp& bound);
  // Ulysses: tokens of all heads go to the ranks of their heads, or come back from them. `widths`
  // are the columns that all heads have in a row, of each tensor that lies in it.
  bool exchanges_heads() const;
  void attention_of_heads(const BoundOp& bound, AttentionWork work);
  void exchange_heads(const BoundOp& bound, const CommunicationWork& work, Communicator& group);
  void tokens_to_heads(std::span<const std::int64_t> widths, const BoundOp& bound,
                       Communicator& group);
  void heads_to_tokens(std::span<const std::int64_t> widths, const BoundOp& bound,
                       Communicator& group);
  // Sends each rank its rows of the first half of `head_buffer_`; returns the second half.
  const void* exchange_parts(std::int64_t width, const BoundOp& bound, Communicator& group);
  // The place of an element of activations, and the bytes of rows of them.
  void* at(void* array, std::int64_t index) const;
  const void* at(const void* array, std::int64_t index) const;
  std::size_t bytes_of_rows(std::int64_t rows, std::int64_t width) const;

  // Defined in expert_ops.cpp: mixtures of experts.
  void find_expert_rows();
  bool holds_rows(TensorRef ref) const;
  // Elements of the most rows that the tensor may have to hold.
  std::size_t most_row_elements(TensorRef ref) const;
  RouterShape router_shape() const;
  ExpertRouting& routing_of(const BoundOp& bound);
  std::shared_ptr<void> allocate_elements(std::int64_t elements);
  std::vector<double> shares_on_host(const ExpertRouting& routing);
  void router(const BoundOp& bound, const StepState& state);
  void router_backward(const BoundOp& bound, double balance_loss);
  std::vector<double> balance_gradient(const ExpertRouting& routing, double weight) const;
  void permute(const BoundOp& bound);
  void sort_rows(const BoundOp& bound, const ExpertRouting& routing);
  void expert_product(const BoundOp& bound);
  void expert_activation(const BoundOp& bound);
  void shared_gate(const BoundOp& bound);
  void exchange_rows(const BoundOp& bound, Communicator& group);
  void exchange_sent_rows(const BoundOp& bound, Communicator& group);
  void gather_split_rows(const BoundOp& bound, Communicator& group);
  void scatter_split_rows(const BoundOp& bound, Communicator& group);
  void sort_shares(ExpertRouting& routing, Queue queue);
  void unsort_share_gradients(ExpertRouting& routing, Queue queue);
  void exchange_counts(ExpertRouting& routing, Communicator& group, Queue queue);

  // Defined in state_ops.cpp: ops on all parameters of the rank.
  void gradient_norm(const BoundOp& bound, StepState& state);
  void optimizer(const BoundOp& bound, const StepState& state);
  // Visits the parts of slices that this rank updates.
  void for_each_updated(
      const std::function<void(std::size_t, const ParameterSlice&, ElementRange)>& visit) const;
  bool counts_in_norm(const ParameterUnit& unit, const ParameterSlice& slice) const;
  void add_squares_of(bool experts, const BoundOp& bound, StepState& state);
  void add_own_squares(std::size_t unit, const StepState& state, Queue queue);

  // Defined in finite_checks.cpp. Visits the weights and biases that the op applies, with their
  // units.
  void for_each_applied(
      const BoundOp& bound,
      const std::function<void(std::size_t unit, const ParameterSlice&)>& visit) const;
  void count_outputs(const BoundOp& bound, double* count);
  void count_weights(const BoundOp& bound, double* count);
  void count_gradients(const BoundOp& bound, double* count);

  // Defined in communication_ops.cpp.
  void communicate(const BoundOp& bound, StepState& state);
  void tensor_collective(const BoundOp& bound, const CommunicationWork& work);
  void transfer(const BoundOp& bound, const CommunicationWork& work);
  void softmax_statistics(const BoundOp& bound, Communicator& group);
  // The part of the model whose gathered parameters, or whose gradient, the tensor holds.
  PartId part_of(TensorRef ref, const Call& call) const;
  // The units whose gradients or parameters the collective carries.
  std::vector<std::size_t> carried_units(const BoundOp& bound) const;
  // FSDP: `group` is null where this rank alone holds its experts.
  void reduce_gradients(const BoundOp& bound, Communicator* group, StepState& state);
  // The group of an op's collective, or of the collectives beside an op that compresses.
  Group group_of(const BoundOp& bound) const;
  void scatter_gradients(std::size_t unit, Communicator& group, Queue queue);
  // FSDP: adds the ranks' gradients of one microbatch to this rank's shard.
  void add_unsharded_gradient(std::size_t unit, const BoundOp& bound, Communicator* group);
  void gather_parameters(const BoundOp& bound, Communicator* group);
  void add_replicated_gradients(const BoundOp& bound, Communicator& group, const StepState& state);
  void add_tied_gradient(const BoundOp& bound, Communicator& group);
  std::size_t elements_of(TensorRef ref) const;
  // Elements of a result of the op that hold values; rows of experts do not fill their tensors.
  std::size_t elements_written(const BoundOp& bound, std::size_t index);
  std::int64_t query_width() const { return shape_.heads * shape_.head_dim; }
  std::int64_t key_value_width() const {
    return shape_.kv_heads * (shape_.head_dim + shape_.value_dim);
  }

  const ModelSpec& model_;
  const Program& program_;
  ShardShape shape_;
  RankCoordinates place_;
  // FSDP: the embedding's gathered parameters and their gradient. Calls of the embedding have the
  // first layer's number.
  std::set<TensorId> of_embedding_;
  // The number of each attention among those of its ring, from 0.
  std::map<const Op*, std::int64_t> ring_steps_;
  // Attention of some layer runs once more before its backward pass.
  bool reruns_attention_ = false;
  Kernels& kernels_;
  const RankCommunicators& communicators_;
  ParameterStore& parameters_;
  ReplicaExchange exchange_;
  ServerLinks& servers_;
  // Tensors of rows that the rank's experts work on, with the elements of a row; those that
  // products of experts write; and tensors of rows that the rank sends or gets back, or receives
  // before the ranks that split the experts gather them.
  std::map<TensorId, std::int64_t> expert_rows_;
  std::set<TensorId> expert_results_, sent_rows_, received_rows_;
  // The numbers of experts that the ranks of the group hold, and this one.
  std::vector<std::int64_t> experts_by_rank_;
  std::int64_t own_experts_ = 0;
  // Scores of the router and their gradients, for which the program has room in fp32.
  std::set<TensorId> router_scores_;
  std::int64_t most_received_ = 0;
  ExpertRoutings routings_;
  // The rotary keys of a layer and microbatch that tensor-parallel ranks have gathered, for
  // projections up that run again without a gather.
  std::map<std::pair<std::int32_t, std::int32_t>, std::shared_ptr<void>> kept_rotary_keys_;
  // Copies of the activations of a layer and microbatch that are offloaded.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::vector<std::byte>>> offloaded_;
  // Parameters for which `is_split` holds, and the elements that all ranks have of them.
  std::vector<NormGradient> split_norms_;
  std::size_t split_norm_elements_ = 0;
  // FSDP: norms, whose small unsharded gradients no tensor of the program holds, and their sums
  // until the next reduction of their part.
  std::vector<NormGradient> unsharded_norms_;
  std::shared_ptr<void> norm_sums_;
  // Buffers that ops of one kind use one after another. `norm_buffer_` holds the gradients of
  // `split_norms_`, then their values before the data-parallel reduction; it is zero where other
  // ranks write theirs.
  // `row_buffer_` holds the rows that are sorted, `product_` a product that is added to its output,
  // `head_buffer_` the rows that Ulysses sends, and behind them those that it receives,
  // `ring_buffer_` the keys and values that a ring sends first.
  std::shared_ptr<void> own_maxima_, norm_buffer_, row_buffer_, product_, head_buffer_,
      ring_buffer_;
};

}  // namespace shardwright::executor
