#include "core/spec/huggingface.hpp"

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
    {"deepseek_v2", huggingface::read_deepseek_v2},
    {"deepseek_v3", huggingface::read_deepseek_v3},
    {"falcon", huggingface::read_falcon},
    {"gemma", huggingface::read_gemma},
    {"gemma2", huggingface::read_gemma2},
    {"gemma3_text", huggingface::read_gemma3_text},
    {"gpt2", huggingface::read_gpt2},
    {"gpt_neox", huggingface::read_gpt_neox},
    {"llama", huggingface::read_llama},
    {"mistral", huggingface::read_mistral},
    {"mixtral", huggingface::read_mixtral},
    {"mpt", huggingface::read_mpt},
    {"opt", huggingface::read_opt},
    {"phi3", huggingface::read_phi3},
    {"qwen2", huggingface::read_qwen2},
    {"qwen2_moe", huggingface::read_qwen2_moe},
    {"qwen3", huggingface::read_qwen3},
    {"qwen3_moe", huggingface::read_qwen3_moe},
};

// Gemma 3 with vision: the language model is a part of its own. The vision tower is left out.
constexpr const char* kGemma3 = "gemma3";
constexpr const char* kGemma3Text = "gemma3_text";

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
  std::vector<std::string> names = {kGemma3};
  for (const ModelType& type : kModelTypes) names.emplace_back(type.name);
  std::ranges::sort(names);
  return names;
}

ModelSpec import_huggingface(const nlohmann::json& value, const std::string& source) {
  ProblemList problems(source);
  ObjectReader config(value, "", problems);
  const std::string type_name = config.text("model_type");
  problems.throw_if_any();
  const bool nested = type_name == kGemma3;
  const ModelType* const type = find_type(nested ? kGemma3Text : type_name);
  if (type == nullptr) {
    throw InputError(
        source, {{"/model_type", shown(type_name), one_of(type_name, huggingface_model_types())}});
  }
  ObjectReader text = nested ? config.object("text_config") : config;
  problems.throw_if_any();
  ModelSpec model = read_checked(*type, text);
  model.family = type->name;
  model.name = model_name(config, type_name);
  model.source = source;
  return model;
}

}  // namespace shardwright
