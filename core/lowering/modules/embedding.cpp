// The token embedding: the lookup in the rank's part of the vocabulary, the reduction over the
// tensor-parallel ranks, and norm and dropout if the model has them.
#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

Norm embedding_norm() {
  return {"embedding.norm", "embedding_norm"};
}

TensorRef embedding_norm_input(const BlockWriter& w, TensorRef out) {
  if (!w.model.embedding_norm) return out;
  return w.activation("embedding.norm.in", w.shape.residual_elements());
}

TensorRef embedding_dropout_mask(const BlockWriter& w) {
  return w.tensor("embedding.dropout_mask", MemoryCategory::Activations,
                  w.shape.residual_elements());
}

std::vector<std::string> table_parameters(const BlockWriter& w) {
  if (w.model.position_embeddings == 0) return {"embedding"};
  return {"embedding", "position_embedding"};
}

}  // namespace

void write_lookup_forward(const BlockWriter& w, const std::string& name,
                          const std::vector<std::string>& parameters, TensorRef out) {
  const double elements = w.shape.gathered_elements();
  const bool reduces = w.plan.tp > 1;
  const TensorRef found = reduces ? w.temporary(name + ".partial", elements) : out;
  w.apply(w.memory_op(name, OpKind::Embedding, elements, elements, {}, {found}), parameters);
  if (!reduces) return;
  w.collective(name + ".reduce",
               w.shape.gathers_sequence ? OpKind::ReduceScatter : OpKind::AllReduce, Group::Tensor,
               elements, {found}, {out});
}

void write_lookup_backward(const BlockWriter& w, const std::string& name,
                           const std::vector<std::string>& parameters, TensorRef out_gradient) {
  const double elements = w.shape.gathered_elements();
  TensorRef gradient = out_gradient;
  if (w.shape.gathers_sequence) {
    gradient = write_tensor_gather(w, name + ".gradient.all_gather", name + ".gradient.gathered",
                                   elements, gradient);
  }
  Op& op = w.memory_op(name + ".backward", OpKind::Embedding, elements, elements, {gradient}, {});
  op.phase = Phase::BackwardWeight;
  op.parameters = parameters;
  if (w.gathered) op.writes.push_back(w.gathered->gradient);
}

void write_embedding_forward(const BlockWriter& w, TensorRef out) {
  const double elements = w.shape.residual_elements();
  const TensorRef embedded = embedding_norm_input(w, out);
  write_lookup_forward(w, "embedding", table_parameters(w), embedded);
  if (w.model.embedding_norm) write_norm_forward(w, embedding_norm(), embedded, out);
  if (w.model.dropout > 0.0) {
    Op& op =
        w.memory_op("embedding.dropout", OpKind::Dropout, elements, 1.5 * elements, {out}, {out});
    if (w.stack.memory.dropout_mask_saved) op.writes.push_back(embedding_dropout_mask(w));
  }
}

void write_embedding_backward(const BlockWriter& w, TensorRef out, TensorRef out_gradient) {
  const double elements = w.shape.residual_elements();
  if (w.freezes()) {
    // Nothing is computed with the gradient, which is dropped here.
    w.memory_op("embedding.backward", OpKind::Embedding, 0.0, 0.0, {out_gradient}, {});
    return;
  }
  TensorRef gradient = out_gradient;
  if (w.model.dropout > 0.0) {
    const TensorRef dropped = w.temporary("embedding.dropout.gradient", elements);
    Op& op = w.memory_op("embedding.dropout.backward", OpKind::Dropout, 1.5 * elements, elements,
                         {gradient}, {dropped});
    if (w.stack.memory.dropout_mask_saved) op.reads.push_back(embedding_dropout_mask(w));
    gradient = dropped;
  }
  if (w.model.embedding_norm) {
    const TensorRef normed = w.temporary("embedding.norm.gradient", elements);
    write_norm_backward(w, embedding_norm(), embedding_norm_input(w, out), {gradient}, normed);
    gradient = normed;
  }
  write_lookup_backward(w, "embedding", table_parameters(w), gradient);
}

}  // namespace shardwright
