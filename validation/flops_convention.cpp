#include "validation/flops_convention.hpp"

#include <algorithm>

#include "sim/step/simulate.hpp"

namespace shardwright::validation {
namespace {

// The recomputed share of all layers.
double recomputed_share(const ModelSpec& model, const Plan& plan) {
  if (plan.recompute != RecomputePolicy::Full) return 0.0;
  const std::int64_t chunk = plan.even_chunk(model.layers);
  if (plan.recompute_interval > 1)
    return static_cast<double>(chunk / plan.recompute_interval) / static_cast<double>(chunk);
  if (!plan.stage_recompute_layers.empty()) {
    double share = 0.0;
    for (const std::int64_t layers : plan.stage_recompute_layers)
      share += static_cast<double>(std::min(layers, chunk)) / static_cast<double>(chunk);
    return share / static_cast<double>(plan.pp);
  }
  if (plan.recompute_layers == 0 || plan.recompute_layers >= chunk) return 1.0;
  return static_cast<double>(plan.recompute_layers) / static_cast<double>(chunk);
}

}  // namespace

std::string description_of(const FlopsConvention& convention) {
  std::string text = convention.attention_share == 0.0   ? "no attention scores"
                     : convention.attention_share == 0.5 ? "causal half of the attention scores"
                                                         : "attention scores in full";
  constexpr EnumArray<CountedRecomputation, const char*> kRecomputation = {
      {", recomputation not counted", ", recomputation counted where the plan has it",
       ", recomputation of all layers counted"}};
  text += kRecomputation[convention.recomputation];
  return text + (convention.peak_is_bf16 ? ", of the bf16 peak" : "");
}

Flop counted_flop(const ModelSpec& model, const Plan& plan, const FlopsConvention& convention) {
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  const AttentionSpec& attention = model.attention;
  std::int64_t layers = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    layers += model.parts_of(layer).mixer == LayerMixer::Attention ? 1 : 0;
  const auto score_width = static_cast<double>(
      attention.heads * (attention.head_dim + attention.value_head_dim()) * layers);
  // Two FLOP per product, a forward pass and two of its size backward.
  const double scores = 6.0 * tokens * score_width * static_cast<double>(plan.seq_len);
  const double head = 6.0 * tokens * static_cast<double>(model.hidden * model.vocab);
  const double counted =
      model_flop_per_step(model, plan).value() - (1.0 - convention.attention_share) * scores;
  const double share = convention.recomputation == CountedRecomputation::Whole ? 1.0
                       : convention.recomputation == CountedRecomputation::AsRun
                           ? recomputed_share(model, plan)
                           : 0.0;
  return Flop(counted + share * (counted - head) / 3.0);
}

}  // namespace shardwright::validation
