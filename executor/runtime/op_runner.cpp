// Computing ops. Operands have the order of core/op/op.hpp.
#include "executor/runtime/op_runner.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "core/base/error.hpp"
#include "core/lowering/replica_exchange.hpp"
#include "core/program/groups.hpp"

namespace shardwright::executor {

OpRunner::OpRunner(const ModelSpec& model, const Program& program, std::int64_t rank,
                   Kernels& kernels, const RankCommunicators& communicators,
                   ParameterStore& parameters, ServerLinks& servers)
    : model_(model),
      program_(program),
      shape_(shard_shape(model, program.plan)),
      place_(RankGrid(program.plan).dense_coordinates(rank)),
      kernels_(kernels),
      communicators_(communicators),
      parameters_(parameters),
      exchange_(program, communicators, parameters),
      servers_(servers) {
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      reruns_attention_ |= op.kind == OpKind::Attention && op.phase == Phase::Recompute;
      if (op.kind != OpKind::Embedding) continue;
      if (reads_gathered(op)) of_embedding_.insert(op.reads.back().tensor);
      if (writes_gradient(op)) of_embedding_.insert(op.writes.back().tensor);
    }
  }
  if (model.moe) find_expert_rows();
  if (model.moe || is_latent())
    product_ = allocate_elements(shape_.residual_tokens * shape_.hidden);
  if (exchanges_heads()) {
    const auto row = static_cast<std::size_t>(query_width() + key_value_width());
    head_buffer_ = kernels.allocate(2 * static_cast<std::size_t>(shape_.tokens) * row *
                                    bytes_of(kernels.element()));
  }
  find_ring_steps();
  if (parameters.shards().holds_shards_alone) {
    const std::size_t elements =
        place_norms(unsharded_norms_, std::mem_fn(&ParameterSlice::is_norm), [&](std::size_t unit) {
          return ElementRange{0, parameters.layout().units[unit].elements};
        });
    const std::size_t bytes = elements * bytes_of(kernels.state_element());
    norm_sums_ = kernels.allocate(bytes);
    kernels.zero(norm_sums_.get(), bytes, nullptr);
  }
  if (program.plan.tp == 1) return;
  const std::size_t state = bytes_of(kernels.state_element());
  own_maxima_ = kernels.allocate(static_cast<std::size_t>(shape_.tokens) * state);
  split_norm_elements_ = place_norms(
      split_norms_, [this](const ParameterSlice& slice) { return is_split(slice); },
      [&](std::size_t unit) { return parameters.held(unit); });
  norm_buffer_ = kernels.allocate(2 * split_norm_elements_ * state);
  kernels.zero(norm_buffer_.get(), 2 * split_norm_elements_ * state, nullptr);
}

std::size_t OpRunner::place_norms(
    std::vector<NormGradient>& norms, const std::function<bool(const ParameterSlice&)>& counts,
    const std::function<ElementRange(std::size_t unit)>& part_of_unit) const {
  std::size_t elements = 0;
  parameters_.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    if (!counts(slice)) return;
    const ElementRange range =
        overlap(part_of_unit(unit), {slice.offset, slice.offset + slice.elements()});
    // A buffer has room for the parts of all ranks.
    const auto parts = static_cast<std::size_t>(program_.plan.tp / slice.holders);
    const auto part = static_cast<std::size_t>(place_[Axis::Tensor] / slice.holders);
    norms.push_back({unit, range.begin, range.size(), elements + part * range.size()});
    elements += parts * range.size();
  });
  return elements;
}

bool OpRunner::is_split(const ParameterSlice& slice) const {
  if (program_.plan.tp == 1) return false;
  return slice.sees_own_heads() || (program_.plan.sequence_parallel && slice.sees_own_tokens());
}

void* OpRunner::norm_sum(const NormGradient& norm) const {
  return element_at(norm_sums_.get(), norm.in_buffer, kernels_.state_element());
}

void OpRunner::run(const BoundOp& bound, StepState& state) {
  const Op& op = *bound.op;
  if (!op.runs_in(state.adam.step)) return;
  // What a repeated step exchanges after its optimizer has no part in its loss and norm.
  if (op.payload == Payload::LocalSteps && state.not_finite != nullptr) return;
  if (op.payload == Payload::CompressedGradients || op.payload == Payload::LocalSteps) {
    exchange_.run(bound, carried_units(bound));
  } else if (is_server_transfer(op.kind) || op.kind == OpKind::ServerOptimizer) {
    servers_.run(bound, carried_units(bound), state);
  } else if (is_communication(bound.op->kind)) {
    communicate(bound, state);
  } else {
    compute(bound, state);
  }
}

void OpRunner::prepare(const Op& op, Queue queue) {
  if (is_communication(op.kind)) return;
  kernels_.prepare_queue(queue);
  if (op.kind == OpKind::Rope) kernels_.prepare_rope(rope_shape());
  if (op.kind == OpKind::Attention)
    kernels_.prepare_attention(std::get<AttentionWork>(op.work), queue);
}

void OpRunner::compute(const BoundOp& bound, StepState& state) {
  if (bound.begins_gradient)
    kernels_.zero(bound.writes.back(), bytes_of_tensor(bound.op->writes.back(), *bound.call),
                  bound.queue);
  switch (bound.op->kind) {
    case OpKind::Gemm:
    case OpKind::GroupedGemm:
      return gemm(bound);
    case OpKind::Norm:
      return norm(bound);
    case OpKind::Rope:
      return rope(bound);
    case OpKind::Activation:
      return activation(bound);
    case OpKind::Attention:
      return attention(bound);
    case OpKind::Residual:
      return kernels_.add(shape_.residual_tokens * shape_.hidden, bound.read(0), bound.read(1),
                          bound.write(0), bound.queue);
    case OpKind::GradientAccumulation:
      return add_ring_gradient(bound);
    case OpKind::Embedding:
      return embedding(bound, state);
    case OpKind::Loss:
      return loss(bound, state);
    case OpKind::Router:
      return router(bound, state);
    case OpKind::Permute:
      return permute(bound);
    case OpKind::Offload:
      return offload(bound);
    case OpKind::GradientNorm:
      return gradient_norm(bound, state);
    case OpKind::Optimizer:
      return optimizer(bound, state);
    default:
      SHARDWRIGHT_CHECK(false, "no kernel for " + bound.op->name);
  }
}

std::size_t OpRunner::bytes_of_tensor(TensorRef ref, const Call& call) const {
  const TensorSpec& tensor = program_.tensors[ref.tensor];
  const auto of_part = [&](Element element) {
    return parameters_.layout().elements_of(part_of(ref, call)) * bytes_of(element);
  };
  if (tensor.category == MemoryCategory::GatheredParameters) return of_part(kernels_.element());
  if (tensor.category == MemoryCategory::Gradients) return of_part(kernels_.state_element());
  // Experts may get more rows than an even share, which the program counts.
  if (holds_rows(ref)) return most_row_elements(ref) * bytes_of(kernels_.element());
  return static_cast<std::size_t>(std::ceil(tensor.bytes.value()));
}

PartId OpRunner::part_of(TensorRef ref, const Call& call) const {
  return of_embedding_.contains(ref.tensor) ? kEmbeddingPart : call.layer + ref.layer_offset;
}

bool OpRunner::reads_gathered(const Op& op) const {
  return !op.reads.empty() &&
         program_.tensors[op.reads.back().tensor].category == MemoryCategory::GatheredParameters;
}

bool OpRunner::writes_gradient(const Op& op) const {
  return !op.writes.empty() &&
         program_.tensors[op.writes.back().tensor].category == MemoryCategory::Gradients;
}

void* OpRunner::applied(const BoundOp& bound, std::size_t unit, std::size_t element) const {
  if (!parameters_.shards().holds_shards_alone) return parameters_.weights(unit, element);
  if (!reads_gathered(*bound.op)) return nullptr;
  const std::size_t place = parameters_.layout().units[unit].offset_in_part + element;
  return element_at(bound.reads.back(), place, kernels_.element());
}

void* OpRunner::gradient(const BoundOp& bound, std::size_t unit, std::size_t element) const {
  if (!parameters_.shards().holds_shards_alone) return parameters_.gradients(unit, element);
  for (const NormGradient& norm : unsharded_norms_) {
    if (norm.unit == unit && norm.offset == element) return norm_sum(norm);
  }
  if (!writes_gradient(*bound.op)) return nullptr;
  const std::size_t place = parameters_.layout().units[unit].offset_in_part + element;
  return element_at(bound.writes.back(), place, kernels_.state_element());
}

OpRunner::Weights OpRunner::weights_of(const BoundOp& bound, std::size_t index) const {
  const ParameterSpan& place =
      parameters_.layout().find(bound.op->parameters.at(index), bound.call->layer);
  Weights weights;
  weights.weight = applied(bound, place.unit, place.weight);
  weights.weight_gradient = gradient(bound, place.unit, place.weight);
  if (!place.bias) return weights;
  weights.bias_gradient = gradient(bound, place.unit, *place.bias);
  // Only one of the ranks whose outputs are summed adds a bias that all of them hold.
  const bool adds = !place.bias_of_sum || place_[Axis::Tensor] == 0;
  if (adds) weights.bias = applied(bound, place.unit, *place.bias);
  return weights;
}

void OpRunner::gemm(const BoundOp& bound) {
  if (is_of_experts(*bound.op)) return expert_product(bound);
  const auto& work = std::get<GemmWork>(bound.op->work);
  const Weights weights = weights_of(bound, 0);
  switch (bound.op->phase) {
    case Phase::BackwardInput: {
      const std::vector<TensorRef>& reads = bound.op->reads;
      const bool adds = reads.size() > 1 && reads[1] == bound.op->writes.front();
      void* product = adds ? product_.get() : bound.write(0);
      kernels_.linear_input_gradient({work.m, work.n, work.k, output_width(reads.front(), work.m)},
                                     bound.read(0), weights.weight, product, bound.queue);
      if (adds) kernels_.add(work.m * work.n, product, bound.read(1), bound.write(0), bound.queue);
      return;
    }
    case Phase::BackwardWeight:
      return kernels_.linear_weight_gradient(
          {work.k, work.n, work.m, output_width(bound.op->reads.front(), work.k)}, bound.read(0),
          bound.read(1), weights.weight_gradient, weights.bias_gradient, bound.queue);
    default:
      return kernels_.linear(
          {work.m, work.k, work.n, output_width(bound.op->writes.front(), work.m)}, bound.read(0),
          weights.weight, weights.bias, bound.write(0), bound.queue);
  }
}

void OpRunner::norm(const BoundOp& bound) {
  const bool of_queries_and_keys = bound.op->parameters.size() == 2;
  if (of_queries_and_keys) return head_norms(bound);
  if (bound.op->parameters.front().ends_with("_a_norm")) return bottleneck_norm(bound);
  const Weights weights = weights_of(bound, 0);
  const NormShape shape{model_.norm, shape_.residual_tokens, shape_.hidden, model_.norm_epsilon};
  if (!is_backward(bound.op->phase)) {
    kernels_.norm(shape, bound.read(0), weights.weight, weights.bias, bound.write(0), bound.queue);
    return;
  }
  const std::size_t operands = bound.reads.size() - (reads_gathered(*bound.op) ? 1 : 0);
  const bool has_residual = operands == 3;
  kernels_.norm_backward(shape, bound.read(0), has_residual ? bound.read(1) : nullptr,
                         bound.read(has_residual ? 2 : 1), weights.weight, bound.write(0),
                         weights.weight_gradient, weights.bias_gradient, bound.queue);
}

void OpRunner::head_norms(const BoundOp& bound) {
  HeadNormShape shape;
  shape.rows = shape_.tokens;
  shape.head_dim = shape_.head_dim;
  shape.row_width = query_width() + key_value_width();
  shape.before_width = (shape_.heads + shape_.kv_heads) * shape_.head_dim;
  shape.epsilon = model_.norm_epsilon;
  std::int64_t first = 0;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    shape.heads = i == 0 ? shape_.heads : shape_.kv_heads;
    const Weights weights = weights_of(bound, i);
    if (is_backward(bound.op->phase)) {
      kernels_.head_norm_backward(shape, at(bound.read(1), first), weights.weight,
                                  at(bound.write(0), first), weights.weight_gradient, bound.queue);
    } else {
      kernels_.head_norm(shape, weights.weight, at(bound.write(0), first),
                         at(bound.write(1), first), bound.queue);
    }
    first += shape.heads * shape.head_dim;
  }
}

RopeShape OpRunner::rope_shape() const {
  RopeShape shape;
  shape.rows = shape_.tokens;
  shape.heads = shape_.heads + shape_.kv_heads;
  shape.head_dim = shape_.head_dim;
  shape.row_width = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
  shape.rotated =
      static_cast<std::int64_t>(model_.rotary_share * static_cast<double>(shape_.head_dim));
  shape.seq_len = shape_.sequence_tokens;
  shape.part = sequence_part(program_.plan, place_[Axis::Context]);
  shape.theta = model_.rope_theta;
  shape.scaling = model_.rope_scaling;
  return shape;
}

void OpRunner::rope(const BoundOp& bound) {
  if (is_latent()) return latent_rope(bound);
  kernels_.rope(rope_shape(), is_backward(bound.op->phase), bound.write(0), bound.queue);
}

void OpRunner::activation(const BoundOp& bound) {
  if (holds_rows(bound.op->writes.front())) return expert_activation(bound);
  const bool backward = is_backward(bound.op->phase);
  if (bound.op->reads.size() != (backward ? 2U : 1U)) return shared_gate(bound);
  // Shared experts have a width of their own.
  const std::size_t elements = elements_of(backward ? bound.op->reads[1] : bound.op->writes[0]);
  const ActivationShape shape{model_.mlp.activation, model_.mlp.gated, shape_.tokens,
                              static_cast<std::int64_t>(elements) / shape_.tokens};
  if (backward) {
    kernels_.activation_backward(shape, bound.read(0), bound.read(1), bound.write(0), bound.queue);
  } else {
    kernels_.activation(shape, bound.read(0), bound.write(0), bound.queue);
  }
}

void OpRunner::attention(const BoundOp& bound) {
  const auto& work = std::get<AttentionWork>(bound.op->work);
  if (program_.plan.cp > 1) return context_attention(bound, work);
  if (work.backward) {
    kernels_.attention_backward(work, bound.read(0), bound.read(1), bound.read(2), bound.read(3),
                                bound.write(0), bound.queue);
  } else {
    kernels_.attention(work, bound.read(0), bound.write(0), bound.write(1), bound.queue);
  }
}

std::span<const std::int32_t> OpRunner::part(const std::int32_t* all, const BoundOp& bound) const {
  const auto each = static_cast<std::size_t>(shape_.tokens);
  return {all + static_cast<std::size_t>(bound.call->microbatch) * each, each};
}

VocabularyShard OpRunner::vocabulary() const {
  VocabularyShard shard;
  shard.rows = shape_.vocab;
  shard.first = std::min(place_[Axis::Tensor] * shape_.vocab, model_.vocab);
  shard.count = std::min(shape_.vocab, model_.vocab - shard.first);
  return shard;
}

void OpRunner::embedding(const BoundOp& bound, const StepState& state) {
  const EmbeddingShape shape{vocabulary(), shape_.hidden, shape_.sequence_tokens,
                             sequence_part(program_.plan, place_[Axis::Context])};
  const Weights table = weights_of(bound, 0);
  const bool has_positions = bound.op->parameters.size() > 1;
  const Weights positions = has_positions ? weights_of(bound, 1) : Weights{};
  const auto tokens = part(state.tokens, bound);
  if (is_backward(bound.op->phase)) {
    kernels_.embedding_backward(shape, tokens, bound.read(0), table.weight_gradient,
                                positions.weight_gradient, bound.queue);
    return;
  }
  // The ranks' outputs are summed, so only one of them adds the positions.
  kernels_.embedding(shape, tokens, table.weight,
                     place_[Axis::Tensor] == 0 ? positions.weight : nullptr, bound.write(0),
                     bound.queue);
}

// Replicas that make local steps take the mean over their own part of the batch.
double OpRunner::tokens_of_gradient() const {
  const Plan& plan = program_.plan;
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  if (!plan.replicas.local()) return tokens;
  return tokens / static_cast<double>(group_size(replica_group(plan, false), plan));
}

void OpRunner::loss(const BoundOp& bound, StepState& state) {
  const LossShape shape{vocabulary(), shape_.tokens};
  const auto targets = part(state.targets, bound);
  if (is_backward(bound.op->phase)) {
    const double tokens = tokens_of_gradient();
    kernels_.loss_backward(shape, targets, static_cast<float>(1.0 / tokens), bound.read(0),
                           bound.write(0), bound.queue);
  } else if (bound.reads.size() == 1) {
    kernels_.loss_statistics(shape, targets, bound.read(0), bound.write(0), bound.queue);
  } else {
    kernels_.loss_probabilities(shape, bound.read(0), bound.read(1), bound.write(0), state.loss,
                                bound.queue);
  }
}

// On CPUs a copy in memory stands for the one on the host. All of these ops run on one queue.
void OpRunner::offload(const BoundOp& bound) {
  const Op& op = *bound.op;
  const bool stores = op.writes.empty();
  const std::vector<TensorRef>& tensors = stores ? op.reads : op.writes;
  const auto copies = offloaded_.try_emplace({bound.call->layer, bound.call->microbatch}).first;
  copies->second.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<std::byte>& copy = copies->second[i];
    if (stores) {
      copy.resize(bytes_of_tensor(tensors[i], *bound.call));
      kernels_.copy(copy.data(), bound.read(i), copy.size(), bound.queue);
    } else {
      kernels_.copy(bound.write(i), copy.data(), copy.size(), bound.queue);
    }
  }
  if (!stores) offloaded_.erase(copies);
}

}  // namespace shardwright::executor
