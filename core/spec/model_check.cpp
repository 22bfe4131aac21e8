#include "core/spec/model_check.hpp"

#include <fmt/format.h>

#include "core/spec/model_limits.hpp"

namespace shardwright {
namespace {

// Collects broken rules under the file's own names.
class Rules {
 public:
  Rules(const FieldPointer& pointer, ProblemList& problems)
      : pointer_(pointer), problems_(problems) {}

  template <class Found>
  void require(bool holds, const std::string& field, const Found& found,
               const std::string& expected) {
    if (!holds) problems_.add(pointer_(field), fmt::format("{}", found), expected);
  }

 private:
  const FieldPointer& pointer_;
  ProblemList& problems_;
};

void check_grouped_query(const AttentionSpec& attention, Rules& rules) {
  rules.require(attention.heads % attention.kv_heads == 0, "/attention/kv_heads",
                attention.kv_heads, fmt::format("a divisor of the {} heads", attention.heads));
}

void check_latent(const AttentionSpec& attention, Rules& rules) {
  rules.require(attention.kv_heads == attention.heads, "/attention/kv_heads", attention.kv_heads,
                fmt::format("{}: multi-head latent attention has one per head", attention.heads));
  rules.require(!attention.qk_norm, "/attention/qk_norm", attention.qk_norm,
                "false: multi-head latent attention has norms in its bottlenecks");
  rules.require(!attention.sinks, "/attention/sinks", attention.sinks,
                "false: heads of multi-head latent attention have none");
  const std::int64_t width = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
  rules.require(attention.head_dim == width, "/attention/head_dim", attention.head_dim,
                fmt::format("{}: the sum of qk_nope_head_dim and qk_rope_head_dim", width));
}

void check_qk_norm(const AttentionSpec& attention, Rules& rules) {
  rules.require(attention.qk_norm || !attention.qk_norm_whole, "/attention/qk_norm_whole",
                attention.qk_norm_whole, "false, since there is no qk_norm");
}

void check_window(const ModelSpec& model, Rules& rules) {
  const AttentionSpec& attention = model.attention;
  const bool window = attention.sliding_window > 0;
  rules.require(window || attention.full_attention_interval == 0,
                "/attention/full_attention_interval", attention.full_attention_interval,
                "0, since there is no sliding_window");
  rules.require(window || attention.full_attention_first_layers == 0,
                "/attention/full_attention_first_layers", attention.full_attention_first_layers,
                "0, since there is no sliding_window");
  rules.require(attention.full_attention_first_layers <= model.layers,
                "/attention/full_attention_first_layers", attention.full_attention_first_layers,
                fmt::format("at most the {} layers", model.layers));
}

// Importers derive these from other sizes (4 * hidden, shared experts * width of one).
void check_derived_widths(const ModelSpec& model, Rules& rules) {
  const std::string limit = fmt::format("at most {}", kWidthRange.most);
  rules.require(model.mlp.ffn_hidden <= kWidthRange.most, "/mlp/ffn_hidden", model.mlp.ffn_hidden,
                limit);
  if (!model.moe) return;
  rules.require(model.moe->shared_expert_ffn <= kWidthRange.most, "/moe/shared_expert_ffn",
                model.moe->shared_expert_ffn, limit);
}

void check_experts(const ModelSpec& model, Rules& rules) {
  const MoeSpec& moe = *model.moe;
  rules.require(moe.top_k <= moe.experts, "/moe/top_k", moe.top_k,
                fmt::format("at most the {} experts", moe.experts));
  rules.require((moe.shared_experts > 0) == (moe.shared_expert_ffn > 0), "/moe/shared_expert_ffn",
                moe.shared_expert_ffn,
                moe.shared_experts > 0 ? "the width of all shared experts together"
                                       : "0, since there are no shared_experts");
  rules.require(!moe.shared_expert_gate || moe.shared_experts > 0, "/moe/shared_expert_gate",
                moe.shared_expert_gate, "false, since there are no shared_experts");
  rules.require(moe.capacity_factor == 0.0 || moe.capacity_factor >= kLeastCapacity,
                "/moe/capacity_factor", moe.capacity_factor,
                fmt::format("at least {}, or 0 for experts that take all tokens", kLeastCapacity));
  rules.require(!moe.pads_to_capacity || moe.capacity_factor > 0.0, "/moe/pads_to_capacity",
                moe.pads_to_capacity, "false, since there is no capacity_factor");
  const std::int64_t first_sparse = moe.first_dense_layers + moe.layer_interval;
  const bool interval_alone = moe.first_dense_layers == 0;
  rules.require(first_sparse <= model.layers || !interval_alone, "/moe/layer_interval",
                moe.layer_interval, fmt::format("at most the {} layers", model.layers));
  rules.require(first_sparse <= model.layers || interval_alone, "/moe/first_dense_layers",
                moe.first_dense_layers,
                fmt::format("so few that one of the {} layers is sparse (layer_interval is {})",
                            model.layers, moe.layer_interval));
}

void check_linear_attention(const LinearAttentionSpec& linear, Rules& rules) {
  rules.require(linear.heads % linear.key_heads == 0, "/linear_attention/key_heads",
                linear.key_heads, fmt::format("a divisor of the {} heads", linear.heads));
}

void check_pattern(const ModelSpec& model, Rules& rules) {
  const std::string& pattern = model.layer_pattern;
  const auto size = static_cast<std::int64_t>(pattern.size());
  const auto expect = [&](bool holds, const std::string& expected) {
    rules.require(holds, "/layer_pattern", fmt::format("\"{}\"", pattern), expected);
  };
  const auto uses = [&pattern](const char* letters) {
    return pattern.find_first_of(letters) != std::string::npos;
  };
  rules.require(uses("ML") || !model.linear_attention, "/linear_attention", "linear attention",
                "none, since no layer of layer_pattern has it");
  if (pattern.empty()) return;
  expect(pattern.find_first_not_of("AL*M-E") == std::string::npos,
         "letters out of A, L, *, M, - and E");
  expect(model.layers % size == 0,
         fmt::format("so many letters that they repeat in {} layers", model.layers));
  expect(!uses("ML") || model.linear_attention, "no M and no L without linear_attention");
  expect(!uses("E") || model.moe, "no E without moe");
  expect(uses("EAL") || !model.moe, "an E, since the model has experts (moe)");
  expect(model.norms_per_layer == 2 && !model.parallel_block && !model.post_norm,
         "none, unless the layers have a norm before each branch");
}

void check_norms(const ModelSpec& model, Rules& rules) {
  const std::int64_t norms = model.norms_per_layer;
  rules.require(norms == 1 || norms == 2 || norms == 4, "/norms_per_layer", norms, "1, 2 or 4");
  rules.require(norms != 1 || model.parallel_block, "/norms_per_layer", norms,
                "2 or 4, since attention and feed-forward are not parallel (parallel_block)");
  rules.require(!model.post_norm || (norms == 2 && !model.parallel_block), "/post_norm",
                model.post_norm, "false, unless a layer has two norms and no parallel_block");
  rules.require(!model.norm_bias || model.norm == NormKind::LayerNorm, "/norm_bias",
                model.norm_bias, "false: RMSNorm has no bias");
}

void check_rope_scaling(const ModelSpec& model, Rules& rules) {
  if (!model.rope_scaling) return;
  const RopeScalingSpec& scaling = *model.rope_scaling;
  rules.require(model.position == PositionKind::Rotary, "/rope_scaling", name_of(scaling.kind),
                "none, since positions are not rotary");
  rules.require(scaling.high_freq_factor > scaling.low_freq_factor,
                "/rope_scaling/high_freq_factor", scaling.high_freq_factor,
                fmt::format("more than low_freq_factor, {}", scaling.low_freq_factor));
}

void check_positions(const ModelSpec& model, Rules& rules) {
  if (model.position == PositionKind::Learned) {
    rules.require(model.position_embeddings >= model.max_seq_len, "/position_embeddings",
                  model.position_embeddings,
                  fmt::format("at least the max_seq_len of {}", model.max_seq_len));
  } else {
    rules.require(model.position_embeddings == 0, "/position_embeddings", model.position_embeddings,
                  fmt::format("0, since positions are {}", name_of(model.position)));
  }
  if (model.position != PositionKind::Rotary) return;
  const AttentionSpec& attention = model.attention;
  const bool latent = attention.kind == AttentionKind::MultiHeadLatent;
  const std::int64_t width = latent ? attention.qk_rope_head_dim : attention.head_dim;
  rules.require(width % 2 == 0, latent ? "/attention/qk_rope_head_dim" : "/attention/head_dim",
                width, "an even number: rotary positions turn pairs");
}

// In floating point, because the exact count is what must not overflow.
double estimated_parameters(const ModelSpec& model) {
  double count = 0.0;
  const auto add = [&count](const std::vector<ParameterTensor>& tensors, double times) {
    for (const ParameterTensor& tensor : tensors)
      count += times * static_cast<double>(tensor.elements());
  };
  const auto layers = static_cast<double>(model.layers);
  add(embedding_parameters(model), 1.0);
  add(head_parameters(model), 1.0);
  for (const std::int64_t layer : layers_of_each_kind(model))
    add(layer_parameters(model, layer), layers);
  ModelSpec one_prediction = model;
  one_prediction.mtp_layers = model.mtp_layers > 0 ? 1 : 0;
  add(mtp_parameters(one_prediction), static_cast<double>(model.mtp_layers));
  return count;
}

}  // namespace

void check_model(const ModelSpec& model, const FieldPointer& pointer, ProblemList& problems) {
  Rules rules(pointer, problems);
  const std::size_t before = problems.size();
  if (model.attention.kind == AttentionKind::MultiHeadLatent) {
    check_latent(model.attention, rules);
  } else {
    check_grouped_query(model.attention, rules);
  }
  check_qk_norm(model.attention, rules);
  check_window(model, rules);
  check_derived_widths(model, rules);
  if (model.moe) check_experts(model, rules);
  if (model.linear_attention) check_linear_attention(*model.linear_attention, rules);
  check_pattern(model, rules);
  check_norms(model, rules);
  check_positions(model, rules);
  check_rope_scaling(model, rules);
  // A pattern may name parts that are not there.
  if (!model.layer_pattern.empty() && problems.size() > before) return;
  const double parameters = estimated_parameters(model);
  rules.require(parameters <= kMaxParameters, "",
                fmt::format("sizes that make about {:.1e} parameters", parameters),
                fmt::format("at most {:.0e} parameters", kMaxParameters));
}

}  // namespace shardwright
