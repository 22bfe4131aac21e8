#include "planner/export/megatron_layer_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/program/shard_shape.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright::planner {
namespace {

// A letter for each layer.
std::string letters_of(const ModelSpec& model) {
  std::string letters;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    letters += model.layer_pattern[static_cast<std::size_t>(layer) % model.layer_pattern.size()];
  return letters;
}

void add_mamba(const LinearAttentionSpec& linear, ArgumentList& arguments, PlanExport& result) {
  arguments.add("--mamba-num-heads", linear.heads);
  arguments.add("--mamba-head-dim", linear.head_dim);
  arguments.add("--mamba-num-groups", linear.key_heads);
  arguments.add("--mamba-state-dim", linear.state_dim);
  const LinearAttentionSpec usual;
  if (linear.conv_width != usual.conv_width || linear.chunk != usual.chunk || !linear.conv_bias)
    result.note("model",
                "Megatron-LM's layers of Mamba-2 have a convolution of four tokens with "
                "a bias, and chunks of 128 tokens");
}

void add_delta_rule(const LinearAttentionSpec& linear, ArgumentList& arguments) {
  arguments.add("--linear-num-value-heads", linear.heads);
  arguments.add("--linear-value-head-dim", linear.head_dim);
  arguments.add("--linear-num-key-heads", linear.key_heads);
  arguments.add("--linear-key-head-dim", linear.state_dim);
  arguments.add("--linear-conv-kernel-dim", linear.conv_width);
}

// "M-M*|M-M*/*-": the letters of layers, with a bar between chunks of the pipeline and a stroke
// before each prediction layer.
void add_hybrid(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const ModelSpec& model = scenario.model;
  std::string letters = letters_of(model);
  if (letters.find_first_of("AL") != std::string::npos)
    return result.refuse("model", fmt::format("the pattern {} of layers", model.layer_pattern),
                         "layers that all have one branch, or all two, as Megatron-LM's");
  const bool latent = model.attention.kind == AttentionKind::MultiHeadLatent;
  if (latent) std::ranges::replace(letters, '*', '+');
  const bool delta_rule =
      model.linear_attention && model.linear_attention->kind == LinearAttentionKind::GatedDeltaNet;
  if (delta_rule) std::ranges::replace(letters, 'M', 'G');
  std::string pattern;
  if (scenario.plan.pp > 1) {
    for (const LayerRange& range : split_layers(model, scenario.plan))
      pattern += (pattern.empty() && range.first == 0 ? "" : "|") +
                 letters.substr(static_cast<std::size_t>(range.first),
                                static_cast<std::size_t>(range.count));
  } else {
    pattern = letters;
  }
  for (std::int64_t i = 0; i < trained_mtp_layers(model, scenario.plan); ++i)
    pattern += fmt::format("/{}{}", latent ? '+' : '*', model.moe ? 'E' : '-');
  arguments.add("--hybrid-layer-pattern", pattern);
  arguments.add_words("--spec", "megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec");
  if (!model.linear_attention) return;
  if (delta_rule)
    add_delta_rule(*model.linear_attention, arguments);
  else
    add_mamba(*model.linear_attention, arguments, result);
}

}  // namespace

bool is_hybrid(const ModelSpec& model) {
  return model.layer_pattern.find_first_of("M*-E") != std::string::npos;
}

void add_layer_pattern(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const ModelSpec& model = scenario.model;
  if (is_hybrid(model)) return add_hybrid(scenario, arguments, result);
  if (!model.linear_attention) return;
  if (model.linear_attention->kind != LinearAttentionKind::GatedDeltaNet)
    return result.refuse("model", "Mamba-2 before feed-forward blocks in one layer",
                         "a pattern of layers with one branch each, as Megatron-LM has them");
  arguments.add("--experimental-attention-variant", "gated_delta_net");
  const std::string letters = letters_of(model);
  arguments.add("--linear-attention-freq", layer_flags_text(model.layers, [&](std::int64_t layer) {
                  return letters[static_cast<std::size_t>(layer)] == 'L';
                }));
  add_delta_rule(*model.linear_attention, arguments);
}

}  // namespace shardwright::planner
