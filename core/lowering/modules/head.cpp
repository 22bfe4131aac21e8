// The head: final norm, output head and vocabulary-parallel loss, and beside them the layers that
// predict further tokens.
#include "core/lowering/modules/modules.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {
namespace {

Norm final_norm() {
  return {"head.norm", "final_norm"};
}

// True for a loss that is not vocabulary-parallel: every tensor-parallel rank computes the whole
// loss.
bool gathers_logits(const BlockWriter& w) {
  return w.plan.tp > 1 && !w.stack.fusion.parallel_loss;
}

// Every stack that trains in FP8 or NVFP4 leaves the output head in 16 bits.
BlockWriter in_head_precision(BlockWriter w) {
  if (casts_operands(w.precision)) w.precision = Precision::Bf16;
  return w;
}

struct Loss {
  // Logits that the loss of a rank reads.
  double elements = 0.0;
  // The size of what the loss keeps, relative to that of the logits.
  double copy = 1.0;
  // The rank's output of the head.
  TensorRef shard;
  TensorRef logits, probabilities, gradient;
};

// A loss in chunks holds those of one chunk at a time.
TensorRef logits_tensor(const BlockWriter& w, const char* name, double bytes) {
  return w.tensor(name, MemoryCategory::Logits,
                  bytes / static_cast<double>(w.stack.fusion.loss_chunks));
}

Loss loss_tensors(const BlockWriter& w) {
  Loss loss;
  const double element = w.shape.element;
  const auto shard = static_cast<double>(w.shape.tokens * w.shape.vocab);
  loss.shard = loss.logits = logits_tensor(w, "logits", shard * element);
  loss.elements = shard;
  if (gathers_logits(w)) {
    loss.elements = shard * static_cast<double>(w.plan.tp);
    loss.logits = logits_tensor(w, "logits.gathered", loss.elements * element);
  }
  // Unless it is fused, the loss works on an fp32 copy of the logits and keeps its probabilities in
  // fp32.
  loss.copy = w.stack.fusion.loss ? 1.0 : 4.0 / element;
  loss.probabilities = logits_tensor(w, "loss.probabilities", loss.elements * element * loss.copy);
  loss.gradient = logits_tensor(w, "logits.gradient", loss.elements * element);
  return loss;
}

TensorRef fp32_logits(const BlockWriter& w, const Loss& loss) {
  return logits_tensor(w, "logits.fp32", loss.elements * 4.0);
}

Linear output_head(const BlockWriter& w, const Loss& loss, TensorRef in) {
  return {"head",
          LinearSplit::Column,
          w.shape.hidden,
          w.shape.vocab,
          in,
          loss.shard,
          {w.model.tied_embeddings ? "embedding" : "head"}};
}

TensorRef head_input(const BlockWriter& w, TensorRef in) {
  return w.model.final_norm ? w.activation("head.norm.out", w.shape.residual_elements()) : in;
}

}  // namespace

void write_loss_forward(const BlockWriter& writer, TensorRef in) {
  const BlockWriter w = in_head_precision(writer);
  const Loss loss = loss_tensors(w);
  write_linear_forward(w, output_head(w, loss, in));
  if (gathers_logits(w)) {
    w.collective("logits.all_gather", OpKind::AllGather, Group::Tensor, loss.elements, {loss.shard},
                 {loss.logits});
  }
  // The vocabulary-parallel cross-entropy reduces the maximum, the target's logit and the sum of
  // exponentials.
  const double statistics_bytes = static_cast<double>(w.shape.tokens) * 4.0 * 3.0;
  const TensorRef statistics =
      w.tensor("loss.statistics", MemoryCategory::Temporaries, statistics_bytes);
  w.memory_op("loss.statistics", OpKind::Loss, loss.elements, 0.0, {loss.logits}, {statistics});
  const TensorRef fp32 = fp32_logits(w, loss);
  if (!w.stack.fusion.loss) w.ops.back().writes.push_back(fp32);
  if (w.plan.tp > 1 && !gathers_logits(w)) {
    w.collective("loss.all_reduce", OpKind::AllReduce, Group::Tensor,
                 statistics_bytes / w.shape.element, {statistics}, {statistics})
        .payload = Payload::SoftmaxStatistics;
  }
  w.memory_op("loss", OpKind::Loss, loss.elements, loss.elements * loss.copy,
              {loss.logits, statistics}, {loss.probabilities}, w.stack.fusion.loss ? 1 : 4);
  if (!w.stack.fusion.loss) w.ops.back().reads.push_back(fp32);
}

void write_loss_backward(const BlockWriter& writer, TensorRef in, TensorRef in_gradient) {
  const BlockWriter w = in_head_precision(writer);
  const Loss loss = loss_tensors(w);
  Op& op = w.memory_op("loss.backward", OpKind::Loss, loss.elements * loss.copy, loss.elements,
                       {loss.probabilities}, {loss.gradient});
  if (!w.stack.fusion.loss) {
    // The gradient is computed in fp32 and cast afterwards.
    op.writes.push_back(logits_tensor(w, "logits.gradient.fp32", loss.elements * 4.0));
    // PyTorch's cross-entropy is a log-softmax and a likelihood with a gradient each. If the model
    // holds the fp32 copy of the logits in a variable, it lives until both gradients are computed.
    const bool keeps_copy = !w.stack.fusion.parallel_loss;
    if (keeps_copy) op.reads.push_back(fp32_logits(w, loss));
    if (keeps_copy || w.stack.fusion.library_loss)
      op.writes.push_back(logits_tensor(w, "loss.gradient.fp32", loss.elements * 4.0));
  }
  write_linear_backward(w, output_head(w, loss, in), loss.gradient, in_gradient);
}

void write_head_forward(const BlockWriter& w, const LayerEnds& ends) {
  const TensorRef normed = head_input(w, ends.in);
  if (w.model.final_norm) write_norm_forward(w, final_norm(), ends.in, normed);
  write_loss_forward(w, normed);
  TensorRef previous = ends.in;
  for (std::int64_t depth = 0; depth < trained_mtp_layers(w.model, w.plan); ++depth)
    previous = write_mtp_forward(w, depth, previous);
}

void write_head_backward(const BlockWriter& w, const LayerEnds& ends, bool recomputes) {
  const double elements = w.shape.residual_elements();
  // The gradients of the last layer's output that the multi-token predictions compute.
  std::vector<TensorRef> gradients;
  for (std::int64_t depth = trained_mtp_layers(w.model, w.plan); depth-- > 0;)
    gradients = {write_mtp_backward(w, depth, ends.in, gradients, recomputes)};
  const TensorRef normed = head_input(w, ends.in);
  if (!w.model.final_norm && gradients.empty())
    return write_loss_backward(w, normed, ends.in_gradient);
  const TensorRef normed_gradient = w.temporary("head.norm.out.gradient", elements);
  write_loss_backward(w, normed, normed_gradient);
  gradients.insert(gradients.begin(), normed_gradient);
  if (w.model.final_norm) {
    write_norm_backward(w, final_norm(), ends.in, gradients, ends.in_gradient);
  } else {
    w.memory_op("head.gradient.sum", OpKind::Residual, 2.0 * elements, elements, gradients,
                {ends.in_gradient});
  }
}

}  // namespace shardwright
