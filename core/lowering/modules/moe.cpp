// Mixture of experts with expert parallelism: router, permutation, dispatch to the experts' ranks,
// grouped GEMMs, and all of it back.
//
// A rank sends each of its tokens to top_k experts. If experts are split over `expert_tp` ranks as
// well, these gather each other's tokens before the GEMMs and reduce-scatter the results
// afterwards. Sizes are those of balanced routing, limited by the capacity of experts if they have
// one, in proportion to the experts that a rank holds. The load of an op says how much more work
// the rank has that a learned router loads the most.
#include <algorithm>
#include <cmath>
#include <variant>

#include "core/lowering/modules/expert_load.hpp"
#include "core/lowering/modules/modules.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

struct Experts {
  // Copies of tokens that the rank's experts work on, and that the rank sends out, with padding.
  std::int64_t rows = 0, routed_rows = 0;
  std::int64_t width = 0, up_width = 0;
  // Experts of the rank.
  std::int64_t count = 0;
  // Elements of hidden states: of the tokens that are sent out, of those that are received, and of
  // those that the busiest rank of a group sends or receives, which sets the pace of exchanges.
  double routed = 0.0, received_elements = 0.0, exchanged = 0.0;
  // True if tokens travel to other ranks.
  bool moves = false;
  // See Op::load.
  double load = 1.0;
  TensorRef permuted, received, up, activated;
};

Experts local_experts(const BlockWriter& w) {
  const MoeSpec& moe = *w.model.moe;
  Experts e;
  e.count = experts_of_rank(w.plan, moe.experts);
  e.routed_rows = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(w.shape.residual_tokens * moe.top_k) * expert_rows_ratio(moe)));
  const auto rows_of = [&](std::int64_t experts) {
    const std::int64_t rows = e.routed_rows * w.plan.ep * experts;
    return std::max<std::int64_t>(1, (rows + moe.experts / 2) / moe.experts);
  };
  e.rows = rows_of(e.count) * w.plan.expert_tp;
  e.width = moe.expert_ffn / w.plan.expert_tp;
  e.up_width = e.width * (w.model.mlp.gated ? 2 : 1);
  e.routed = static_cast<double>(e.routed_rows * w.shape.hidden);
  e.received_elements = static_cast<double>(e.rows * w.shape.hidden);
  const std::int64_t most_rows = rows_of(most_experts_of_rank(w.plan, moe.experts));
  e.exchanged = static_cast<double>(std::max(e.routed_rows, most_rows) * w.shape.hidden);
  e.load = expert_load(w.model, w.plan);
  e.moves = w.plan.ep > 1 || w.plan.expert_tp > 1;
  e.permuted = w.temporary("experts.permuted", e.routed);
  e.received = w.gemm_input("experts.in", e.received_elements);
  e.up = w.expert_activation("experts.up.out", static_cast<double>(e.rows * e.up_width));
  e.activated = w.gemm_input("experts.activation.out", static_cast<double>(e.rows * e.width));
  return e;
}

double elements_within(const Experts& e) {
  return static_cast<double>(e.rows * e.width);
}

// True if the experts' GEMMs compute the activation function and cast its results. Adapters add to
// its input.
bool fuses_activation(const BlockWriter& w) {
  return w.stack.fusion.grouped_mlp && casts_operands(w.precision) && !w.freezes();
}

// True if each expert has casts of its own.
bool scales_by_expert(const BlockWriter& w) {
  return w.precision == Precision::Fp8 && w.stack.fusion.fp8_recipe == Fp8Recipe::Mxfp8 &&
         !w.stack.fusion.grouped_gemm;
}

// Marks the ops from number `first` on as work on the tokens that the rank's experts received. If
// the stack does not fuse them, each expert has a kernel of its own.
void mark_expert_ops(const BlockWriter& w, const Experts& e, std::size_t first) {
  for (std::size_t i = first; i < w.ops.size(); ++i) {
    Op& op = w.ops[i];
    op.load = e.load;
    const bool per_expert =
        op.kind == OpKind::GroupedGemm || (op.kind == OpKind::Cast && !scales_by_expert(w));
    if (per_expert && !w.stack.fusion.grouped_gemm)
      op.further_launches = static_cast<std::int32_t>(e.count - 1);
  }
}

TensorRef router_scores(const BlockWriter& w) {
  const std::int64_t scores = w.shape.residual_tokens * w.model.moe->experts;
  return w.tensor("router.scores", MemoryCategory::Activations, static_cast<double>(scores) * 4.0);
}

void write_router_forward(const BlockWriter& w, TensorRef in) {
  const MoeSpec& moe = *w.model.moe;
  const std::int64_t tokens = w.shape.residual_tokens;
  const TensorRef scores = router_scores(w);
  w.apply(w.gemm("router", {.m = tokens, .n = moe.experts, .k = w.shape.hidden}, {in}, {scores}),
          w.of_layer({"moe.router"}));
  Op& top_k =
      w.memory_op("router.top_k", OpKind::Router, static_cast<double>(tokens * moe.experts) * 2.0,
                  static_cast<double>(tokens * moe.top_k) * 4.0, {scores}, {scores}, 4);
  // The host reads back how many tokens go to each expert. A CUDA graph does not allow that, and
  // experts that always work on full capacity do not need it.
  top_k.holds_host =
      w.stack.host.reads_token_counts && !w.stack.host.cuda_graphs && !moe.pads_to_capacity;
  top_k.further_launches = static_cast<std::int32_t>(w.stack.host.router_launches);
}

// Adds the router's part to `in_gradient`.
void write_router_backward(const BlockWriter& w, TensorRef in, TensorRef in_gradient) {
  const std::int64_t tokens = w.shape.residual_tokens, experts = w.model.moe->experts;
  const std::int64_t hidden = w.shape.hidden;
  const auto scores = static_cast<double>(tokens * experts);
  const TensorRef score_gradient =
      w.tensor("router.gradient", MemoryCategory::Temporaries, scores * 4.0);
  w.memory_op("router.top_k.backward", OpKind::Router, scores * 2.0, scores * 2.0,
              {router_scores(w)}, {score_gradient}, 2)
      .further_launches = static_cast<std::int32_t>(w.stack.host.router_launches);
  w.apply(w.gemm("router.dgrad", {.m = tokens, .n = hidden, .k = experts},
                 {score_gradient, in_gradient}, {in_gradient}),
          w.of_layer({"moe.router"}));
  if (w.freezes()) return;
  w.weight_gradient("router.wgrad", {.m = experts, .n = hidden, .k = tokens}, {score_gradient, in},
                    w.of_layer({"moe.router"}));
}

// Cuts the cast that was written last into one for each expert where each has scales of its own.
// Those of MXFP8 are of each expert's own rows: as many kernels as experts, and for each product
// one more for either operand, which brings its scales into the order that the matrix units read
// them in (Transformer Engine's split_quantize and swizzle_scaling_factors).
void cut_cast_by_expert(const BlockWriter& w, const Experts& e) {
  if (scales_by_expert(w)) std::get<MemoryWork>(w.ops.back().work).kernels = e.count;
}

void write_expert_cast(const BlockWriter& w, const Experts& e, const std::string& name,
                       double elements, TensorRef tensor) {
  write_cast(w, name, elements, tensor);
  cut_cast_by_expert(w, e);
}

// See write_gradient_cast.
GradientOperands write_expert_gradient_cast(const BlockWriter& w, const Experts& e,
                                            const std::string& name, double elements,
                                            TensorRef gradient) {
  const GradientOperands operands = write_gradient_cast(w, name, elements, gradient);
  cut_cast_by_expert(w, e);
  return operands;
}

void write_scale_order(const BlockWriter& w, const Experts& e, const std::string& name,
                       double elements, TensorRef tensor) {
  if (!scales_by_expert(w)) return;
  const double scales = elements / 32.0 / w.shape.element;
  w.memory_op(name + ".scales", OpKind::Cast, 2.0 * scales, 2.0 * scales, {tensor}, {tensor},
              2 * e.count);
}

// Sends tokens to the ranks of their experts, or back.
void write_exchange(const BlockWriter& w, const Experts& e, const std::string& name,
                    bool to_experts, TensorRef in, TensorRef out) {
  const bool exchanges = w.plan.ep > 1, splits = w.plan.expert_tp > 1;
  const TensorRef between =
      splits ? w.temporary(name + ".between",
                           e.received_elements / static_cast<double>(w.plan.expert_tp))
             : out;
  const std::size_t first = w.ops.size();
  const auto all_to_all = [&](TensorRef from, TensorRef to) {
    if (exchanges) w.collective(name, OpKind::AllToAll, Group::Expert, e.exchanged, {from}, {to});
  };
  if (to_experts) {
    all_to_all(in, between);
    if (splits) {
      w.collective(name + ".all_gather", OpKind::AllGather, Group::ExpertTensor,
                   e.received_elements, {exchanges ? between : in}, {out});
    }
  } else {
    if (splits) {
      w.collective(name + ".reduce_scatter", OpKind::ReduceScatter, Group::ExpertTensor,
                   e.received_elements, {in}, {exchanges ? between : out});
    }
    all_to_all(splits ? between : in, out);
  }
  mark_expert_ops(w, e, first);
}

// The exchange leaves a rank's tokens in the order of their senders. One kernel brings those of
// each expert together, or takes them apart again (sort_chunks_by_idxs in Megatron Core's
// moe/token_dispatcher.py). Kernels that send tokens once per node put them in place.
void write_sort(const BlockWriter& w, const Experts& e, const std::string& name, TensorRef rows) {
  const bool sorts = w.plan.ep > 1 && e.count > 1;
  if (!sorts || w.stack.communication.sends_tokens_once_per_node) return;
  w.memory_op(name, OpKind::Permute, e.received_elements, e.received_elements, {rows}, {rows})
      .load = e.load;
}

// Limits both halves of what the activation function reads and puts them together again, by kernels
// of their own (weighted_bias_quick_geglu_impl in Megatron Core's fusions/fused_bias_geglu.py).
void write_clamp(const BlockWriter& w, const Experts& e, TensorRef up) {
  if (w.stack.fusion.expert_bias || !w.model.mlp.clamped) return;
  const auto elements = static_cast<double>(e.rows * e.up_width);
  const double read = w.phase == Phase::BackwardInput ? 3.0 : 2.0;
  w.memory_op("experts.limit", OpKind::Activation, read * elements, 2.0 * elements, {up}, {up})
      .further_launches = 2;
}

// Multiplies bias and probability, adds that to the rows of each expert, and puts all rows together
// again, forward and backward (_apply_bias in Megatron Core's moe/experts.py). The gradient of the
// first bias is a sum over the rows. Kernels that send tokens once per node hand the probabilities
// over in fp32 (moe/token_dispatcher.py), and so are products and sums then, until they are cast.
void write_bias(const BlockWriter& w, const Experts& e, TensorRef rows) {
  if (w.stack.fusion.expert_bias || !w.model.mlp.bias) return;
  const bool backward = w.phase == Phase::BackwardInput;
  const bool fp32 = w.stack.communication.sends_tokens_once_per_node;
  // In elements of 16 bits.
  double read = backward ? 5.0 : 3.0, written = 3.0;
  if (fp32) {
    read = backward ? 12.0 : 7.0;
    written = backward ? 8.0 : 7.0;
  }
  const double up = backward ? static_cast<double>(e.rows * e.up_width) : 0.0;
  w.memory_op("experts.bias", OpKind::Activation, read * e.received_elements + up,
              written * e.received_elements, {rows}, {rows})
      .further_launches = static_cast<std::int32_t>((backward ? 5 : 2) * e.count) + (fp32 ? 2 : 0);
}

// The experts' projections. Their outputs are those of the rows that the rank received.
Linear expert_up(const BlockWriter& w, const Experts& e) {
  return {"experts.up",
          LinearSplit::None,
          w.shape.hidden,
          e.up_width,
          e.received,
          e.up,
          up_parameters(w, "moe.experts"),
          up_widths(w, e.width)};
}
Linear expert_down(const BlockWriter& w, const Experts& e, TensorRef out) {
  return {"experts.down",
          LinearSplit::None,
          e.width,
          w.shape.hidden,
          e.activated,
          out,
          w.of_layer({"moe.experts.down_proj"})};
}

// One of the experts' GEMMs.
void write_expert_gemm(const BlockWriter& w, const Experts& e, const Linear& projection,
                       const std::string& name, std::int64_t n, std::int64_t k, TensorRef in,
                       TensorRef out) {
  write_scale_order(w, e, name, static_cast<double>(e.rows * k), in);
  write_linear_product(w, projection, name, {.m = e.rows, .n = n, .k = k, .groups = e.count}, {in},
                       out);
}

void write_expert_product(const BlockWriter& w, const Experts& e, const Linear& projection) {
  const bool adapted = has_adapters(w, projection.parameters);
  const TensorRef product = adapted ? w.temporary(projection.name + ".frozen.out",
                                                  static_cast<double>(e.rows * projection.out))
                                    : projection.output;
  write_expert_gemm(w, e, projection, projection.name, projection.out, projection.in,
                    projection.input, product);
  if (adapted)
    write_adapters_forward(w, {projection, e.rows, e.count}, projection.input, product,
                           projection.output);
}

// `operand` is the output gradient as the GEMM reads it.
void write_expert_input_gradient(const BlockWriter& w, const Experts& e, const Linear& projection,
                                 TensorRef out_gradient, TensorRef operand, TensorRef in_gradient) {
  write_expert_gemm(w, e, projection, projection.name + ".dgrad", projection.in, projection.out,
                    operand, in_gradient);
  if (has_adapters(w, projection.parameters))
    write_adapters_backward(w, {projection, e.rows, e.count}, out_gradient, in_gradient);
}

void write_expert_weight_gradient(const BlockWriter& w, const Experts& e, const Linear& projection,
                                  TensorRef out_gradient) {
  if (w.freezes())
    return write_adapter_gradients(w, {projection, e.rows, e.count}, projection.input);
  const std::string name = projection.name + ".wgrad";
  write_scale_order(w, e, name, static_cast<double>(e.rows * projection.in), projection.input);
  // The rows, which are the inner dimension here, are shared out among the experts.
  w.weight_gradient(name,
                    {.m = projection.out,
                     .n = projection.in,
                     .k = e.rows,
                     .groups = e.count,
                     .groups_share_k = true},
                    {out_gradient, projection.input}, projection.parameters);
}

// Goes from the first GEMM of the experts to the input of the second one.
void write_expert_activation(const BlockWriter& w, const Experts& e) {
  write_clamp(w, e, e.up);
  write_activation_forward(w, "experts.activation", elements_within(e), e.up, e.activated);
  write_expert_cast(w, e, "experts.down.input", elements_within(e), e.activated);
}

// Goes from the tokens that a rank received to the output of its experts.
void write_experts_forward(const BlockWriter& w, const Experts& e, TensorRef out) {
  const std::size_t first = w.ops.size();
  const bool fused = fuses_activation(w);
  write_expert_cast(w, e, "experts.up.input", e.received_elements, e.received);
  write_expert_product(w, e, expert_up(w, e));
  if (fused) {
    w.ops.back().writes.push_back(e.activated);
  } else {
    write_expert_activation(w, e);
  }
  write_expert_product(w, e, expert_down(w, e, out));
  write_bias(w, e, out);
  mark_expert_ops(w, e, first);
}

void write_experts_backward(const BlockWriter& w, const Experts& e, TensorRef out_gradient,
                            TensorRef in_gradient) {
  const std::size_t first = w.ops.size();
  const Linear up = expert_up(w, e), down = expert_down(w, e, {});
  const bool fused = fuses_activation(w);
  const double up_elements = static_cast<double>(e.rows * e.up_width);
  const TensorRef up_gradient = w.temporary("experts.up.gradient", up_elements);
  const TensorRef activated_gradient =
      fused ? up_gradient : w.temporary("experts.activation.gradient", elements_within(e));
  write_bias(w, e, out_gradient);
  const GradientOperands down_gradient =
      write_expert_gradient_cast(w, e, "experts.down.gradient", e.received_elements, out_gradient);
  write_expert_input_gradient(w, e, down, out_gradient, down_gradient.by_rows, activated_gradient);
  if (fused) w.ops.back().reads.push_back(e.up);
  write_expert_weight_gradient(w, e, down, down_gradient.by_columns);
  GradientOperands operands{up_gradient, up_gradient};
  if (!fused) {
    write_activation_backward(w, "experts.activation", elements_within(e), e.up, activated_gradient,
                              up_gradient);
    write_clamp(w, e, up_gradient);
    operands = write_expert_gradient_cast(w, e, "experts.up.gradient", up_elements, up_gradient);
  }
  write_expert_input_gradient(w, e, up, up_gradient, operands.by_rows, in_gradient);
  write_expert_weight_gradient(w, e, up, operands.by_columns);
  mark_expert_ops(w, e, first);
}

// Runs the activation function of routed experts again, if that is all of them that does.
void write_expert_activation_again(const BlockWriter& w, const Experts& e) {
  if (!w.reruns(RecomputeModule::MoeActivation) || w.reruns(RecomputeModule::Moe)) return;
  const std::size_t first = w.ops.size();
  write_expert_activation(w.again(), e);
  mark_expert_ops(w, e, first);
}

void write_shared_experts_again(const BlockWriter& w, TensorRef in, TensorRef out_gradient) {
  if (!w.reruns(RecomputeModule::SharedExperts) || w.reruns(RecomputeModule::Moe)) return;
  const std::size_t first = w.ops.size();
  write_shared_up_forward(w.again(), in);
  write_shared_down_forward(w.again(), in);
  w.start_at_gradient(first, out_gradient);
}

// If stack and plan overlap expert parallelism, the first half of the shared experts runs while
// tokens travel to the routed experts, and the second half while these come back, as in Megatron
// Core (megatron/core/transformer/moe/shared_experts.py). Otherwise both run before the tokens
// leave.
bool overlaps_exchange(const BlockWriter& w) {
  return has_shared_experts(w.model) && w.stack.overlap.expert_parallel &&
         w.plan.overlap.expert_parallel;
}

}  // namespace

void write_moe_forward(const BlockWriter& w, TensorRef in, TensorRef out) {
  const Experts e = local_experts(w);
  const bool overlaps = overlaps_exchange(w);
  const bool before = has_shared_experts(w.model) && !overlaps;
  std::vector<TensorRef> shared;
  if (before) {
    write_shared_up_forward(w, in);
    shared = {write_shared_down_forward(w, in)};
  }
  write_router_forward(w, in);
  w.memory_op("experts.permute", OpKind::Permute, e.routed, e.routed, {in, router_scores(w)},
              {e.moves ? e.permuted : e.received});
  if (e.moves) write_exchange(w, e, "experts.dispatch", true, e.permuted, e.received);
  if (overlaps) write_shared_up_forward(w, in);
  write_sort(w, e, "experts.dispatch.sort", e.received);
  const TensorRef computed = w.temporary("experts.out", e.received_elements);
  write_experts_forward(w, e, computed);
  write_sort(w, e, "experts.combine.sort", computed);
  const TensorRef returned = e.moves ? w.temporary("experts.returned", e.routed) : computed;
  if (e.moves) write_exchange(w, e, "experts.combine", false, computed, returned);
  if (overlaps) shared = {write_shared_down_forward(w, in)};
  std::vector<TensorRef> parts = {returned, router_scores(w)};
  parts.insert(parts.end(), shared.begin(), shared.end());
  w.memory_op("experts.unpermute", OpKind::Permute, e.routed, w.shape.residual_elements(), parts,
              {out});
}

void write_moe_backward(const BlockWriter& w, TensorRef in, TensorRef out_gradient,
                        TensorRef in_gradient) {
  const Experts e = local_experts(w);
  const bool overlaps = overlaps_exchange(w);
  const bool before = has_shared_experts(w.model) && !overlaps;
  const double elements = w.shape.residual_elements();
  const TensorRef computed = w.temporary("experts.out.gradient", e.received_elements);
  const TensorRef returned =
      e.moves ? w.temporary("experts.returned.gradient", e.routed) : computed;
  const TensorRef received = w.temporary("experts.in.gradient", e.received_elements);
  const TensorRef permuted =
      e.moves ? w.temporary("experts.permuted.gradient", e.routed) : received;
  std::vector<TensorRef> shared;
  if (has_shared_experts(w.model)) write_shared_experts_again(w, in, out_gradient);
  if (before) {
    write_shared_down_backward(w, in, out_gradient);
    shared = {write_shared_up_backward(w, in)};
  }
  w.memory_op("experts.unpermute.backward", OpKind::Permute, elements, e.routed,
              {out_gradient, router_scores(w)}, {returned});
  if (e.moves) write_exchange(w, e, "experts.combine.gradient", true, returned, computed);
  if (overlaps) write_shared_down_backward(w, in, out_gradient);
  write_sort(w, e, "experts.combine.gradient.sort", computed);
  write_expert_activation_again(w, e);
  write_experts_backward(w, e, computed, received);
  write_sort(w, e, "experts.dispatch.gradient.sort", received);
  if (e.moves) write_exchange(w, e, "experts.dispatch.gradient", false, received, permuted);
  if (overlaps) shared = {write_shared_up_backward(w, in)};
  std::vector<TensorRef> parts = {permuted, router_scores(w)};
  parts.insert(parts.end(), shared.begin(), shared.end());
  w.memory_op("experts.permute.backward", OpKind::Permute, e.routed, elements, parts,
              {in_gradient});
  write_router_backward(w, in, in_gradient);
}

}  // namespace shardwright
