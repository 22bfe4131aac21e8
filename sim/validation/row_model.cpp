#include "sim/validation/row_model.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/lowering/expert_load.hpp"
#include "core/spec/model_check.hpp"
#include "sim/validation/other_architecture.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_sizes.hpp"

namespace shardwright::sim {
namespace {

// Latent attention as DeepSeek-V2 and V3 and their descendants have it (arXiv 2405.04434).
constexpr std::int64_t kKvLoraRank = 512, kNopeHeadDim = 128, kRopeHeadDim = 64,
                       kValueHeadDim = 128;

ModelSpec gpt_like() {
  ModelSpec model;
  model.family = "gpt";
  model.norm = NormKind::LayerNorm;
  model.norm_bias = true;
  model.position = PositionKind::Learned;
  model.mlp = {1, Activation::Gelu, false, true};
  model.attention.qkv_bias = model.attention.output_bias = true;
  return model;
}

ModelSpec usual_architecture(const ModelRow& row) {
  ModelSpec model = row.gated_mlp.value_or(false) ? ModelSpec{} : gpt_like();
  if (row.gated_mlp.value_or(false)) model.family = "llama";
  if (row.moe) model.moe.emplace();
  return model;
}

void set_latent_attention(AttentionSpec& attention) {
  attention.kind = AttentionKind::MultiHeadLatent;
  attention.kv_lora_rank = kKvLoraRank;
  attention.qk_nope_head_dim = kNopeHeadDim;
  attention.qk_rope_head_dim = kRopeHeadDim;
  attention.v_head_dim = kValueHeadDim;
}

void set_attention(const ModelRow& row, AttentionSpec& attention) {
  attention.heads = *row.heads;
  if (attention.kind == AttentionKind::MultiHeadLatent) {
    attention.kv_heads = attention.heads;
    attention.head_dim = attention.qk_nope_head_dim + attention.qk_rope_head_dim;
    return;
  }
  attention.kv_heads = row.kv_heads.value_or(attention.heads);
  attention.head_dim = row.head_dim.value_or(*row.hidden / attention.heads);
}

// Of a complete row (row_sizes.hpp).
void set_experts(const MoeRow& row, MoeSpec& moe) {
  const bool same_shared = moe.shared_experts == *row.shared_experts;
  const std::int64_t shared_width = same_shared ? moe.shared_expert_ffn : 0;
  moe.experts = *row.experts;
  moe.top_k = *row.top_k;
  moe.expert_ffn = *row.expert_ffn;
  moe.shared_experts = *row.shared_experts;
  moe.shared_expert_ffn = shared_width > 0 ? shared_width : moe.shared_experts * moe.expert_ffn;
  moe.first_dense_layers = row.dense_layers.value_or(moe.first_dense_layers);
}

std::string problems_of(const ModelSpec& model) {
  ProblemList problems(model.name);
  check_model(
      model, [](const std::string& pointer) { return pointer; }, problems);
  try {
    problems.throw_if_any();
  } catch (const InputError& error) {
    const Problem& first = error.problems().front();
    return fmt::format("{}: {}, expected {}", first.where, first.found, first.expected);
  }
  return {};
}

void set_sizes(const TrainingRow& row, ModelSpec& model, std::vector<std::string>& filled_in) {
  const ModelRow& from = row.model;
  // Layers that predict further tokens are left out of models that were cut to a few layers.
  if (model.layers != *from.layers) model.mtp_layers = 0;
  model.name = from.name;
  model.source = row.source_title;
  model.aliases.clear();
  model.layers = *from.layers;
  model.hidden = *from.hidden;
  model.max_seq_len = *from.seq_len;
  if (model.position == PositionKind::Learned) model.position_embeddings = *from.seq_len;
  if (!from.vocab) filled_in.push_back(fmt::format("vocab: {}, the usual one", kUsualVocab));
  model.vocab = from.vocab.value_or(kUsualVocab);
  model.mlp.ffn_hidden = from.ffn_hidden.value_or(model.mlp.ffn_hidden);
  model.mlp.gated = from.gated_mlp.value_or(model.mlp.gated);
  model.tied_embeddings = from.tied_embeddings.value_or(!model.mlp.gated);
  if (!from.tied_embeddings)
    filled_in.push_back(fmt::format("tied_embeddings: {}", model.tied_embeddings));
  set_attention(from, model.attention);
  if (!from.kv_heads && model.attention.kind != AttentionKind::MultiHeadLatent)
    filled_in.push_back(fmt::format("kv_heads: {}", model.attention.kv_heads));
  if (!from.head_dim && model.attention.kind != AttentionKind::MultiHeadLatent)
    filled_in.push_back(fmt::format("head_dim: {}", model.attention.head_dim));
  if (from.moe) set_experts(*from.moe, *model.moe);
}

void set_routing_by_notes(const std::string& notes, MoeSpec& moe,
                          std::vector<std::string>& filled_in) {
  if (notes_say_balanced_routing(notes)) {
    moe.balanced_routing = true;
    filled_in.emplace_back("routing: balanced, by the notes");
  }
  if (!notes_say_dropped_tokens(notes)) return;
  // Megatron Core's recipes pad what they drop to, and most have a factor of 1.
  moe.capacity_factor = capacity_factor_in(notes).value_or(1.0);
  moe.pads_to_capacity = true;
  filled_in.push_back(
      fmt::format("routing: tokens beyond a capacity factor of {} are dropped, by the notes",
                  moe.capacity_factor));
}

}  // namespace

std::optional<ModelSpec> model_of_row(const TrainingRow& row, const ModelSpec* known,
                                      std::vector<std::string>& filled_in, std::string& reason) {
  if (const std::string size = missing_size(row.model); !size.empty()) {
    reason = fmt::format("the source does not say the model's {}", size);
    return std::nullopt;
  }
  if (reason = other_architecture(row); !reason.empty()) return std::nullopt;
  ModelSpec model = known != nullptr ? *known : usual_architecture(row.model);
  filled_in.push_back(known != nullptr ? fmt::format("architecture: as the shipped {}", known->name)
                                       : fmt::format("architecture: {}-like", model.family));
  if (known == nullptr && row.model.moe && notes_say_latent_attention(row.notes)) {
    set_latent_attention(model.attention);
    filled_in.emplace_back("attention: latent, by the notes");
  }
  if (!model.parallel_block && notes_say_parallel_block(row.notes)) {
    model.parallel_block = true;
    model.norms_per_layer = 1;
    filled_in.emplace_back("architecture: attention and feed-forward in parallel, by the notes");
  }
  set_sizes(row, model, filled_in);
  if (model.moe) set_routing_by_notes(row.notes, *model.moe, filled_in);
  if (const std::string assumed = load_assumption(model); !assumed.empty())
    filled_in.push_back(assumed);
  if (reason = problems_of(model); !reason.empty()) return std::nullopt;
  return model;
}

void set_dropout(const StackSpec& stack, ModelSpec& model, std::vector<std::string>& filled_in) {
  // `--hidden-dropout` and `--attention-dropout` of megatron/training/arguments.py, which the
  // scripts of BigScience leave as they are (github.com/bigscience-workshop/bigscience, train/).
  constexpr double kMegatronDropout = 0.1;
  double dropout = model.dropout;
  const bool gpt = !model.mlp.gated && !model.moe;
  const bool defaults = says(stack.name, "megatron-lm") || says(stack.name, "megatron-deepspeed");
  if (gpt && defaults) dropout = kMegatronDropout;
  if (stack.family == "pytorch") dropout = 0.0;
  if (dropout == model.dropout) return;
  model.dropout = dropout;
  filled_in.push_back(fmt::format("dropout: {}, the usual one of {}", dropout, stack.name));
}

}  // namespace shardwright::sim
