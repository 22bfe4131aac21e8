// A layer: the order of attention (or linear attention) and feed-forward block, the norms around
// them, and the residual connections.
#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

// Bias, dropout and residual addition, if they are not one kernel.
constexpr std::int64_t kUnfusedResidualKernels = 3;

// The two branches that a layer adds to the residual stream.
struct Branch {
  std::string name;
  Norm norm, post_norm;
};

Norm layer_norm(const BlockWriter& w, const std::string& name, const std::string& parameter) {
  return {name, w.of_layer({parameter}).front()};
}

Branch attention_branch(const BlockWriter& w) {
  return {"attention", layer_norm(w, "attention.norm", "attention_norm"),
          layer_norm(w, "attention.post_norm", "post_attention_norm")};
}

Branch ffn_branch(const BlockWriter& w) {
  return {"ffn", layer_norm(w, "ffn.norm", "mlp_norm"),
          layer_norm(w, "ffn.post_norm", "post_mlp_norm")};
}

// Gemma 2 has a norm behind each branch, too; OLMo 2 has its norms there alone.
bool has_post_norms(const BlockWriter& w) {
  return w.model.norms_per_layer == 4 || w.model.post_norm;
}

// The input of a branch: the norm's output, or what the norm would read.
TensorRef branch_input(const BlockWriter& w, const Branch& branch, TensorRef in) {
  return w.model.post_norm ? in
                           : w.gemm_input(branch.norm.name + ".out", w.shape.residual_elements());
}

// Takes the gradient of the branch's input to that of the residual stream before it: `gradients`
// are that gradient and those of the residual connections, which are added.
void write_branch_start_backward(const BlockWriter& w, const Branch& branch, TensorRef in,
                                 const std::vector<TensorRef>& gradients, TensorRef in_gradient) {
  if (!w.model.post_norm) return write_norm_backward(w, branch.norm, in, gradients, in_gradient);
  const double elements = w.shape.residual_elements();
  w.memory_op(branch.name + ".gradient.sum", OpKind::Residual, 2.0 * elements, elements, gradients,
              {in_gradient});
}

// One byte per element.
TensorRef dropout_mask(const BlockWriter& w, const Branch& branch) {
  return w.tensor(branch.name + ".residual.dropout_mask", MemoryCategory::Activations,
                  w.shape.residual_elements());
}

// The tensor that the last op of the branch writes.
TensorRef branch_output(const BlockWriter& w, const Branch& branch) {
  const double elements = w.shape.residual_elements();
  return has_post_norms(w) ? w.activation(branch.name + ".post_norm.in", elements)
                           : w.temporary(branch.name + ".branch", elements);
}

// Returns what is added to the residual stream.
TensorRef write_branch_end(const BlockWriter& w, const Branch& branch, TensorRef out) {
  if (!has_post_norms(w)) return out;
  const TensorRef normed = w.temporary(branch.name + ".branch", w.shape.residual_elements());
  write_norm_forward(w, branch.post_norm, out, normed);
  return normed;
}

void write_residual(const BlockWriter& w, const Branch& branch, TensorRef out, TensorRef skip,
                    TensorRef sum) {
  const double elements = w.shape.residual_elements();
  std::vector<TensorRef> writes = {sum};
  const bool drops = w.model.dropout > 0.0;
  if (drops && w.stack.memory.dropout_mask_saved) writes.push_back(dropout_mask(w, branch));
  w.memory_op(branch.name + ".residual", OpKind::Residual, 2.0 * elements, elements, {out, skip},
              writes, w.stack.fusion.dropout_add || !drops ? 1 : kUnfusedResidualKernels);
}

// Takes the gradient of the sum back to the branch, through dropout and the norm behind it.
TensorRef write_branch_end_backward(const BlockWriter& w, const Branch& branch,
                                    TensorRef gradient) {
  const double elements = w.shape.residual_elements();
  if (w.model.dropout > 0.0) {
    const TensorRef dropped = w.temporary(branch.name + ".branch.gradient", elements);
    std::vector<TensorRef> reads = {gradient};
    if (w.stack.memory.dropout_mask_saved) reads.push_back(dropout_mask(w, branch));
    w.memory_op(branch.name + ".residual.backward", OpKind::Dropout, 1.5 * elements, elements,
                reads, {dropped});
    gradient = dropped;
  }
  if (has_post_norms(w)) {
    const TensorRef normed = w.temporary(branch.name + ".post_norm.gradient", elements);
    write_norm_backward(w, branch.post_norm, branch_output(w, branch), {gradient}, normed);
    gradient = normed;
  }
  return gradient;
}

FeedForward dense_block(const BlockWriter& w, TensorRef in) {
  return feed_forward(w, "ffn", "mlp", w.model.mlp.ffn_hidden, in);
}

void write_ffn_forward(const BlockWriter& w, std::int64_t layer, TensorRef in, TensorRef out) {
  if (w.model.is_sparse(layer)) return write_moe_forward(w, in, out);
  const FeedForward block = dense_block(w, in);
  write_up_forward(w, block);
  write_down_forward(w, block, out);
}

void write_ffn_backward(const BlockWriter& w, std::int64_t layer, TensorRef in,
                        TensorRef out_gradient, TensorRef in_gradient) {
  if (w.model.is_sparse(layer)) return write_moe_backward(w, in, out_gradient, in_gradient);
  const FeedForward block = dense_block(w, in);
  write_down_backward(w, block, out_gradient);
  write_up_backward(w, block, in_gradient);
}

void write_mixer_forward(const BlockWriter& w, std::int64_t layer, TensorRef in, TensorRef out) {
  if (w.model.parts_of(layer).mixer == LayerMixer::LinearAttention)
    return write_linear_attention_forward(w, in, out);
  write_attention_forward(w, layer, in, out);
}

void write_mixer_backward(const BlockWriter& w, std::int64_t layer, TensorRef in,
                          TensorRef out_gradient, TensorRef in_gradient) {
  if (w.model.parts_of(layer).mixer == LayerMixer::LinearAttention)
    return write_linear_attention_backward(w, in, out_gradient, in_gradient);
  write_attention_backward(w, layer, in, out_gradient, in_gradient);
}

// Where stacks have norms inside of projections, those before MLA and before experts are modules of
// their own all the same (megatron/core/models/gpt/gpt_layer_specs.py).
bool norm_is_module(const BlockWriter& w, LayerParts parts, bool mixes) {
  const bool latent = parts.mixer == LayerMixer::Attention &&
                      w.model.attention.kind == AttentionKind::MultiHeadLatent;
  return !w.stack.fusion.norm_in_projection || (mixes ? latent : parts.ffn == LayerFfn::Experts);
}

// The input of a branch's norm and the norm's output, and the gradient at which its backward pass
// starts. `own_norm` is false if there is no such norm, or another branch has it.
struct BranchEnds {
  TensorRef hidden, in, gradient;
  bool own_norm = true;
};
// Runs again what the plan recomputes of a branch as a whole, and of the norm before it. A norm
// inside of a projection is a part of the dense block.
void write_branch_again(const BlockWriter& w, const Branch& branch, bool mixes, std::int64_t layer,
                        const BranchEnds& ends) {
  const BlockWriter again = w.again();
  const std::size_t first = w.ops.size();
  const LayerParts parts = w.model.parts_of(layer);
  const bool sparse = parts.ffn == LayerFfn::Experts;
  const bool reruns_block =
      !mixes && w.reruns(sparse ? RecomputeModule::Moe : RecomputeModule::Mlp);
  const bool reruns_norm =
      norm_is_module(w, parts, mixes) ? w.reruns(RecomputeModule::LayerNorm) : reruns_block;
  if (reruns_norm && ends.own_norm) write_norm_forward(again, branch.norm, ends.hidden, ends.in);
  if (reruns_block) {
    write_ffn_forward(again, layer, ends.in,
                      w.temporary("ffn.recomputed", w.shape.residual_elements()));
  } else if (!mixes && !sparse && w.reruns(RecomputeModule::MlpActivation)) {
    write_activation_again(again, dense_block(w, ends.in));
  }
  w.start_at_gradient(first, ends.gradient);
}

// True for a layer of one branch (Nemotron-H); `mixes` tells which.
struct SingleBranch {
  bool single = false, mixes = false;
};
SingleBranch single_branch(const BlockWriter& w, std::int64_t layer) {
  const LayerParts parts = w.model.parts_of(layer);
  return {parts.mixer == LayerMixer::None || parts.ffn == LayerFfn::None,
          parts.mixer != LayerMixer::None};
}

void write_single_branch_forward(const BlockWriter& w, std::int64_t layer, bool mixes,
                                 const LayerEnds& ends) {
  const double elements = w.shape.residual_elements();
  const Branch branch = mixes ? attention_branch(w) : ffn_branch(w);
  const TensorRef in = branch_input(w, branch, ends.in), out = branch_output(w, branch);
  write_norm_forward(w, branch.norm, ends.in, in);
  mixes ? write_mixer_forward(w, layer, in, out) : write_ffn_forward(w, layer, in, out);
  const bool recomputes = w.phase == Phase::Recompute && !w.hands_on_again;
  write_residual(w, branch, out, ends.in,
                 recomputes ? w.temporary("hidden.recomputed", elements) : ends.out);
}

void write_single_branch_backward(const BlockWriter& w, std::int64_t layer, bool mixes,
                                  const LayerEnds& ends) {
  const Branch branch = mixes ? attention_branch(w) : ffn_branch(w);
  const TensorRef in = branch_input(w, branch, ends.in);
  const TensorRef in_gradient =
      w.temporary(branch.norm.name + ".out.gradient", w.shape.residual_elements());
  write_branch_again(w, branch, mixes, layer, {ends.in, in, ends.out_gradient});
  const TensorRef out_gradient = write_branch_end_backward(w, branch, ends.out_gradient);
  mixes ? write_mixer_backward(w, layer, in, out_gradient, in_gradient)
        : write_ffn_backward(w, layer, in, out_gradient, in_gradient);
  write_norm_backward(w, branch.norm, ends.in, {in_gradient, ends.out_gradient}, ends.in_gradient);
}

}  // namespace

void write_layer_forward(const BlockWriter& w, std::int64_t layer, const LayerEnds& ends) {
  const auto [single, mixes] = single_branch(w, layer);
  if (single) return write_single_branch_forward(w, layer, mixes, ends);
  const double elements = w.shape.residual_elements();
  const Branch attention = attention_branch(w), ffn = ffn_branch(w);
  const bool parallel = w.model.parallel_block, shared_norm = w.model.norms_per_layer == 1;
  const TensorRef attention_in = branch_input(w, attention, ends.in);
  const TensorRef middle = parallel ? ends.in : w.activation("hidden.middle", elements);
  const TensorRef ffn_in = shared_norm ? attention_in : branch_input(w, ffn, middle);

  if (!w.model.post_norm) write_norm_forward(w, attention.norm, ends.in, attention_in);
  TensorRef attention_out = branch_output(w, attention);
  write_mixer_forward(w, layer, attention_in, attention_out);
  attention_out = write_branch_end(w, attention, attention_out);
  if (!parallel) write_residual(w, attention, attention_out, ends.in, middle);

  if (!shared_norm && !w.model.post_norm) write_norm_forward(w, ffn.norm, middle, ffn_in);
  TensorRef ffn_out = branch_output(w, ffn);
  write_ffn_forward(w, layer, ffn_in, ffn_out);
  ffn_out = write_branch_end(w, ffn, ffn_out);
  TensorRef skip = middle;
  if (parallel) {
    skip = w.temporary("attention.residual.out", elements);
    write_residual(w, attention, attention_out, ends.in, skip);
  }
  // Recomputation runs to the end of the layer, although nothing reads its output but a layer that
  // runs again behind it.
  const bool recomputes = w.phase == Phase::Recompute && !w.hands_on_again;
  write_residual(w, ffn, ffn_out, skip,
                 recomputes ? w.temporary("hidden.recomputed", elements) : ends.out);
}

void write_layer_backward(const BlockWriter& w, std::int64_t layer, const LayerEnds& ends) {
  const auto [single, mixes] = single_branch(w, layer);
  if (single) return write_single_branch_backward(w, layer, mixes, ends);
  const double elements = w.shape.residual_elements();
  const Branch attention = attention_branch(w), ffn = ffn_branch(w);
  const bool parallel = w.model.parallel_block, shared_norm = w.model.norms_per_layer == 1;
  const TensorRef attention_in = branch_input(w, attention, ends.in);
  const TensorRef attention_in_gradient = w.temporary("attention.norm.out.gradient", elements);
  const TensorRef middle = parallel ? ends.in : w.activation("hidden.middle", elements);
  const TensorRef ffn_in = shared_norm ? attention_in : branch_input(w, ffn, middle);
  const TensorRef ffn_in_gradient = w.temporary("ffn.norm.out.gradient", elements);

  const bool own_norms = !shared_norm && !w.model.post_norm;
  write_branch_again(w, ffn, false, layer, {middle, ffn_in, ends.out_gradient, own_norms});
  write_ffn_backward(w, layer, ffn_in, write_branch_end_backward(w, ffn, ends.out_gradient),
                     ffn_in_gradient);
  // The gradient of the residual connection around attention, and what attention's norm adds up.
  TensorRef around = ends.out_gradient;
  std::vector<TensorRef> sum = {attention_in_gradient};
  if (shared_norm) {
    sum.push_back(ffn_in_gradient);
  } else {
    around = w.temporary("hidden.middle.gradient", elements);
    write_branch_start_backward(w, ffn, middle, {ffn_in_gradient, ends.out_gradient}, around);
  }
  sum.push_back(around);
  write_branch_again(w, attention, true, layer, {ends.in, attention_in, around, own_norms});
  const TensorRef attention_gradient =
      write_branch_end_backward(w, attention, parallel ? ends.out_gradient : around);
  write_mixer_backward(w, layer, attention_in, attention_gradient, attention_in_gradient);
  write_branch_start_backward(w, attention, ends.in, sum, ends.in_gradient);
}

}  // namespace shardwright
