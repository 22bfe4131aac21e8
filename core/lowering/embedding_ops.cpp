// The token embedding: lookup in the rank's part of the vocabulary, reduction over the
// tensor-parallel ranks, norm and dropout where the model has them.
#include "core/lowering/layer_writer.hpp"

namespace shardwright {

void LayerWriter::lookup_forward(const std::string& name, TensorRef out) {
  const auto gathered = static_cast<double>(shape_.tokens * shape_.hidden);
  const bool reduces = plan_.tp > 1;
  const TensorRef looked_up = reduces ? temporary(name + ".partial", gathered) : out;
  memory_op(name, OpKind::Embedding, phase_, gathered, gathered, {}, {looked_up});
  read_parameters(ops_.back());
  if (!reduces) return;
  collective(name + ".reduce", shape_.gathers_sequence ? OpKind::ReduceScatter : OpKind::AllReduce,
             Group::Tensor, phase_, gathered * shape_.element, {looked_up}, {out});
}

void LayerWriter::lookup_backward(const std::string& name, TensorRef out_gradient) {
  const auto gathered = static_cast<double>(shape_.tokens * shape_.hidden);
  TensorRef gradient = out_gradient;
  if (shape_.gathers_sequence) {
    gradient = temporary(name + ".gradient.gathered", gathered);
    collective(name + ".gradient.all_gather", OpKind::AllGather, Group::Tensor,
               Phase::BackwardInput, gathered * shape_.element, {out_gradient}, {gradient});
  }
  std::vector<TensorRef> writes;
  if (gathers_parameters_) writes.push_back(parameter_gradient());
  memory_op(name + ".backward", OpKind::Embedding, Phase::BackwardWeight, gathered, gathered,
            {gradient}, writes);
}

TensorRef LayerWriter::embedding_norm_input() {
  if (!model_.embedding_norm) return input();
  return activation("embedding.norm.in",
                    static_cast<double>(shape_.residual_tokens * shape_.hidden));
}

void LayerWriter::embedding_forward() {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  const TensorRef embedded = embedding_norm_input();
  lookup_forward("embedding", embedded);
  if (model_.embedding_norm) norm_forward("embedding.norm", embedded, input());
  if (model_.dropout > 0.0) {
    memory_op("embedding.dropout", OpKind::Dropout, phase_, elements, 1.5 * elements, {input()},
              {input()});
    if (stack_.dropout_mask_saved) ops_.back().writes.push_back(dropout_mask("embedding"));
  }
}

void LayerWriter::embedding_backward() {
  const auto elements = static_cast<double>(shape_.residual_tokens * shape_.hidden);
  TensorRef gradient = input_gradient();
  if (model_.dropout > 0.0) {
    const TensorRef dropped = temporary("embedding.dropout.gradient", elements);
    memory_op("embedding.dropout.backward", OpKind::Dropout, Phase::BackwardInput, 1.5 * elements,
              elements, {gradient}, {dropped});
    if (stack_.dropout_mask_saved) ops_.back().reads.push_back(dropout_mask("embedding"));
    gradient = dropped;
  }
  if (model_.embedding_norm) {
    const TensorRef normed = temporary("embedding.norm.gradient", elements);
    norm_backward("embedding.norm", embedding_norm_input(), {gradient}, normed);
    gradient = normed;
  }
  lookup_backward("embedding", gradient);
}

}  // namespace shardwright
