#include "core/spec/huggingface.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/huggingface_config.hpp"
#include "core/spec/model_check.hpp"

namespace shardwright {
namespace {

struct ModelType {
  const char* name;
  ModelSpec (*read)(ObjectReader&);
};

// Sorted by name.
constexpr ModelType kModelTypes[] = {
    {"bloom", huggingface::read_bloom},
    {"cohere", huggingface::read_cohere},
    {"cohere2", huggingface::read_cohere2},
    {"deepseek_v2", huggingface::read_deepseek_v2},
    {"deepseek_v3", huggingface::read_deepseek_v3},
    {"deepseek_v32", huggingface::read_deepseek_v32},
    {"ernie4_5_moe", huggingface::read_ernie4_5_moe},
    {"falcon", huggingface::read_falcon},
    {"gemma", huggingface::read_gemma},
    {"gemma2", huggingface::read_gemma2},
    {"gemma3_text", huggingface::read_gemma3_text},
    {"glm4_moe", huggingface::read_glm4_moe},
    {"gpt2", huggingface::read_gpt2},
    {"gpt_neox", huggingface::read_gpt_neox},
    {"gpt_oss", huggingface::read_gpt_oss},
    {"granite", huggingface::read_granite},
    {"granitemoe", huggingface::read_granitemoe},
    {"kimi_k2", huggingface::read_deepseek_v3},
    {"llama", huggingface::read_llama},
    {"llama4_text", huggingface::read_llama4_text},
    {"minimax_m2", huggingface::read_minimax_m2},
    {"mistral", huggingface::read_mistral},
    {"mixtral", huggingface::read_mixtral},
    {"mpt", huggingface::read_mpt},
    {"nemotron", huggingface::read_nemotron},
    {"nemotron_h", huggingface::read_nemotron_h},
    {"olmo2", huggingface::read_olmo2},
    {"olmo3", huggingface::read_olmo3},
    {"opt", huggingface::read_opt},
    {"phi3", huggingface::read_phi3},
    {"qwen2", huggingface::read_qwen2},
    {"qwen2_moe", huggingface::read_qwen2_moe},
    {"qwen3", huggingface::read_qwen3},
    {"qwen3_moe", huggingface::read_qwen3_moe},
    {"qwen3_next", huggingface::read_qwen3_next},
    {"seed_oss", huggingface::read_seed_oss},
    {"starcoder2", huggingface::read_starcoder2},
};

// Types that see images: the language model, of another type, is a part of the file.
struct NestedType {
  const char* name;
  const char* text;
};
constexpr NestedType kNestedTypes[] = {
    {"gemma3", "gemma3_text"}, {"kimi_k25", "kimi_k2"}, {"llama4", "llama4_text"}};

const NestedType* find_nested(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kNestedTypes), std::end(kNestedTypes),
                   [&name](const NestedType& type) { return name == type.name; });
  return found == std::end(kNestedTypes) ? nullptr : found;
}

const ModelType* find_type(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kModelTypes), std::end(kModelTypes),
                   [&name](const ModelType& type) { return name == type.name; });
  return found == std::end(kModelTypes) ? nullptr : found;
}

// "meta-llama/Llama-2-7b-hf" and "/models/Llama-2-7b-hf/" both give "Llama-2-7b-hf".
std::string model_name(ObjectReader& config, const std::string& fallback) {
  const nlohmann::json& raw = config.raw("_name_or_path");
  std::string path = raw.is_string() ? raw.get<std::string>() : std::string();
  while (!path.empty() && path.back() == '/') path.pop_back();
  const std::string name = path.substr(path.find_last_of('/') + 1);
  return name.empty() || name.front() == '.' ? fallback : name;
}

ModelSpec read_checked(const ModelType& type, ObjectReader& config) {
  ProblemList& problems = config.problems();
  ModelSpec model = type.read(config);
  // Stand-ins of refused values would break further rules.
  problems.throw_if_any();
  check_model(
      model,
      [&config](const std::string& field) {
        return huggingface::field_pointer(config, config.pointer(), field);
      },
      problems);
  problems.throw_if_any();
  return model;
}

}  // namespace

std::vector<std::string> huggingface_model_types() {
  std::vector<std::string> names;
  for (const NestedType& type : kNestedTypes) names.emplace_back(type.name);
  for (const ModelType& type : kModelTypes) names.emplace_back(type.name);
  std::ranges::sort(names);
  return names;
}

ModelSpec import_huggingface(const nlohmann::json& value, const std::string& source) {
  ProblemList problems(source);
  ObjectReader config(value, "", problems);
  const std::string type_name = config.text("model_type");
  problems.throw_if_any();
  const NestedType* const nested = find_nested(type_name);
  const ModelType* const type = find_type(nested ? nested->text : type_name);
  if (type == nullptr) {
    const std::vector<std::string> known = huggingface_model_types();
    const Expected expected{fmt::format("one of {}", fmt::join(known, ", ")),
                            nearest_name(type_name, known)};
    throw InputError(source, {{"/model_type", shown(type_name), expected}});
  }
  ObjectReader text = nested ? config.object("text_config") : config;
  problems.throw_if_any();
  ModelSpec model = read_checked(*type, text);
  if (nested) model.not_simulated.emplace_back("the vision tower");
  model.family = type->name;
  model.name = model_name(config, type_name);
  model.source = source;
  return model;
}

}  // namespace shardwright
