// Mixture of experts with expert parallelism: router, permutation, all-to-all, grouped GEMMs, and
// all of it back.
//
// A rank sends each of its tokens to top_k experts. With experts split over `expert_tp` ranks as
// well, these gather each other's tokens before the GEMMs and reduce-scatter the results
// afterwards. Sizes are those of balanced routing, where experts have a capacity within it; the
// load of an op says how much more the rank has to do that a learned router loads the most.
#include <algorithm>
#include <cmath>

#include "core/lowering/expert_load.hpp"
#include "core/lowering/layer_writer.hpp"

namespace shardwright {

LayerWriter::ExpertShape LayerWriter::expert_shape() {
  const MoeSpec& moe = *model_.moe;
  ExpertShape expert;
  expert.local_experts = std::max<std::int64_t>(1, moe.experts / plan_.ep);
  expert.routed_rows = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(shape_.residual_tokens * moe.top_k) * expert_rows_ratio(moe)));
  expert.rows = expert.routed_rows * plan_.expert_tp;
  expert.width = moe.expert_ffn / plan_.expert_tp;
  expert.up_width = expert.width * (model_.mlp.gated ? 2 : 1);
  const auto hidden = static_cast<double>(shape_.hidden);
  const auto rows = static_cast<double>(expert.rows);
  expert.load = expert_load(model_, plan_);
  expert.moves = plan_.ep > 1 || plan_.expert_tp > 1;
  expert.permuted = temporary("experts.permuted", static_cast<double>(expert.routed_rows) * hidden);
  expert.received = gemm_input("experts.in", rows * hidden);
  expert.up = activation("experts.up.out", rows * static_cast<double>(expert.up_width));
  expert.activated = gemm_input("experts.activation.out", rows * static_cast<double>(expert.width));
  return expert;
}

// Behind op `first`, all works on the tokens that the experts of a rank got, each expert's by a
// kernel of its own where the stack does not fuse them.
void LayerWriter::on_expert_tokens(std::size_t first, const ExpertShape& expert) {
  const auto groups = static_cast<std::int32_t>(expert.local_experts);
  for (std::size_t i = first; i < ops_.size(); ++i) {
    Op& op = ops_[i];
    op.load = expert.load;
    const bool each = op.kind == OpKind::GroupedGemm || op.kind == OpKind::Cast;
    if (each && !stack_.fused_grouped_gemm) op.further_launches = groups - 1;
  }
}

void LayerWriter::expert_gemm(const std::string& name, Phase phase, const ExpertShape& expert,
                              std::int64_t n, std::int64_t k, TensorRef in, TensorRef out) {
  gemm(name, phase, {.m = expert.rows, .n = n, .k = k, .groups = expert.local_experts}, {in},
       {out});
  read_parameters(ops_.back());
}

void LayerWriter::expert_weight_gradient(const std::string& name, const ExpertShape& expert,
                                         std::int64_t n, std::int64_t k, TensorRef in,
                                         TensorRef out_gradient) {
  // Of the rows, which are the inner dimension here, each expert has its own share.
  std::vector<TensorRef> writes;
  if (gathers_parameters_) writes.push_back(parameter_gradient());
  gemm(name, Phase::BackwardWeight,
       {.m = n,
        .n = k,
        .k = expert.rows,
        .groups = expert.local_experts,
        .groups_share_k = true,
        .accumulate_fp32 = !gathers_parameters_},
       {in, out_gradient}, writes);
}

void LayerWriter::exchange_tokens(const std::string& name, Phase phase, const ExpertShape& expert,
                                  bool to_experts, TensorRef in, TensorRef out) {
  const double bytes = static_cast<double>(expert.routed_rows * shape_.hidden) * shape_.element;
  const auto tensor_bytes = bytes * static_cast<double>(plan_.expert_tp);
  const TensorRef between =
      plan_.expert_tp > 1 ? temporary(name + ".between", bytes / shape_.element) : out;
  const bool exchanges = plan_.ep > 1;
  const std::size_t first = ops_.size();
  if (to_experts) {
    if (exchanges) collective(name, OpKind::AllToAll, Group::Expert, phase, bytes, {in}, {between});
    if (plan_.expert_tp > 1) {
      collective(name + ".all_gather", OpKind::AllGather, Group::ExpertTensor, phase, tensor_bytes,
                 {exchanges ? between : in}, {out});
    }
  } else {
    if (plan_.expert_tp > 1) {
      collective(name + ".reduce_scatter", OpKind::ReduceScatter, Group::ExpertTensor, phase,
                 tensor_bytes, {in}, {exchanges ? between : out});
    }
    if (exchanges) {
      collective(name, OpKind::AllToAll, Group::Expert, phase, bytes,
                 {plan_.expert_tp > 1 ? between : in}, {out});
    }
  }
  on_expert_tokens(first, expert);
}

TensorRef LayerWriter::router_scores() {
  return bytes_tensor("router.scores", MemoryCategory::Activations,
                      static_cast<double>(shape_.residual_tokens * model_.moe->experts) * 4.0);
}

void LayerWriter::route_forward(TensorRef in) {
  const MoeSpec& moe = *model_.moe;
  const auto tokens = static_cast<double>(shape_.residual_tokens);
  const TensorRef scores = router_scores();
  gemm("router", phase_, {.m = shape_.residual_tokens, .n = moe.experts, .k = shape_.hidden}, {in},
       {scores});
  read_parameters(ops_.back());
  memory_op("router.top_k", OpKind::Router, phase_, tokens * static_cast<double>(moe.experts) * 2.0,
            tokens * static_cast<double>(moe.top_k) * 4.0, {scores}, {scores}, 4);
  // How many tokens go where is read back by the host, which a graph has no room for.
  ops_.back().holds_host = stack_.reads_token_counts && !stack_.cuda_graphs;
  ops_.back().further_launches = static_cast<std::int32_t>(stack_.router_launches);
}

void LayerWriter::route_backward(TensorRef in, TensorRef in_gradient) {
  const MoeSpec& moe = *model_.moe;
  const auto scores = static_cast<double>(shape_.residual_tokens * moe.experts);
  const TensorRef score_gradient =
      bytes_tensor("router.gradient", MemoryCategory::Temporaries, scores * 4.0);
  memory_op("router.top_k.backward", OpKind::Router, Phase::BackwardInput, scores * 2.0,
            scores * 2.0, {router_scores()}, {score_gradient}, 2);
  ops_.back().further_launches = static_cast<std::int32_t>(stack_.router_launches);
  gemm("router.dgrad", Phase::BackwardInput,
       {.m = shape_.residual_tokens, .n = shape_.hidden, .k = moe.experts},
       {score_gradient, in_gradient}, {in_gradient});
  read_parameters(ops_.back());
  weight_gradient_of_replicated("router.wgrad", moe.experts, score_gradient, in);
}

void LayerWriter::weight_gradient_of_replicated(const std::string& name, std::int64_t outputs,
                                                TensorRef output_gradient, TensorRef input) {
  std::vector<TensorRef> writes;
  if (gathers_parameters_) writes.push_back(parameter_gradient());
  gemm(name, Phase::BackwardWeight,
       {.m = outputs,
        .n = shape_.hidden,
        .k = shape_.residual_tokens,
        .accumulate_fp32 = !gathers_parameters_},
       {output_gradient, input}, writes);
}

// The exchange leaves a rank's tokens in the order of their senders; a kernel of its own brings
// those of each expert together, or takes them apart again (sort_chunks_by_idxs in Megatron Core's
// moe/token_dispatcher.py). Kernels that know of nodes put them where they belong.
void LayerWriter::sort_received(const std::string& name, Phase phase, const ExpertShape& expert,
                                TensorRef rows) {
  const bool sorts = plan_.ep > 1 && expert.local_experts > 1;
  if (!sorts || stack_.sends_tokens_once_per_node) return;
  const std::size_t first = ops_.size();
  const auto elements = static_cast<double>(expert.rows * shape_.hidden);
  memory_op(name, OpKind::Permute, phase, elements, elements, {rows}, {rows});
  on_expert_tokens(first, expert);
}

// Both halves of what the activation reads are limited and put together again by kernels of their
// own (weighted_bias_quick_geglu_impl in Megatron Core's fusions/fused_bias_geglu.py).
void LayerWriter::limit_activation(Phase phase, const ExpertShape& expert, TensorRef up) {
  if (stack_.fused_expert_bias || !model_.mlp.clamped) return;
  const auto elements = static_cast<double>(expert.rows * expert.up_width);
  const double read = phase == Phase::BackwardInput ? 3.0 : 2.0;
  memory_op("experts.limit", OpKind::Activation, phase, read * elements, 2.0 * elements, {up},
            {up});
  ops_.back().further_launches = 2;
}

// The products of bias and probability, their sum with the rows of each expert, and all rows put
// together again, forward and back (_apply_bias in Megatron Core's moe/experts.py); the gradient of
// the first bias is a sum over the rows.
void LayerWriter::add_expert_bias(Phase phase, const ExpertShape& expert, TensorRef rows) {
  if (stack_.fused_expert_bias || !model_.mlp.bias) return;
  const bool backward = phase == Phase::BackwardInput;
  const auto elements = static_cast<double>(expert.rows * shape_.hidden);
  const auto up = static_cast<double>(expert.rows * expert.up_width);
  memory_op("experts.bias", OpKind::Activation, phase,
            backward ? 5.0 * elements + up : 3.0 * elements, 3.0 * elements, {rows}, {rows});
  const std::int64_t kernels_per_expert = backward ? 5 : 2;
  ops_.back().further_launches =
      static_cast<std::int32_t>(kernels_per_expert * expert.local_experts);
}

void LayerWriter::experts_forward(const ExpertShape& expert, TensorRef out) {
  const std::size_t first = ops_.size();
  const auto rows = static_cast<double>(expert.rows);
  cast_operand("experts.up.input", phase_, rows * static_cast<double>(shape_.hidden),
               expert.received);
  expert_gemm("experts.up", phase_, expert, expert.up_width, shape_.hidden, expert.received,
              expert.up);
  limit_activation(phase_, expert, expert.up);
  activation_forward("experts.activation", static_cast<double>(expert.rows), expert.width,
                     expert.up, expert.activated);
  cast_operand("experts.down.input", phase_, rows * static_cast<double>(expert.width),
               expert.activated);
  expert_gemm("experts.down", phase_, expert, shape_.hidden, expert.width, expert.activated, out);
  add_expert_bias(phase_, expert, out);
  on_expert_tokens(first, expert);
}

void LayerWriter::experts_backward(const ExpertShape& expert, TensorRef out_gradient,
                                   TensorRef in_gradient) {
  const auto rows = static_cast<double>(expert.rows);
  const TensorRef activated_gradient =
      temporary("experts.activation.gradient", rows * static_cast<double>(expert.width));
  const TensorRef up_gradient =
      temporary("experts.up.gradient", rows * static_cast<double>(expert.up_width));
  const std::size_t first = ops_.size();
  add_expert_bias(Phase::BackwardInput, expert, out_gradient);
  cast_operand("experts.down.gradient", Phase::BackwardInput,
               rows * static_cast<double>(shape_.hidden), out_gradient);
  expert_gemm("experts.down.dgrad", Phase::BackwardInput, expert, expert.width, shape_.hidden,
              out_gradient, activated_gradient);
  expert_weight_gradient("experts.down.wgrad", expert, shape_.hidden, expert.width,
                         expert.activated, out_gradient);
  activation_backward("experts.activation", rows, expert.width, expert.up, activated_gradient,
                      up_gradient);
  limit_activation(Phase::BackwardInput, expert, up_gradient);
  cast_operand("experts.up.gradient", Phase::BackwardInput,
               rows * static_cast<double>(expert.up_width), up_gradient);
  expert_gemm("experts.up.dgrad", Phase::BackwardInput, expert, shape_.hidden, expert.up_width,
              up_gradient, in_gradient);
  expert_weight_gradient("experts.up.wgrad", expert, expert.up_width, shape_.hidden,
                         expert.received, up_gradient);
  on_expert_tokens(first, expert);
}

// Shared experts fill the compute stream while tokens travel, or run before they leave.
void LayerWriter::sparse_forward(TensorRef in, TensorRef out) {
  const ExpertShape expert = expert_shape();
  const auto hidden = static_cast<double>(shape_.hidden);
  const double routed = static_cast<double>(expert.routed_rows) * hidden;
  const bool shares = has_shared_experts(model_), beside = overlaps_exchange();
  if (shares && !beside) {
    shared_up_forward(in);
    shared_down_forward();
  }
  route_forward(in);
  memory_op("experts.permute", OpKind::Permute, phase_, routed, routed, {in, router_scores()},
            {expert.moves ? expert.permuted : expert.received});
  if (expert.moves)
    exchange_tokens("experts.dispatch", phase_, expert, true, expert.permuted, expert.received);
  if (beside) shared_up_forward(in);
  sort_received("experts.dispatch.sort", phase_, expert, expert.received);
  const TensorRef computed = temporary("experts.out", static_cast<double>(expert.rows) * hidden);
  experts_forward(expert, computed);
  sort_received("experts.combine.sort", phase_, expert, computed);
  const TensorRef returned = expert.moves ? temporary("experts.returned", routed) : computed;
  if (expert.moves) exchange_tokens("experts.combine", phase_, expert, false, computed, returned);
  if (beside) shared_down_forward();
  std::vector<TensorRef> parts = {returned, router_scores()};
  if (shares) parts.push_back(shared_output());
  memory_op("experts.unpermute", OpKind::Permute, phase_, routed,
            static_cast<double>(shape_.residual_tokens) * hidden, parts, {out});
}

void LayerWriter::sparse_backward(TensorRef in, TensorRef out_gradient, TensorRef in_gradient) {
  const ExpertShape expert = expert_shape();
  const auto hidden = static_cast<double>(shape_.hidden);
  const double routed = static_cast<double>(expert.routed_rows) * hidden,
               rows = static_cast<double>(expert.rows) * hidden,
               elements = static_cast<double>(shape_.residual_tokens) * hidden;
  const bool shares = has_shared_experts(model_), beside = overlaps_exchange();
  const TensorRef computed_gradient = temporary("experts.out.gradient", rows);
  const TensorRef returned_gradient =
      expert.moves ? temporary("experts.returned.gradient", routed) : computed_gradient;
  const TensorRef received_gradient = temporary("experts.in.gradient", rows);
  const TensorRef permuted_gradient =
      expert.moves ? temporary("experts.permuted.gradient", routed) : received_gradient;
  const Phase phase = Phase::BackwardInput;
  if (shares && !beside) {
    shared_down_backward(out_gradient);
    shared_up_backward(in);
  }
  memory_op("experts.unpermute.backward", OpKind::Permute, phase, elements, routed,
            {out_gradient, router_scores()}, {returned_gradient});
  if (expert.moves) {
    exchange_tokens("experts.combine.gradient", phase, expert, true, returned_gradient,
                    computed_gradient);
  }
  if (beside) shared_down_backward(out_gradient);
  sort_received("experts.combine.gradient.sort", phase, expert, computed_gradient);
  experts_backward(expert, computed_gradient, received_gradient);
  sort_received("experts.dispatch.gradient.sort", phase, expert, received_gradient);
  if (expert.moves) {
    exchange_tokens("experts.dispatch.gradient", phase, expert, false, received_gradient,
                    permuted_gradient);
  }
  if (beside) shared_up_backward(in);
  std::vector<TensorRef> parts = {permuted_gradient, router_scores()};
  if (shares) parts.push_back(shared_input_gradient());
  memory_op("experts.permute.backward", OpKind::Permute, phase, routed, elements, parts,
            {in_gradient});
  route_backward(in, in_gradient);
}

}  // namespace shardwright
