// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): each depth joins the hidden
// state of the depth before with the embedding of the next token, runs one more transformer layer,
// and predicts through a norm of its own and the model's output head.
//
// As in Megatron Core (megatron/core/transformer/multi_token_prediction.py) the joining projection
// is split by columns, and its outputs are gathered from the tensor-parallel ranks.
#include <fmt/format.h>

#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

struct Depth {
  // Writes ops, tensors and parameters under the names of this depth.
  BlockWriter w;
  std::int64_t layer = 0;
  LayerEnds ends;
  TensorRef embedding, joined, normed;
  Norm embedding_norm, hidden_norm, norm;
};

Depth depth_of(const BlockWriter& writer, std::int64_t depth) {
  BlockWriter w = writer;
  w.prefix = fmt::format("mtp.{}.", depth);
  const double elements = w.shape.residual_elements();
  return {w,
          w.model.layers + depth,
          {w.activation("layer.in", elements), w.activation("layer.out", elements),
           w.temporary("layer.in.gradient", elements), w.temporary("layer.out.gradient", elements)},
          w.activation("embedding", elements),
          w.gemm_input("join.in", 2.0 * elements),
          w.activation("norm.out", elements),
          {"embedding_norm", w.prefix + "embedding_norm"},
          {"hidden_norm", w.prefix + "hidden_norm"},
          {"norm", w.prefix + "final_norm"}};
}

Linear join(const Depth& d, TensorRef out) {
  const std::int64_t hidden = d.w.shape.hidden;
  return {"join", LinearSplit::Column,        2 * hidden, hidden / d.w.plan.tp, d.joined,
          out,    d.w.of_layer({"join_proj"})};
}

}  // namespace

TensorRef write_mtp_forward(const BlockWriter& writer, std::int64_t depth, TensorRef previous) {
  const Depth d = depth_of(writer, depth);
  const BlockWriter& w = d.w;
  const double elements = w.shape.gathered_elements();
  write_lookup_forward(w, "lookup", {"embedding"}, d.embedding);
  write_norm_forward(w, d.embedding_norm, d.embedding, d.joined);
  write_norm_forward(w, d.hidden_norm, previous, d.joined);
  // The first half of what this norm writes into is written already.
  w.ops.back().reads.push_back(d.joined);
  const bool gathers = w.plan.tp > 1;
  const TensorRef part =
      gathers ? w.temporary("join.part", elements / static_cast<double>(w.plan.tp)) : d.ends.in;
  write_linear_forward(w, join(d, part));
  // A sequence-parallel rank receives all columns of all tokens and goes on with its own tokens.
  if (gathers) {
    write_tensor_gather(w, "join.out.all_gather", "join.out.gathered", elements, part);
    w.ops.back().writes.push_back(d.ends.in);
  }
  write_layer_forward(w, d.layer, d.ends);
  write_norm_forward(w, d.norm, d.ends.out, d.normed);
  write_loss_forward(w, d.normed);
  return d.ends.out;
}

TensorRef write_mtp_backward(const BlockWriter& writer, std::int64_t depth, TensorRef model_out,
                             const std::vector<TensorRef>& gradients, bool recomputes) {
  const TensorRef previous = depth == 0 ? model_out : depth_of(writer, depth - 1).ends.out;
  const Depth d = depth_of(writer, depth);
  const BlockWriter& w = d.w;
  const double elements = w.shape.residual_elements();
  std::vector<TensorRef> sum = {w.temporary("norm.out.gradient", elements)};
  write_loss_backward(w, d.normed, sum.front());
  sum.insert(sum.end(), gradients.begin(), gradients.end());
  write_norm_backward(w, d.norm, d.ends.out, sum, d.ends.out_gradient);
  if (recomputes) write_layer_forward(w.again(), d.layer, d.ends);
  write_layer_backward(w, d.layer, d.ends);

  TensorRef join_gradient = d.ends.in_gradient;
  if (w.shape.gathers_sequence) {
    join_gradient =
        write_tensor_gather(w, "join.out.gradient.all_gather", "join.out.gradient.gathered",
                            w.shape.gathered_elements(), join_gradient);
  }
  const TensorRef joined_gradient = w.temporary("join.in.gradient", 2.0 * elements);
  write_linear_backward(w, join(d, {}), join_gradient, joined_gradient);
  const TensorRef embedding_gradient = w.temporary("embedding.gradient", elements);
  write_norm_backward(w, d.embedding_norm, d.embedding, {joined_gradient}, embedding_gradient);
  write_lookup_backward(w, "lookup", {"embedding"}, embedding_gradient);
  const TensorRef previous_gradient = w.temporary("previous.gradient", elements);
  write_norm_backward(w, d.hidden_norm, previous, {joined_gradient}, previous_gradient);
  return previous_gradient;
}

}  // namespace shardwright
