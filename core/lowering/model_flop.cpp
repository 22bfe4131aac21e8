#include "core/lowering/model_flop.hpp"

#include <algorithm>

#include "core/lowering/modules/modules.hpp"
#include "core/spec/adapters.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {
namespace {

// Elements of the matrices among `tensors` that one token meets.
double active_matrix_elements(const ModelSpec& model, const std::vector<ParameterTensor>& tensors) {
  double sum = 0.0;
  for (const ParameterTensor& tensor : tensors) {
    const bool routed = tensor.shard == ShardKind::ExpertColumn ||
                        tensor.shard == ShardKind::ExpertRow ||
                        tensor.shard == ShardKind::ExpertReplicated;
    // Convolutions over the tokens are no matrix products.
    const bool matrix =
        tensor.shape.size() >= (routed ? 3U : 2U) && !tensor.name.ends_with("conv.weight");
    if (!matrix) continue;
    const double share =
        routed ? static_cast<double>(model.moe->top_k) / static_cast<double>(model.moe->experts)
               : 1.0;
    sum += share * static_cast<double>(tensor.elements());
  }
  return sum;
}

// The same of all adapters.
double active_adapter_elements(const ModelSpec& model, const Plan& plan) {
  double sum = 0.0;
  for (std::int64_t layer = 0; plan.lora && layer < model.layers; ++layer)
    sum += active_matrix_elements(model, adapter_parameters(model, *plan.lora, layer));
  return sum;
}

// FLOP of a forward pass of the recurrence of linear attention, for each token of a layer.
double recurrence_flop(const ModelSpec& model, const Plan& plan) {
  const LinearAttentionSpec& linear = *model.linear_attention;
  double sum = 0.0;
  for (const LinearAttentionProduct& product : linear_attention_products(
           linear, linear.heads, linear.key_heads, plan.seq_len, plan.seq_len))
    sum += product.work.flop().value();
  return sum / static_cast<double>(plan.seq_len);
}

}  // namespace

Flop model_flop_per_step(const ModelSpec& model, const Plan& plan) {
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  const std::int64_t further = trained_mtp_layers(model, plan);
  const auto hidden = static_cast<double>(model.hidden);
  // The output head, tied or not; each further token passes it and a projection of two states.
  double weights = static_cast<double>(1 + further) * static_cast<double>(model.vocab) * hidden +
                   static_cast<double>(further) * 2.0 * hidden * hidden;
  // Keys that a query of each layer may see, summed over the layers.
  double scores = 0.0, recurrence = 0.0;
  for (std::int64_t layer = 0; layer < model.layers + further; ++layer) {
    weights += active_matrix_elements(model, layer_parameters(model, layer));
    const LayerMixer mixer = model.parts_of(layer).mixer;
    if (mixer == LayerMixer::LinearAttention) recurrence += recurrence_flop(model, plan);
    if (mixer != LayerMixer::Attention) continue;
    const std::int64_t window = model.sliding_window_of(layer);
    scores += static_cast<double>(window > 0 ? std::min(window, plan.seq_len) : plan.seq_len);
  }
  const auto width = static_cast<double>(
      model.attention.heads * (model.attention.head_dim + model.attention.value_head_dim()));
  // Forward 2 FLOP per weight and token and per score and width; backward twice that, but for
  // frozen weights, which have no gradient.
  const double passes = plan.lora ? 2.0 : 3.0;
  return Flop(tokens * (passes * 2.0 * weights + 3.0 * 2.0 * active_adapter_elements(model, plan) +
                        3.0 * (2.0 * width * scores + recurrence)));
}

}  // namespace shardwright
