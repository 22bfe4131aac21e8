#include "planner/export/megatron_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/spec/plan_check.hpp"
#include "planner/export/megatron_layer_kinds.hpp"

namespace shardwright::planner {
namespace {

void add_sizes(const ModelSpec& model, std::int64_t seq_len, ArgumentList& arguments) {
  arguments.add("--num-layers", model.layers);
  arguments.add("--hidden-size", model.hidden);
  arguments.add("--ffn-hidden-size", model.mlp.ffn_hidden);
  arguments.add("--max-position-embeddings", model.position_embeddings > 0
                                                 ? model.position_embeddings
                                                 : std::max(model.max_seq_len, seq_len));
  if (!model.tied_embeddings) arguments.add("--untie-embeddings-and-output-weights");
}

void add_latent_attention(const AttentionSpec& attention, ArgumentList& arguments) {
  arguments.add("--multi-latent-attention");
  if (attention.q_lora_rank > 0) arguments.add("--q-lora-rank", attention.q_lora_rank);
  arguments.add("--kv-lora-rank", attention.kv_lora_rank);
  arguments.add("--qk-head-dim", attention.qk_nope_head_dim);
  arguments.add("--qk-pos-emb-head-dim", attention.qk_rope_head_dim);
  arguments.add("--v-head-dim", attention.v_head_dim);
}

void add_attention(const ModelSpec& model, ArgumentList& arguments) {
  const AttentionSpec& attention = model.attention;
  arguments.add("--num-attention-heads", attention.heads);
  if (attention.kind == AttentionKind::MultiHeadLatent) {
    add_latent_attention(attention, arguments);
  } else {
    arguments.add("--kv-channels", attention.head_dim);
    if (attention.kv_heads != attention.heads) {
      arguments.add("--group-query-attention");
      arguments.add("--num-query-groups", attention.kv_heads);
    }
  }
  if (attention.qk_norm) arguments.add("--qk-layernorm");
  if (attention.output_gate) arguments.add("--attention-output-gate");
  if (attention.sliding_window == 0) return;
  // The window of Transformer Engine counts the tokens before a query.
  arguments.add("--window-size", fmt::format("{},0", attention.sliding_window - 1));
  const auto slides = [&](std::int64_t layer) { return model.sliding_window_of(layer) > 0; };
  if (attention.full_attention_interval > 0 || attention.full_attention_first_layers > 0)
    arguments.add("--window-attn-skip-freq", layer_flags_text(model.layers, slides));
}

void add_llama3_scaling(const RopeScalingSpec& scaling, ArgumentList& arguments,
                        PlanExport& result) {
  constexpr RopeScalingSpec kMegatron;
  arguments.add("--use-rope-scaling");
  arguments.add("--rope-scaling-factor", fmt::format("{}", scaling.factor));
  if (scaling.original_max_seq_len != kMegatron.original_max_seq_len ||
      scaling.low_freq_factor != kMegatron.low_freq_factor ||
      scaling.high_freq_factor != kMegatron.high_freq_factor) {
    result.note("model", "Megatron-LM scales rotary angles by the wavelengths of Llama 3.1 only");
  }
}

// Latent attention has arguments for YaRN; the rest of its figures are defaults of Megatron Core.
void add_yarn(const ModelSpec& model, ArgumentList& arguments, PlanExport& result) {
  const RopeScalingSpec& scaling = *model.rope_scaling;
  if (model.attention.kind != AttentionKind::MultiHeadLatent) {
    return result.note(
        "model", fmt::format("Megatron-LM has no argument for the factor of YaRN, {}, outside "
                             "of latent attention; rotary angles are not scaled",
                             scaling.factor));
  }
  constexpr std::int64_t kOriginal = 4096;
  constexpr RopeScalingSpec kMegatron;
  arguments.add("--rotary-scaling-factor", fmt::format("{}", scaling.factor));
  arguments.add("--mscale", fmt::format("{}", scaling.mscale));
  arguments.add("--mscale-all-dim", fmt::format("{}", scaling.mscale_all_dim));
  if (scaling.original_max_seq_len != kOriginal || scaling.beta_fast != kMegatron.beta_fast ||
      scaling.beta_slow != kMegatron.beta_slow) {
    result.note("model",
                fmt::format("YaRN's original_max_position_embeddings {}, beta_fast {} and "
                            "beta_slow {} have no arguments; Megatron Core's are {}, {} "
                            "and {}",
                            scaling.original_max_seq_len, scaling.beta_fast, scaling.beta_slow,
                            kOriginal, kMegatron.beta_fast, kMegatron.beta_slow));
  }
}

void add_rope_scaling(const ModelSpec& model, ArgumentList& arguments, PlanExport& result) {
  if (!model.rope_scaling) return;
  const RopeScalingSpec& scaling = *model.rope_scaling;
  switch (scaling.kind) {
    case RopeScalingKind::Linear:
      return arguments.add("--rotary-seq-len-interpolation-factor",
                           fmt::format("{:.0f}", scaling.factor));
    case RopeScalingKind::Llama3:
      return add_llama3_scaling(scaling, arguments, result);
    case RopeScalingKind::Yarn:
      return add_yarn(model, arguments, result);
  }
}

void add_positions(const ModelSpec& model, ArgumentList& arguments, PlanExport& result) {
  switch (model.position) {
    case PositionKind::Learned:
      return arguments.add("--position-embedding-type", "learned_absolute");
    case PositionKind::Rotary:
      arguments.add("--position-embedding-type", "rope");
      if (model.rotary_share < 1.0)
        arguments.add("--rotary-percent", fmt::format("{}", model.rotary_share));
      arguments.add("--rotary-base", fmt::format("{:.0f}", model.rope_theta));
      return add_rope_scaling(model, arguments, result);
    case PositionKind::Alibi:
      arguments.add("--position-embedding-type", "none");
      return result.note("model", "Megatron-LM has no argument for ALiBi");
    case PositionKind::None:
      return arguments.add("--position-embedding-type", "none");
  }
}

// Megatron-LM has one bias switch for all linear layers and one for queries, keys and values.
void add_biases(const ModelSpec& model, ArgumentList& arguments, PlanExport& result) {
  const bool qkv = model.attention.qkv_bias, output = model.attention.output_bias,
             mlp = model.mlp.bias;
  if (output != mlp || (mlp && !qkv)) {
    result.note("model", fmt::format("its linear layers have biases that no arguments tell apart "
                                     "(queries, keys, values {}, attention output {}, MLP {})",
                                     qkv, output, mlp));
  }
  if (mlp && output) return;
  arguments.add("--disable-bias-linear");
  if (qkv) arguments.add("--add-qkv-bias");
}

void add_layer_kinds(const ModelSpec& model, ArgumentList& arguments, PlanExport& result) {
  arguments.add("--normalization", model.norm == NormKind::RmsNorm ? "RMSNorm" : "LayerNorm");
  arguments.add("--norm-epsilon", fmt::format("{}", model.norm_epsilon));
  if (model.mlp.activation == Activation::Silu && model.mlp.gated) {
    arguments.add("--swiglu");
  } else if (model.mlp.activation != Activation::Gelu || model.mlp.gated) {
    result.note("model",
                fmt::format("Megatron-LM has no argument for its activation, {}{}",
                            model.mlp.gated ? "gated " : "", name_of(model.mlp.activation)));
  }
  // Both default to 0.1.
  arguments.add("--attention-dropout", fmt::format("{}", model.dropout));
  arguments.add("--hidden-dropout", fmt::format("{}", model.dropout));
}

// Adds the load balancing of experts; the default coefficient of Megatron-LM is 0, which balances
// nothing. Models whose router has a bias for each expert are balanced by it and by a slight loss
// on each sequence (DeepSeek-V3, arXiv 2412.19437, section 4.2). Other models have their own
// coefficients, which plan files do not contain; they get the one that Megatron-LM recommends.
void add_load_balancing(const MoeSpec& moe, ArgumentList& arguments, PlanExport& result) {
  if (moe.router_bias) {
    arguments.add("--moe-router-score-function", "sigmoid");
    arguments.add("--moe-router-enable-expert-bias");
    arguments.add("--moe-router-bias-update-rate", "1e-3");
  }
  if (moe.balanced_routing) {
    arguments.add("--moe-router-force-load-balancing");
    return arguments.add("--moe-router-load-balancing-type", "none");
  }
  const char* coefficient = moe.router_bias ? "1e-4" : "1e-2";
  arguments.add("--moe-router-load-balancing-type", moe.router_bias ? "seq_aux_loss" : "aux_loss");
  arguments.add("--moe-aux-loss-coeff", coefficient);
  result.note("model",
              fmt::format("the coefficient of the auxiliary loss is {}, {}; another one "
                          "goes into RUN_ARGS",
                          coefficient,
                          moe.router_bias ? "as of DeepSeek-V3" : "which Megatron-LM recommends"));
}

// Without grouped GEMMs Megatron-LM runs the experts of a rank one after the other.
void add_grouped_gemm(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const MlpSpec& mlp = scenario.model.mlp;
  const Precision precision = scenario.plan.precision;
  if (precision == Precision::Fp16 || precision == Precision::Fp32 || precision == Precision::Tf32)
    return result.note("precision", "Megatron-LM groups the GEMMs of experts in bf16 only");
  arguments.add("--moe-grouped-gemm");
  if (mlp.bias && scenario.model.attention.output_bias) arguments.add("--no-bias-dropout-fusion");
}

void add_experts(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const ModelSpec& model = scenario.model;
  const MoeSpec& moe = *model.moe;
  arguments.add("--num-experts", moe.experts);
  arguments.add("--moe-router-topk", moe.top_k);
  arguments.add("--moe-ffn-hidden-size", moe.expert_ffn);
  if (moe.first_dense_layers > 0 || moe.layer_interval > 1) {
    const auto sparse = [&](std::int64_t layer) { return model.is_sparse(layer); };
    arguments.add("--moe-layer-freq", layer_flags_text(model.layers, sparse));
  }
  if (moe.shared_experts > 0)
    arguments.add("--moe-shared-expert-intermediate-size", moe.shared_expert_ffn);
  add_load_balancing(moe, arguments, result);
  if (moe.capacity_factor > 0.0)
    arguments.add("--moe-expert-capacity-factor", fmt::format("{:g}", moe.capacity_factor));
  if (moe.pads_to_capacity) arguments.add("--moe-pad-expert-input-to-capacity");
  add_grouped_gemm(scenario, arguments, result);
  if (moe.shared_expert_gate) arguments.add("--moe-shared-expert-gate");
}

void note_other_shapes(const ModelSpec& model, PlanExport& result) {
  const auto note_if = [&](bool has, const char* what) {
    if (has) result.note("model", fmt::format("Megatron-LM has no argument for {}", what));
  };
  note_if(model.parallel_block, "parallel attention and feed-forward blocks");
  note_if(model.norms_per_layer != 2, "a number of norms per layer other than two");
  note_if(model.post_norm, "norms behind attention and feed-forward alone");
  note_if(model.attention.qk_norm_whole, "norms over all heads of queries and keys");
  note_if(model.embedding_norm, "a norm after the embedding");
  note_if(!model.final_norm, "the absence of a final norm");
  note_if(model.head_bias, "a bias of the output head");
  note_if(model.attention.sinks, "the sinks of its heads");
  note_if(model.moe && model.moe->router_linear_bias, "the bias of its router");
  note_if(model.norm == NormKind::LayerNorm && !model.norm_bias, "LayerNorm without bias");
  note_if(model.embedding_width != 0, "embeddings of a different width than the layers");
}

}  // namespace

void add_model_arguments(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const ModelSpec& model = scenario.model;
  add_sizes(model, scenario.plan.seq_len, arguments);
  add_attention(model, arguments);
  add_positions(model, arguments, result);
  add_biases(model, arguments, result);
  add_layer_kinds(model, arguments, result);
  if (model.moe) add_experts(scenario, arguments, result);
  add_layer_pattern(scenario, arguments, result);
  const std::int64_t further = trained_mtp_layers(model, scenario.plan);
  if (further > 0 && !is_hybrid(model)) arguments.add("--mtp-num-layers", further);
  note_other_shapes(model, result);
}

}  // namespace shardwright::planner
