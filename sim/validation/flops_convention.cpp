#include "sim/validation/flops_convention.hpp"

#include "sim/step/simulate.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {

FlopsConvention flops_convention_in(const std::string& text) {
  FlopsConvention convention;
  const bool without_scores = says(text, "no attention-score") || says(text, "*n*tokens");
  const bool causal =
      says(text, "causal") && !says(text, "non-causal") && !says(text, "causal or full");
  convention.attention_share = without_scores ? 0.0 : causal ? 0.5 : 1.0;
  convention.counts_recomputation = says(text, "recompute counted") ||
                                    says(text, "recomputation counted") ||
                                    says(text, "includes the extra forward pass");
  convention.peak_is_bf16 = says(text, "bf16 peak");
  return convention;
}

Flop counted_flop(const ModelSpec& model, const Plan& plan, const FlopsConvention& convention) {
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  const AttentionSpec& attention = model.attention;
  const auto score_width = static_cast<double>(
      attention.heads * (attention.head_dim + attention.value_head_dim()) * model.layers);
  // Two FLOP per product, a forward pass and two of its size backward.
  const double scores = 6.0 * tokens * score_width * static_cast<double>(plan.seq_len);
  const double head = 6.0 * tokens * static_cast<double>(model.hidden * model.vocab);
  const double counted =
      model_flop_per_step(model, plan).value() - (1.0 - convention.attention_share) * scores;
  const double recomputed = convention.counts_recomputation ? (counted - head) / 3.0 : 0.0;
  return Flop(counted + recomputed);
}

}  // namespace shardwright::sim
