// All the templates of a model under a plan: each distinct layer once, embedding and head, written
// for one rank.
//
// They depend on how the plan cuts a layer (tp, cp, ep, microbatch, recomputation …), not on how
// many layers, stages or microbatches there are; the planner prices them once for all the plans
// that share them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/program/program.hpp"
#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// A layer's (or the embedding's, or the head's) blocks, in the order in which one microbatch meets
// them.
struct PartBlocks {
  BlockId forward = 0;
  // The recomputation, meaningful if `recomputed`.
  BlockId recompute = 0;
  // The gradients of input and weights in one go.
  BlockId backward = 0;
  // The gradient of the input alone.
  BlockId backward_input = 0;
  BlockId backward_weight = 0;
  bool recomputed = false;
  // FSDP only: the tensors that hold a gathered copy of the parameters and their unsharded
  // gradient.
  TensorId parameters = 0, parameter_gradient = 0;
  // True if activations are offloaded: those that the forward pass keeps go to the host and come
  // back.
  bool offloads = false;
  BlockId store = 0, fetch = 0;
};

// Parameters of one rank's share of a part: those that are trained, and weights that are frozen.
struct PartParameters {
  // Parameters that are replicated over the data group.
  double dense = 0.0;
  // Parameters that are replicated over the expert-data group.
  double expert = 0.0;
  // Elements of dense gradients that tensor-parallel ranks add up at the end of the step: of
  // parameters that each of them holds and uses on its own part of the sequence, and of key/value
  // heads of which some of them hold copies.
  double tensor_reduced = 0.0;
  // Frozen weights, replicated alike. They have neither gradients nor states. One in a narrower
  // format than the trained ones counts for the part of an element that it takes.
  double frozen_dense = 0.0;
  double frozen_expert = 0.0;
  // `expert` of a rank that holds as many experts as the mean one.
  double mean_expert = 0.0;

  double total() const { return dense + expert; }
  double dense_weights() const { return dense + frozen_dense; }
  double expert_weights() const { return expert + frozen_expert; }
  double weights() const { return dense_weights() + expert_weights(); }
  PartParameters& operator+=(const PartParameters& more);
};

// The parts of layers that are recomputed in groups, by layer kind: the first of a group keeps its
// input, and all but the last hand their recomputed outputs on. Empty unless the plan has groups.
template <class Part>
struct GroupedParts {
  std::vector<Part> first, middle, last;

  const std::vector<Part>& at(std::int64_t in_group, std::int64_t group) const {
    return in_group == 0 ? first : in_group + 1 < group ? middle : last;
  }
};

struct BlockSet {
  std::vector<TensorSpec> tensors;
  std::vector<Block> blocks;

  // Parts by layer kind (see `kind_of_layer`): with everything kept, and with the whole layer
  // recomputed (empty unless the plan recomputes layers).
  std::vector<PartBlocks> kept, recomputed;
  GroupedParts<PartBlocks> grouped;
  // Parameters by layer kind.
  std::vector<PartParameters> layer_parameters;
  std::vector<std::int32_t> kind_of_layer;

  PartBlocks embedding, head;
  // The head with its further layers recomputed, where it has any and the plan recomputes layers.
  std::optional<PartBlocks> recomputed_head;
  PartParameters embedding_parameters, head_parameters;

  // The hidden state at a layer's input, and its gradient.
  TensorRef hidden, hidden_gradient;
  // Bytes of the hidden state that one stage hands to the next.
  Bytes boundary_bytes;
  // Bytes that each rank sends of it: fewer where the next stage gathers.
  Bytes message_bytes;
};

BlockSet make_blocks(const ModelSpec& model, const Plan& plan, const StackSpec& stack);

// FSDP: true if the first block of the part's pass reads the gathered parameters, so that they are
// gathered for it.
bool gathers_parameters(const BlockSet& blocks, const PartBlocks& part, SlotPhase phase);

// Parameters of `tensors` on one rank, after tensor and expert parallelism.
PartParameters rank_parameters(const std::vector<ParameterTensor>& tensors, const Plan& plan);

}  // namespace shardwright
