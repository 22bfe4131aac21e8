#include "planner/import/known_models.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/model_library.hpp"
#include "planner/export/plan_export.hpp"
#include "planner/import/megatron_settings.hpp"
#include "planner/import/megatron_shape.hpp"

namespace shardwright::planner {
namespace {

// The model that a shipped one's export describes.
std::optional<ModelSpec> exported_model(const ModelSpec& shipped, const Scenario& like) {
  Scenario scenario = like;
  scenario.model = shipped;
  scenario.plan.multi_token_prediction = like.model.mtp_layers > 0;
  // The split of the layers is another one's.
  scenario.plan.stage_layers.clear();
  scenario.plan.pp = scenario.plan.vpp = 1;
  const auto launch = find_launch_arguments(megatron_arguments(scenario).text, "export");
  if (!launch) return std::nullopt;
  ProblemList problems("export");
  MegatronSettings settings(*launch, problems);
  ModelSpec model = model_of(settings);
  // Exports have no argument for some activations, which launches state.
  if (shipped.mlp.activation == like.model.mlp.activation &&
      shipped.mlp.gated == like.model.mlp.gated) {
    model.mlp.activation = shipped.mlp.activation;
    model.mlp.gated = shipped.mlp.gated;
  }
  return problems.empty() ? std::optional(std::move(model)) : std::nullopt;
}

bool has_sizes_of(const ModelSpec& a, const ModelSpec& b) {
  const auto width = [](const ModelSpec& model) {
    return model.moe ? model.moe->expert_ffn * model.moe->experts : model.mlp.ffn_hidden;
  };
  return a.layers == b.layers && a.hidden == b.hidden && a.attention.heads == b.attention.heads &&
         a.attention.kv_heads == b.attention.kv_heads && width(a) == width(b);
}

// The number of further fields in which two models of the same sizes agree.
int likeness(const ModelSpec& a, const ModelSpec& b) {
  return int{a.rope_theta == b.rope_theta} + int{a.position == b.position} +
         int{a.max_seq_len == b.max_seq_len} + int{a.norm == b.norm} +
         int{a.norm_epsilon == b.norm_epsilon} + int{a.tied_embeddings == b.tied_embeddings} +
         int{a.attention.qkv_bias == b.attention.qkv_bias} + int{a.mlp == b.mlp} +
         int{a.moe == b.moe} + int{a.rope_scaling == b.rope_scaling};
}

struct KnownModels {
  // Models that the same arguments describe.
  std::vector<const ModelSpec*> equal;
  // Models of the same sizes, which these are among; the most similar come first.
  std::vector<const ModelSpec*> alike;
};

KnownModels known_models(const Scenario& imported) {
  KnownModels known;
  for (const ModelSpec& shipped : shipped_model_specs()) {
    if (shipped.layers != imported.model.layers || shipped.hidden != imported.model.hidden)
      continue;
    const std::int64_t vocabulary = imported.model.vocab;
    // Logs may state it padded.
    if (vocabulary > 0 && (shipped.vocab > vocabulary || vocabulary > shipped.vocab + 8192))
      continue;
    if (has_sizes_of(shipped, imported.model)) known.alike.push_back(&shipped);
    auto described = exported_model(shipped, imported);
    if (!described) continue;
    described->vocab = imported.model.vocab;
    if (*described == imported.model) known.equal.push_back(&shipped);
  }
  std::stable_sort(known.alike.begin(), known.alike.end(),
                   [&](const ModelSpec* a, const ModelSpec* b) {
                     return likeness(*a, imported.model) > likeness(*b, imported.model);
                   });
  return known;
}

const ModelSpec& preferred(const std::vector<const ModelSpec*>& models, const std::string& name) {
  const auto named = std::find_if(models.begin(), models.end(),
                                  [&](const ModelSpec* each) { return each->name == name; });
  return named == models.end() ? *models.front() : **named;
}

std::string names_of_models(const std::vector<const ModelSpec*>& models) {
  std::vector<std::string> names;
  for (const ModelSpec* each : models) names.push_back(each->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The file's name, or that of the run's folder where all runs have files of one name, as in
// "llama/iter_0000100/mp_rank_00/model_optim_rng.pt".
std::string name_of_source(std::filesystem::path source) {
  const auto says_nothing = [](const std::string& name) {
    return name == "common" || name == "model_optim_rng" || name == "run_config" ||
           name == "release" || name.starts_with("iter_") || name.starts_with("mp_rank_");
  };
  std::string name = source.stem().string();
  while (says_nothing(name) && source.has_parent_path() && source != source.parent_path()) {
    source = source.parent_path();
    name = source.filename().string();
  }
  return name.empty() || says_nothing(name) ? "imported" : name;
}

// The shipped model whose name is a part of a path: an id of Hugging Face, or a folder named after
// it. None if there is none.
const ModelSpec* model_in_path(const std::string& path) {
  const auto has_name = [](const ModelSpec& model, const std::string& part) {
    const auto is_name = [&](const std::string& name) {
      return same_name(name, part) || same_name(name.substr(name.rfind('/') + 1), part);
    };
    return is_name(model.name) || std::ranges::any_of(model.aliases, is_name);
  };
  for (const std::filesystem::path& part : std::filesystem::path(path))
    for (const ModelSpec& model : shipped_model_specs())
      if (has_name(model, part.string())) return &model;
  return nullptr;
}

const ModelSpec* model_of_tokenizer(MegatronSettings& settings) {
  const ModelSpec* model = nullptr;
  for (const char* name : {"tokenizer_model", "tokenizer_name_or_path"})
    if (model == nullptr) model = model_in_path(settings.text(name));
  return model;
}

// Megatron-LM pads the vocabulary to a multiple that each tensor-parallel rank can divide.
void pad_vocabulary(MegatronSettings& settings, std::int64_t tp, ModelSpec& model) {
  const std::int64_t multiple = settings.count("make_vocab_size_divisible_by", 0);
  constexpr std::int64_t kMost = 1'000'000;
  if (multiple > kMost)
    return settings.refuse_value("make_vocab_size_divisible_by",
                                 fmt::format("at most {}", format_count(kMost)));
  if (multiple == 0 || settings.count("padded_vocab_size")) return;
  const std::int64_t unit = multiple * tp;
  model.vocab = (model.vocab + unit - 1) / unit * unit;
}

void find_vocabulary(const KnownModels& known, const std::string& name, const ModelSpec* tokenizer,
                     ImportedPlan& imported) {
  ModelSpec& model = imported.scenario.model;
  // GPT-2's, padded to a multiple of 128.
  constexpr std::int64_t kUsualVocabulary = 50'304;
  std::string source = "as GPT-2's padded one: no argument states it";
  if (tokenizer != nullptr) {
    source = fmt::format("as that of {}, whose tokenizer the arguments name", tokenizer->name);
  } else if (known.alike.empty()) {
    model.vocab = kUsualVocabulary;
  } else {
    const ModelSpec& like = preferred(known.alike, name);
    model.vocab = like.vocab;
    source = fmt::format("as that of {}: no argument states it", like.name);
  }
  imported.assumed.push_back(
      fmt::format("the vocabulary has {} tokens, {}", format_count(model.vocab), source));
}

}  // namespace

void identify_model(const LaunchArguments& launch, MegatronSettings& settings,
                    ImportedPlan& imported) {
  ModelSpec& model = imported.scenario.model;
  const std::int64_t stated = model.vocab;
  const ModelSpec* tokenizer = stated > 0 ? nullptr : model_of_tokenizer(settings);
  if (tokenizer != nullptr) model.vocab = tokenizer->vocab;
  const KnownModels known = known_models(imported.scenario);
  std::string name = exported_names(launch).model;
  if (name.empty() && tokenizer != nullptr) name = tokenizer->name;
  if (!known.equal.empty()) {
    const ModelSpec& shipped = preferred(known.equal, name);
    const bool predicts = model.mtp_layers > 0;
    if (known.equal.size() > 1 && shipped.name != name)
      imported.assumed.push_back(fmt::format("the model is {}: {} have the same arguments",
                                             shipped.name, names_of_models(known.equal)));
    imported.scenario.plan.multi_token_prediction = shipped.mtp_layers == 0 || predicts;
    model = shipped;
    if (stated > 0) model.vocab = stated;
  } else {
    model.name = name_of_source(launch.source);
    if (stated == 0) find_vocabulary(known, name, tokenizer, imported);
  }
  pad_vocabulary(settings, imported.scenario.plan.tp, model);
}

}  // namespace shardwright::planner
