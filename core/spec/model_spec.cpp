#include "core/spec/model_spec.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace shardwright {
namespace {

std::int64_t elements_of(const std::vector<ParameterTensor>& tensors) {
  return std::accumulate(
      tensors.begin(), tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const ParameterTensor& tensor) { return sum + tensor.elements(); });
}

std::int64_t routed_elements_of(const std::vector<ParameterTensor>& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : tensors) {
    const bool expert = tensor.shard == ShardKind::ExpertColumn ||
                        tensor.shard == ShardKind::ExpertRow ||
                        tensor.shard == ShardKind::ExpertReplicated;
    if (expert) sum += tensor.elements();
  }
  return sum;
}

// Elements of the routed experts of one layer that a token is not sent to.
std::int64_t idle_elements_of(const ModelSpec& model, const std::vector<ParameterTensor>& layer) {
  const std::int64_t routed = routed_elements_of(layer);
  return routed == 0 ? 0 : routed / model.moe->experts * (model.moe->experts - model.moe->top_k);
}

}  // namespace

LayerParts ModelSpec::parts_of(std::int64_t index) const {
  using enum LayerMixer;
  const bool sparse = moe && index >= moe->first_dense_layers &&
                      (index - moe->first_dense_layers + 1) % moe->layer_interval == 0;
  const LayerFfn ffn = sparse ? LayerFfn::Experts : LayerFfn::Dense;
  if (layer_pattern.empty() || index >= layers) return {Attention, ffn};
  switch (layer_pattern[static_cast<std::size_t>(index) % layer_pattern.size()]) {
    case 'L':
      return {LinearAttention, ffn};
    case 'M':
      return {LinearAttention, LayerFfn::None};
    case '*':
      return {Attention, LayerFfn::None};
    case '-':
      return {None, LayerFfn::Dense};
    case 'E':
      return {None, LayerFfn::Experts};
    default:
      return {Attention, ffn};
  }
}

bool ModelSpec::is_sparse(std::int64_t index) const {
  return parts_of(index).ffn == LayerFfn::Experts;
}

std::int64_t ModelSpec::sliding_window_of(std::int64_t index) const {
  if (index < attention.full_attention_first_layers) return 0;
  const std::int64_t interval = attention.full_attention_interval;
  if (interval > 0 && (index + 1) % interval == 0) return 0;
  return attention.sliding_window;
}

std::int64_t ParameterTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::int64_t> layers_of_each_kind(const ModelSpec& model) {
  std::vector<std::int64_t> first;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool known = std::ranges::any_of(
        first, [&](std::int64_t other) { return model.parts_of(other) == model.parts_of(layer); });
    if (!known) first.push_back(layer);
  }
  return first;
}

bool has_shared_experts(const ModelSpec& model) {
  return model.moe && model.moe->shared_experts > 0;
}

ParameterCount count_parameters(const ModelSpec& model) {
  ParameterCount count;
  count.total = elements_of(embedding_parameters(model)) + elements_of(head_parameters(model));
  count.active = count.total;
  // Layers of the same parts are alike, so the first of each kind stands for the others.
  for (const std::int64_t first : layers_of_each_kind(model)) {
    std::int64_t alike = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      alike += model.parts_of(layer) == model.parts_of(first) ? 1 : 0;
    const std::vector<ParameterTensor> tensors = layer_parameters(model, first);
    const std::int64_t elements = elements_of(tensors);
    count.total += alike * elements;
    count.routed += alike * routed_elements_of(tensors);
    count.active += alike * (elements - idle_elements_of(model, tensors));
  }
  const std::vector<ParameterTensor> mtp = mtp_parameters(model);
  count.mtp = elements_of(mtp);
  count.routed_mtp = routed_elements_of(mtp);
  const std::int64_t vocabulary = model.vocab * model.embedding_row();
  count.checkpoint = count.total + count.mtp + 2 * model.mtp_layers * vocabulary;
  if (model.tied_embeddings && model.tied_head_stored) count.checkpoint += vocabulary;
  return count;
}

}  // namespace shardwright
