// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): each depth joins the hidden
// state of the depth before with the embedding of the next token, runs one more transformer layer,
// and predicts through a norm of its own and the model's output head.
//
// As Megatron Core does it (megatron/core/transformer/multi_token_prediction.py): the joining
// projection is split by columns, and its outputs are gathered from the tensor-parallel ranks.
#include <fmt/format.h>

#include <utility>

#include "core/lowering/layer_writer.hpp"

namespace shardwright {

// Puts a depth's layer in the place of the model's layers while it lives: names and the tensors at
// the layer's ends.
class LayerWriter::MtpScope {
 public:
  MtpScope(LayerWriter& writer, std::int64_t depth)
      : writer_(writer), prefix_(writer.prefix_), ends_(writer.ends_) {
    writer.prefix_ = fmt::format("mtp.{}.", depth);
    const auto elements = static_cast<double>(writer.shape_.residual_tokens * writer.shape_.hidden);
    writer.ends_ = {writer.activation("layer.in", elements),
                    writer.activation("layer.out", elements),
                    writer.temporary("layer.in.gradient", elements),
                    writer.temporary("layer.out.gradient", elements)};
  }
  ~MtpScope() {
    writer_.prefix_ = std::move(prefix_);
    writer_.ends_ = ends_;
  }
  MtpScope(const MtpScope&) = delete;
  MtpScope& operator=(const MtpScope&) = delete;

 private:
  LayerWriter& writer_;
  std::string prefix_;
  LayerEnds ends_;
};

LayerWriter::MtpTensors LayerWriter::mtp_tensors() {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  return {activation("embedding", elements), gemm_input("join.in", 2.0 * elements),
          activation("norm.out", elements)};
}

Linear LayerWriter::mtp_join(const MtpTensors& mtp, TensorRef out) const {
  return {"join", LinearSplit::Column, 2 * shape_.hidden, shape_.hidden / plan_.tp, mtp.joined,
          out};
}

TensorRef LayerWriter::mtp_forward(std::int64_t depth, TensorRef previous) {
  const MtpScope scope(*this, depth);
  const MtpTensors mtp = mtp_tensors();
  const auto gathered = static_cast<double>(shape_.tokens * shape_.hidden);
  lookup_forward("lookup", mtp.embedding);
  norm_forward("embedding_norm", mtp.embedding, mtp.joined);
  norm_forward("hidden_norm", previous, mtp.joined);
  ops_.back().reads.push_back(mtp.joined);  // whose first half is written
  const bool gathers = plan_.tp > 1;
  const TensorRef part =
      gathers ? temporary("join.part", gathered / static_cast<double>(plan_.tp)) : input();
  linear_forward(mtp_join(mtp, part));
  // All columns of all tokens; of which a sequence-parallel rank goes on with its own tokens.
  if (gathers) {
    collective("join.out.all_gather", OpKind::AllGather, Group::Tensor, phase_,
               gathered * shape_.element, {part},
               {temporary("join.out.gathered", gathered), input()});
  }
  forward(model_.layers + depth);
  norm_forward("norm", output(), mtp.normed);
  loss_forward(mtp.normed);
  return output();
}

TensorRef LayerWriter::mtp_backward(std::int64_t depth, const std::vector<TensorRef>& gradients,
                                    bool recomputes) {
  const TensorRef previous = depth == 0 ? input() : mtp_output(depth - 1);
  const MtpScope scope(*this, depth);
  const MtpTensors mtp = mtp_tensors();
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  std::vector<TensorRef> sum = {temporary("norm.out.gradient", elements)};
  loss_backward(mtp.normed, sum.front());
  sum.insert(sum.end(), gradients.begin(), gradients.end());
  norm_backward("norm", output(), sum, output_gradient());
  if (recomputes) {
    const Phase before = std::exchange(phase_, Phase::Recompute);
    forward(model_.layers + depth);
    phase_ = before;
  }
  backward(model_.layers + depth);

  TensorRef join_gradient = input_gradient();
  if (shape_.gathers_sequence) {
    const auto gathered = static_cast<double>(shape_.tokens * shape_.hidden);
    join_gradient = temporary("join.out.gradient.gathered", gathered);
    collective("join.out.gradient.all_gather", OpKind::AllGather, Group::Tensor,
               Phase::BackwardInput, gathered * shape_.element, {input_gradient()},
               {join_gradient});
  }
  const TensorRef joined_gradient = temporary("join.in.gradient", 2.0 * elements);
  linear_backward(mtp_join(mtp, {}), join_gradient, joined_gradient);
  const TensorRef embedding_gradient = temporary("embedding.gradient", elements);
  norm_backward("embedding_norm", mtp.embedding, {joined_gradient}, embedding_gradient);
  lookup_backward("lookup", embedding_gradient);
  const TensorRef previous_gradient = temporary("previous.gradient", elements);
  norm_backward("hidden_norm", previous, {joined_gradient}, previous_gradient);
  return previous_gradient;
}

TensorRef LayerWriter::mtp_output(std::int64_t depth) {
  const MtpScope scope(*this, depth);
  return output();
}

}  // namespace shardwright
