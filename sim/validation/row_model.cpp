#include "sim/validation/row_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "core/base/error.hpp"
#include "core/lowering/expert_load.hpp"
#include "core/spec/model_check.hpp"
#include "core/spec/model_library.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

// Vocabulary of GPT-2's tokenizer, padded as Megatron-LM does.
constexpr std::int64_t kUsualVocab = 51200;
// Latent attention as DeepSeek-V2 and V3 and their descendants have it (arXiv 2405.04434).
constexpr std::int64_t kKvLoraRank = 512, kNopeHeadDim = 128, kRopeHeadDim = 64,
                       kValueHeadDim = 128;

const std::vector<ModelSpec>& library() {
  static const std::vector<ModelSpec> kModels = [] {
    std::vector<ModelSpec> models;
    for (const std::string& name : shipped_models()) models.push_back(load_model(name));
    return models;
  }();
  return kModels;
}

bool same_experts(const ModelRow& row, const ModelSpec& model) {
  if (!row.moe || !model.moe) return !row.moe && !model.moe;
  return row.moe->experts == model.moe->experts && row.moe->expert_ffn == model.moe->expert_ffn;
}

// Whether a shipped model has the row's sizes. Layers may be cut off, vocabularies replaced and
// key-value heads changed without it becoming another architecture.
bool same_shape(const ModelRow& row, const ModelSpec& model) {
  const bool same_ffn = !row.ffn_hidden || row.moe || *row.ffn_hidden == model.mlp.ffn_hidden;
  return *row.hidden == model.hidden && *row.heads == model.attention.heads && same_ffn &&
         row.gated_mlp.value_or(model.mlp.gated) == model.mlp.gated && same_experts(row, model);
}

bool same_beginning(const std::string& a, const std::string& b) {
  constexpr std::size_t kLetters = 3;
  return lower_case(a).substr(0, kLetters) == lower_case(b).substr(0, kLetters);
}

int likeness(const ModelRow& row, const ModelSpec& model) {
  return (same_beginning(row.name, model.name) ? 4 : 0) + (row.vocab == model.vocab ? 2 : 0) +
         (row.layers == model.layers ? 1 : 0) + (row.kv_heads == model.attention.kv_heads ? 1 : 0);
}

const ModelSpec* architecture_of(const ModelRow& row) {
  const ModelSpec* best = nullptr;
  for (const ModelSpec& model : library()) {
    if (!same_shape(row, model)) continue;
    if (best == nullptr || likeness(row, model) > likeness(row, *best)) best = &model;
  }
  return best;
}

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

void set_experts(const MoeRow& row, MoeSpec& moe) {
  const std::int64_t shared_width =
      moe.shared_experts == row.shared_experts ? moe.shared_expert_ffn : 0;
  moe.experts = row.experts;
  moe.top_k = row.top_k;
  moe.expert_ffn = row.expert_ffn;
  moe.shared_experts = row.shared_experts;
  moe.shared_expert_ffn = shared_width > 0 ? shared_width : row.shared_experts * row.expert_ffn;
  moe.first_dense_layers = row.dense_layers.value_or(moe.first_dense_layers);
}

// "meta-llama/Meta-Llama-3-8B-Instruct" as "llama38b": without the owner, the owner's name before
// the family and what the weights were tuned for, which changes no size.
std::string plain_name(const std::string& name) {
  static const std::regex kOwner(R"(^.*/|^(?:meta|facebook|google|nvidia|mistralai)[-_ ])",
                                 std::regex::icase);
  static const std::regex kTuned(R"([-_ ](?:hf|base|chat|instruct|it)\b)", std::regex::icase);
  std::string plain = std::regex_replace(name, kOwner, "");
  plain = std::regex_replace(plain, kOwner, "");
  return letters_and_digits(std::regex_replace(plain, kTuned, ""));
}

const ModelSpec* model_named(const std::string& name) {
  const std::string exact = letters_and_digits(name), plain = plain_name(name);
  for (const std::string& wanted : {exact, plain}) {
    for (const ModelSpec& model : library()) {
      const auto fits = [&wanted](const std::string& spelling) {
        return !wanted.empty() && letters_and_digits(spelling) == wanted;
      };
      if (fits(model.name) || std::any_of(model.aliases.begin(), model.aliases.end(), fits))
        return &model;
    }
  }
  return nullptr;
}

bool lacks_sizes(const ModelRow& row) {
  return !row.layers || !row.hidden || !row.heads || (!row.ffn_hidden && !row.moe);
}

// Sizes that the source leaves to the model's name.
void take_sizes_by_name(ModelRow& row, std::vector<std::string>& filled_in) {
  const ModelSpec* model = lacks_sizes(row) ? model_named(row.name) : nullptr;
  if (model == nullptr) return;
  const auto take = [](auto& size, std::int64_t value) { size = size.value_or(value); };
  take(row.layers, model->layers);
  take(row.hidden, model->hidden);
  take(row.heads, model->attention.heads);
  take(row.kv_heads, model->attention.kv_heads);
  take(row.head_dim, model->attention.head_dim);
  take(row.ffn_hidden, model->mlp.ffn_hidden);
  take(row.vocab, model->vocab);
  row.gated_mlp = row.gated_mlp.value_or(model->mlp.gated);
  if (model->moe && !row.moe)
    row.moe = MoeRow{model->moe->experts, model->moe->top_k, model->moe->expert_ffn,
                     model->moe->shared_experts, model->moe->first_dense_layers};
  filled_in.push_back(fmt::format("sizes: as the shipped {}, by the name", model->name));
}

// A GPT's feed-forward block is four times as wide as its hidden state; a gated one has the same
// parameters in three matrices, rounded up to a multiple of 256 (arXiv 2302.13971, section 2.2).
std::int64_t usual_ffn(std::int64_t hidden, bool gated) {
  constexpr std::int64_t kMultiple = 256;
  if (!gated) return 4 * hidden;
  return (8 * hidden / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

bool is_named_gated(const std::string& name) {
  return says_any(name, {"llama", "mistral", "mixtral", "qwen", "internlm", "baichuan", "gemma",
                         "palm", "deepseek", "yi-", "olmo"});
}

// Sizes that follow from others by the usual proportions.
void take_usual_sizes(ModelRow& row, std::vector<std::string>& filled_in) {
  constexpr std::int64_t kUsualHeadDim = 128;
  if (row.hidden && !row.heads) {
    row.heads = std::max<std::int64_t>(1, *row.hidden / row.head_dim.value_or(kUsualHeadDim));
    filled_in.push_back(fmt::format("heads: {}", *row.heads));
  }
  if (!row.hidden || row.moe) return;
  // Plain blocks are four times as wide.
  if (!row.gated_mlp && row.ffn_hidden && *row.ffn_hidden != 4 * *row.hidden &&
      is_named_gated(row.name)) {
    row.gated_mlp = true;
    filled_in.emplace_back("gated_mlp: true, by name and width");
  }
  if (row.ffn_hidden) return;
  if (!row.gated_mlp) row.gated_mlp = is_named_gated(row.name);
  row.ffn_hidden = usual_ffn(*row.hidden, *row.gated_mlp);
  filled_in.push_back(fmt::format("ffn_hidden: {}, the usual one of {} blocks", *row.ffn_hidden,
                                  *row.gated_mlp ? "gated" : "plain"));
}

std::string missing_size(const ModelRow& row) {
  if (!row.layers) return "layers";
  if (!row.hidden) return "hidden";
  if (!row.heads) return "heads";
  if (!row.seq_len) return "seq_len";
  return !row.ffn_hidden && !row.moe ? "ffn_hidden" : "";
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
  if (from.moe) set_experts(*from.moe, *model.moe);
}

void set_routing_by_notes(const std::string& notes, MoeSpec& moe,
                          std::vector<std::string>& filled_in) {
  if (notes_say_balanced_routing(notes)) {
    moe.balanced_routing = true;
    filled_in.emplace_back("routing: balanced, by the notes");
  }
  if (!notes_say_dropped_tokens(notes)) return;
  // The factor of the sources that tell it; Megatron Core's recipes pad what they drop to.
  moe.capacity_factor = 1.0;
  moe.pads_to_capacity = true;
  filled_in.emplace_back("routing: tokens beyond a capacity factor of 1 are dropped, by the notes");
}

}  // namespace

std::optional<ModelSpec> model_of_row(const TrainingRow& stated,
                                      std::vector<std::string>& filled_in, std::string& reason) {
  TrainingRow row = stated;
  take_sizes_by_name(row.model, filled_in);
  take_usual_sizes(row.model, filled_in);
  if (const std::string size = missing_size(row.model); !size.empty()) {
    reason = fmt::format("the source does not say the model's {}", size);
    return std::nullopt;
  }
  if (says(row.model.name, "mamba") || notes_say_state_space_layers(row.notes)) {
    reason = "the model has state-space layers, which are not modelled";
    return std::nullopt;
  }
  const ModelSpec* known = architecture_of(row.model);
  ModelSpec model = known != nullptr ? *known : usual_architecture(row.model);
  filled_in.push_back(known != nullptr ? fmt::format("architecture: as the shipped {}", known->name)
                                       : fmt::format("architecture: {}-like", model.family));
  if (known == nullptr && row.model.moe && notes_say_latent_attention(row.notes)) {
    set_latent_attention(model.attention);
    filled_in.emplace_back("attention: latent, by the notes");
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
