#include "sim/validation/row_sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "core/spec/model_library.hpp"
#include "sim/validation/model_names.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// Lengths up to this are those of a model's training; longer ones come from stages after it.
constexpr std::int64_t kLongestTrained = 8192;

template <class T, class U>
bool same_if_stated(const std::optional<T>& stated, U size) {
  return !stated || *stated == static_cast<T>(size);
}

// The block of a sparse model's dense layers, or an expert: sources give either.
bool same_ffn(const ModelRow& row, const ModelSpec& model) {
  const bool has_experts = row.moe && row.moe->expert_ffn;
  if (has_experts || same_if_stated(row.ffn_hidden, model.mlp.ffn_hidden)) return true;
  return model.moe && *row.ffn_hidden == model.moe->expert_ffn;
}

bool same_experts(const MoeRow& row, const ModelSpec& model) {
  return model.moe && same_if_stated(row.experts, model.moe->experts) &&
         same_if_stated(row.expert_ffn, model.moe->expert_ffn);
}

// Whether what is stated are a shipped model's sizes.
bool agrees(const ModelRow& row, const ModelSpec& model) {
  return same_if_stated(row.hidden, model.hidden) &&
         same_if_stated(row.heads, model.attention.heads) &&
         same_if_stated(row.gated_mlp, model.mlp.gated) && same_ffn(row, model) &&
         (!row.moe || same_experts(*row.moe, model));
}

// Numbers beside the name may be another model's where no size tells.
const ModelSpec* known_by_name(const ModelRow& row) {
  const auto others = row.hidden && row.layers ? OtherNumbers::Allowed : OtherNumbers::Refused;
  const ModelSpec* model = model_named(row.name, others);
  return model != nullptr && agrees(row, *model) ? model : nullptr;
}

bool is_plain(const ModelSpec& model) {
  return model.family == "llama" || model.family == "gpt";
}

// Ungated blocks are four times as wide in every family, so that their sizes alone do not tell a
// StarCoder from a GPT.
bool may_be_of_family(const ModelRow& row, const ModelSpec& model) {
  if (model.moe || model.mlp.gated || is_plain(model)) return true;
  const auto words = family_words(row.name), family = family_words(model.name);
  return std::includes(words.begin(), words.end(), family.begin(), family.end());
}

// Without heads the layers have to be there as well.
bool same_shape(const ModelRow& row, const ModelSpec& model) {
  if (!may_be_of_family(row, model)) return false;
  if (!row.hidden || row.moe.has_value() != model.moe.has_value()) return false;
  if (row.moe && (!row.moe->experts || (!row.moe->expert_ffn && !row.ffn_hidden))) return false;
  return (row.heads || (row.ffn_hidden && row.layers == model.layers)) && agrees(row, model);
}

// Of models of one shape the one of the same family goes first, and a plain one before those with
// norms or positions of their own.
int likeness(const ModelRow& row, const ModelSpec& model) {
  const auto words = family_words(row.name), others = family_words(model.name);
  const bool shared = std::any_of(words.begin(), words.end(),
                                  [&](const auto& word) { return others.contains(word); });
  return (words == others ? 32 : 0) + (shared ? 16 : 0) + (row.vocab == model.vocab ? 8 : 0) +
         (row.layers == model.layers ? 4 : 0) + (row.kv_heads == model.attention.kv_heads ? 2 : 0) +
         (is_plain(model) ? 1 : 0);
}

const ModelSpec* known_by_shape(const ModelRow& row) {
  const ModelSpec* best = nullptr;
  for (const ModelSpec& model : shipped_model_specs()) {
    if (!same_shape(row, model)) continue;
    if (best == nullptr || likeness(row, model) > likeness(row, *best)) best = &model;
  }
  return best;
}

// Takes sizes that are not stated and lists them.
class Taker {
 public:
  template <class T, class U>
  void operator()(std::optional<T>& size, U value, const char* key) {
    if (size) return;
    size = static_cast<T>(value);
    taken_.push_back(fmt::format("{} {}", key, *size));
  }

  void say(const std::string& whence, std::vector<std::string>& filled_in) const {
    if (taken_.empty()) return;
    filled_in.push_back(fmt::format("{}: {}", fmt::join(taken_, ", "), whence));
  }

 private:
  std::vector<std::string> taken_;
};

void take_experts(Taker& take, const MoeSpec& from, MoeRow& moe) {
  take(moe.experts, from.experts, "experts");
  take(moe.top_k, from.top_k, "top_k");
  take(moe.expert_ffn, from.expert_ffn, "expert_ffn");
  take(moe.shared_experts, from.shared_experts, "shared_experts");
  take(moe.dense_layers, from.first_dense_layers, "dense_layers");
}

void take_from(const ModelSpec& model, const char* how, ModelRow& row,
               std::vector<std::string>& filled_in) {
  Taker take;
  take(row.layers, model.layers, "layers");
  take(row.hidden, model.hidden, "hidden");
  take(row.heads, model.attention.heads, "heads");
  if (model.attention.kind != AttentionKind::MultiHeadLatent) {
    take(row.kv_heads, model.attention.kv_heads, "kv_heads");
    take(row.head_dim, model.attention.head_dim, "head_dim");
  }
  // Sparse models may have no other blocks than experts.
  if (!row.moe) take(row.ffn_hidden, model.mlp.ffn_hidden, "ffn_hidden");
  take(row.gated_mlp, model.mlp.gated, "gated_mlp");
  take(row.vocab, model.vocab, "vocab");
  take(row.tied_embeddings, model.tied_embeddings, "tied_embeddings");
  if (model.moe && !row.moe) row.moe.emplace();
  if (model.moe) take_experts(take, *model.moe, *row.moe);
  take.say(fmt::format("as the shipped {}, by the {}", model.name, how), filled_in);
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

// Plain blocks are four times as wide; sparse models since Mixtral have gated experts.
void take_usual_gate(ModelRow& row, std::vector<std::string>& filled_in) {
  if (row.gated_mlp) return;
  if (!row.moe && (!row.ffn_hidden || *row.ffn_hidden == 4 * *row.hidden)) return;
  row.gated_mlp = true;
  filled_in.push_back(
      fmt::format("gated_mlp: true, by the {}", row.moe ? "experts" : "width of the blocks"));
}

void take_usual_block(ModelRow& row, std::vector<std::string>& filled_in) {
  if (!row.hidden || row.moe) return;
  if (row.ffn_hidden) return;
  if (!row.gated_mlp) row.gated_mlp = is_named_gated(row.name);
  row.ffn_hidden = usual_ffn(*row.hidden, *row.gated_mlp);
  filled_in.push_back(fmt::format("ffn_hidden: {}, the usual one of {} blocks", *row.ffn_hidden,
                                  *row.gated_mlp ? "gated" : "plain"));
}

// Of the usual width, or the next narrower one with which tensor parallelism divides the heads.
std::int64_t usual_heads(std::int64_t hidden, std::int64_t tp) {
  constexpr std::int64_t kUsualHeadDim = 128;
  const std::int64_t usual = std::max<std::int64_t>(1, hidden / kUsualHeadDim);
  for (std::int64_t heads = usual; heads < 2 * usual; ++heads)
    if (heads % tp == 0 && hidden % heads == 0) return heads;
  return usual;
}

void take_usual_heads(const PlanRow& plan, ModelRow& row, std::vector<std::string>& filled_in) {
  if (!row.hidden || row.heads) return;
  row.heads = row.head_dim ? std::max<std::int64_t>(1, *row.hidden / *row.head_dim)
                           : usual_heads(*row.hidden, plan.tp.value_or(1));
  filled_in.push_back(fmt::format("heads: {}", *row.heads));
}

// "8x7B" tells the number of experts.
void take_named_experts(ModelRow& row, std::vector<std::string>& filled_in) {
  const std::int64_t experts = experts_in_name(row.name);
  if (experts == 0 || (row.moe && row.moe->experts)) return;
  if (!row.moe) row.moe.emplace();
  row.moe->experts = experts;
  filled_in.push_back(fmt::format("experts: {}, by the name", experts));
}

// Experts of sparse models that were made of dense ones have the width of their blocks, and two
// of them work on a token (Mixtral, arXiv 2401.04088).
void take_usual_experts(ModelRow& row, std::vector<std::string>& filled_in) {
  constexpr std::int64_t kUsualTopK = 2;
  if (!row.moe || !row.moe->experts) return;
  Taker take;
  if (row.ffn_hidden) take(row.moe->expert_ffn, *row.ffn_hidden, "expert_ffn");
  take(row.moe->top_k, std::min(kUsualTopK, *row.moe->experts), "top_k");
  take(row.moe->shared_experts, 0, "shared_experts");
  take.say("the usual", filled_in);
}

bool is_rate(const TrainingRow& row) {
  return row.target && row.target->metric != "step_s";
}

// Tokens of a sequence by what a step and a second process; sources round both.
std::optional<std::int64_t> length_by_figures(const TrainingRow& row) {
  constexpr double kMultiple = 64.0, kRounding = 0.03;
  const MeasuredRow& measured = row.measured;
  if (!measured.iteration_s || !measured.tokens_per_s_per_gpu || !row.plan.global_batch)
    return std::nullopt;
  const double tokens = *measured.tokens_per_s_per_gpu * *measured.iteration_s *
                        static_cast<double>(row.cluster.gpus) /
                        static_cast<double>(*row.plan.global_batch);
  const double power = std::exp2(std::round(std::log2(tokens)));
  const double length = std::abs(tokens / power - 1.0) < kRounding
                            ? power
                            : kMultiple * std::round(tokens / kMultiple);
  const bool sensible = length >= kMultiple && length < static_cast<double>(1 << 22);
  return sensible ? std::optional(static_cast<std::int64_t>(length)) : std::nullopt;
}

// Llama 3 was trained with 8192 tokens before its context was extended (arXiv 2407.21783, section
// 3.4), the DeepSeek and Qwen families with 4096 (arXiv 2412.19437, section 4.2; arXiv 2505.09388,
// section 3.2), which is also the length of Megatron Core's figures for sparse models.
std::int64_t trained_length(const ModelSpec& model) {
  constexpr std::int64_t kBeforeExtension = 4096;
  if (model.max_seq_len <= kLongestTrained) return model.max_seq_len;
  return model.family == "llama" ? kLongestTrained : kBeforeExtension;
}

// A rate depends little on the length, a step's time in full, for which one that was extended is
// too uncertain.
void take_length(TrainingRow& row, const ModelSpec* named, std::vector<std::string>& filled_in) {
  if (row.model.seq_len) return;
  if (const auto length = length_by_figures(row)) {
    row.model.seq_len = *length;
    filled_in.push_back(fmt::format("seq_len: {}, by step time and tokens per second", *length));
    return;
  }
  if (named == nullptr || (!is_rate(row) && named->max_seq_len > kLongestTrained)) return;
  row.model.seq_len = trained_length(*named);
  filled_in.push_back(fmt::format("seq_len: {}, the one that {} was trained with",
                                  *row.model.seq_len, named->name));
}

// "30B-A3B": so many parameters work on a token.
bool is_named_sparse(const std::string& name) {
  static const std::regex kActive(R"(\bA\d+(?:\.\d+)?B\b)", std::regex::icase);
  return says(name, "moe") || std::regex_search(name, kActive);
}

}  // namespace

const ModelSpec* complete_model(TrainingRow& row, std::vector<std::string>& filled_in) {
  ModelRow& model = row.model;
  const ModelSpec* named = known_by_name(model);
  if (named != nullptr) take_from(*named, "name", model, filled_in);
  take_length(row, named, filled_in);
  if (named != nullptr) return named;
  take_named_experts(model, filled_in);
  take_usual_block(model, filled_in);
  const ModelSpec* known = known_by_shape(model);
  if (known != nullptr) take_from(*known, "sizes", model, filled_in);
  take_usual_experts(model, filled_in);
  if (model.hidden) take_usual_gate(model, filled_in);
  take_usual_heads(row.plan, model, filled_in);
  return known;
}

std::string missing_size(const ModelRow& row) {
  if (!row.layers) return "layers";
  if (!row.hidden) return "hidden";
  if (!row.heads) return "heads";
  if (!row.seq_len) return "seq_len";
  if (!row.moe) return is_named_sparse(row.name) ? "experts" : row.ffn_hidden ? "" : "ffn_hidden";
  if (!row.moe->experts) return "number of experts";
  return row.moe->expert_ffn ? "" : "expert_ffn";
}

}  // namespace shardwright::sim
