// What follows the last layer: final norm, output head and vocabulary-parallel loss, with the
// layers that predict further tokens beside them.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {

// Every stack that trains in FP8 or NVFP4 leaves the output head in 16 bits.
Precision LayerWriter::head_format() const {
  return casts_operands(plan_.precision) ? Precision::Bf16 : plan_.precision;
}

// Without a vocabulary-parallel loss every tensor-parallel rank computes the whole of it.
bool LayerWriter::gathers_logits() const {
  return plan_.tp > 1 && !stack_.parallel_loss;
}

LayerWriter::LossTensors LayerWriter::loss_tensors() {
  LossTensors loss;
  const auto shard = static_cast<double>(shape_.tokens * shape_.vocab);
  loss.shard = bytes_tensor("logits", MemoryCategory::Logits, shard * shape_.element);
  loss.elements = gathers_logits() ? shard * static_cast<double>(plan_.tp) : shard;
  loss.logits = gathers_logits() ? bytes_tensor("logits.gathered", MemoryCategory::Logits,
                                                loss.elements * shape_.element)
                                 : loss.shard;
  // Unless it is fused, the loss works on an fp32 copy of the logits and keeps its probabilities in
  // fp32.
  loss.copy = stack_.fused_loss ? 1.0 : 4.0 / shape_.element;
  loss.probabilities = bytes_tensor("loss.probabilities", MemoryCategory::Logits,
                                    loss.elements * shape_.element * loss.copy);
  loss.gradient =
      bytes_tensor("logits.gradient", MemoryCategory::Logits, loss.elements * shape_.element);
  return loss;
}

Linear LayerWriter::output_head(TensorRef in) {
  return {"head", LinearSplit::Column, shape_.hidden, shape_.vocab, in, loss_tensors().shard};
}

void LayerWriter::loss_forward(TensorRef in) {
  format_ = head_format();
  const LossTensors loss = loss_tensors();
  linear_forward(output_head(in));
  if (gathers_logits()) {
    collective("logits.all_gather", OpKind::AllGather, Group::Tensor, phase_,
               loss.elements * shape_.element, {loss.shard}, {loss.logits});
  }
  // The vocabulary-parallel cross-entropy exchanges the maximum, the target's logit and the sum of
  // exponentials.
  const double statistics_bytes = static_cast<double>(shape_.tokens) * 4.0 * 3.0;
  const TensorRef statistics =
      bytes_tensor("loss.statistics", MemoryCategory::Temporaries, statistics_bytes);
  memory_op("loss.statistics", OpKind::Loss, phase_, loss.elements, 0.0, {loss.logits},
            {statistics});
  const TensorRef copy_of_logits =
      bytes_tensor("logits.fp32", MemoryCategory::Logits, loss.elements * 4.0);
  if (!stack_.fused_loss) ops_.back().writes.push_back(copy_of_logits);
  if (plan_.tp > 1 && !gathers_logits()) {
    collective("loss.all_reduce", OpKind::AllReduce, Group::Tensor, phase_, statistics_bytes,
               {statistics}, {statistics});
    ops_.back().payload = Payload::SoftmaxStatistics;
  }
  memory_op("loss", OpKind::Loss, phase_, loss.elements, loss.elements * loss.copy,
            {loss.logits, statistics}, {loss.probabilities}, stack_.fused_loss ? 1 : 4);
  if (!stack_.fused_loss) ops_.back().reads.push_back(copy_of_logits);
  format_ = plan_.precision;
}

void LayerWriter::loss_backward(TensorRef in, TensorRef in_gradient) {
  format_ = head_format();
  const LossTensors loss = loss_tensors();
  memory_op("loss.backward", OpKind::Loss, Phase::BackwardInput, loss.elements * loss.copy,
            loss.elements, {loss.probabilities}, {loss.gradient});
  // The gradient comes in fp32 as well and is cast afterwards.
  if (!stack_.fused_loss) {
    ops_.back().writes.push_back(
        bytes_tensor("logits.gradient.fp32", MemoryCategory::Logits, loss.elements * 4.0));
  }
  // PyTorch's cross-entropy is a log-softmax and a likelihood, each with a gradient. Where the fp32
  // copy of the logits is a variable of the model's, it is alive until both are done.
  const bool keeps_copy = !stack_.fused_loss && !stack_.parallel_loss;
  if (keeps_copy) {
    ops_.back().reads.push_back(
        bytes_tensor("logits.fp32", MemoryCategory::Logits, loss.elements * 4.0));
  }
  if (keeps_copy || (!stack_.fused_loss && stack_.library_loss)) {
    ops_.back().writes.push_back(
        bytes_tensor("loss.gradient.fp32", MemoryCategory::Logits, loss.elements * 4.0));
  }
  linear_backward(output_head(in), loss.gradient, in_gradient);
  format_ = plan_.precision;
}

TensorRef LayerWriter::head_input() {
  if (!model_.final_norm) return input();
  return activation("head.norm.out", static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

void LayerWriter::head_forward() {
  if (model_.final_norm) norm_forward("head.norm", input(), head_input());
  loss_forward(head_input());
  TensorRef previous = input();
  for (std::int64_t depth = 0; depth < mtp_layers_; ++depth)
    previous = mtp_forward(depth, previous);
}

void LayerWriter::head_backward(bool recomputes) {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  std::vector<TensorRef> gradients;  // that come back to the output of the last layer
  for (std::int64_t depth = mtp_layers_; depth-- > 0;)
    gradients = {mtp_backward(depth, gradients, recomputes)};
  if (!model_.final_norm && gradients.empty()) {
    loss_backward(head_input(), input_gradient());
    return;
  }
  const TensorRef normed_gradient = temporary("head.norm.out.gradient", elements);
  loss_backward(head_input(), normed_gradient);
  gradients.insert(gradients.begin(), normed_gradient);
  if (model_.final_norm) {
    norm_backward("head.norm", input(), gradients, input_gradient());
  } else {
    memory_op("head.gradient.sum", OpKind::Residual, Phase::BackwardInput, 2.0 * elements, elements,
              gradients, {input_gradient()});
  }
}

}  // namespace shardwright
