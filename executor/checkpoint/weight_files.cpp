#include "executor/checkpoint/weight_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/huggingface.hpp"
#include "core/spec/model_json.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/data/hash.hpp"

namespace shardwright::executor {
namespace {

using nlohmann::json;

// Returns the members of the spec without the model's names, its source and what a plan chooses.
json architecture_of(const ModelSpec& model) {
  json document = to_json(model);
  for (const char* key : {"name", "family", "aliases", "source", "max_seq_len", "dropout"})
    document.erase(key);
  return document;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Returns the file of each tensor according to an index (huggingface.co/docs/transformers, "Sharded
// checkpoints").
std::map<std::string, std::string> read_index(const std::filesystem::path& index) {
  const json document = read_json_file(index);
  ProblemList problems(index.string());
  ObjectReader reader(document, "", problems);
  ObjectReader map = reader.object("weight_map");
  std::map<std::string, std::string> file_of;
  for (const std::string& tensor : map.keys()) {
    file_of[tensor] = map.name(tensor);
    if (file_of[tensor].find('/') != std::string::npos)
      map.problem_with(tensor, "a file of the same folder");
  }
  problems.throw_if_any();
  return file_of;
}

// Returns a member as text, or `fallback` if it is missing.
std::string config_text(const json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  return found->is_string() ? found->get<std::string>() : shown(*found);
}

// `fallback` is the value of a configuration without the key.
void require_setting(const json& config, const char* key, const char* fallback,
                     const char* expected, ProblemList& problems) {
  const std::string found = config_text(config, key, fallback);
  if (found != expected) problems.add(fmt::format("config.json, /{}", key), found, expected);
}

// transformers, GPT2Config: what scales the scores of attention.
void check_gpt2(const json& config, ProblemList& problems) {
  require_setting(config, "scale_attn_weights", "true", "true", problems);
  require_setting(config, "scale_attn_by_inverse_layer_idx", "false", "false", problems);
}

// transformers, DeepseekV2Config and DeepseekV3Config.
void check_deepseek(const json& config, const std::string& type, ProblemList& problems) {
  if (type == "deepseek_v3") require_setting(config, "rope_interleave", "true", "true", problems);
  const auto experts = config.find("n_routed_experts");
  if (experts == config.end() || experts->is_null()) return;
  require_setting(config, "scoring_func", type == "deepseek_v3" ? "sigmoid" : "softmax", "softmax",
                  problems);
  const auto scale = config.find("routed_scaling_factor");
  if (scale != config.end() && *scale != 1.0)
    problems.add("config.json, /routed_scaling_factor", shown(*scale), "1");
}

// Checks what a ModelSpec cannot express: families whose layers are named like Llama's and compute
// something else (Gemma scales embeddings and norms), and scaled rotary angles.
void check_architecture(const json& config, ProblemList& problems) {
  const std::string type = config_text(config, "model_type", "");
  constexpr std::array kKnown = {"llama", "mistral",     "qwen2",      "qwen3",
                                 "gpt2",  "deepseek_v2", "deepseek_v3"};
  if (std::find(kKnown.begin(), kKnown.end(), type) == kKnown.end())
    problems.add("config.json, /model_type", type,
                 fmt::format("one of {}", fmt::join(kKnown, ", ")));
  const bool deepseek = type.starts_with("deepseek");
  if (deepseek) check_deepseek(config, type, problems);
  if (type == "gpt2") check_gpt2(config, problems);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto scaling = config.find(key);
    if (scaling == config.end() || !scaling->is_object()) continue;
    const std::string kind =
        config_text(*scaling, "rope_type", config_text(*scaling, "type", "default"));
    const bool yarn = deepseek && kind == "yarn";
    if (kind != "default" && kind != "linear" && kind != "llama3" && !yarn) {
      problems.add(fmt::format("config.json, /{}", key), kind,
                   deepseek ? "default, linear, llama3 or yarn" : "default, linear or llama3");
    }
  }
}

// A section that only one of both has is one difference.
void add_differences(const std::string& place, const json& found, const json& expected,
                     ProblemList& problems) {
  if (!found.is_object() || !expected.is_object()) {
    if (found != expected)
      problems.add("config.json, as " + place, found.dump(), expected.dump() + ", as in the plan");
    return;
  }
  json both = found;
  both.update(expected);
  for (const auto& [key, unused] : both.items())
    add_differences(place + "/" + key, found.value(key, json()), expected.value(key, json()),
                    problems);
}

// True for tensors of older files that are no parameters: the causal mask and rotary angles.
bool is_buffer(const std::string& name, const SafetensorsFile::View& view) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with(".attn.masked_bias") ||
         (name.ends_with(".attn.bias") && view.shape.size() == 4);
}

bool is_embedding(const std::string& name) {
  return name.ends_with("embed_tokens.weight") || name.ends_with("wte.weight");
}

bool holds_the_same(const SafetensorsFile::View& a, const SafetensorsFile::View& b) {
  return a.format == b.format && a.shape == b.shape &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

}  // namespace

WeightFiles::WeightFiles(const std::filesystem::path& from) : from_(from) {
  std::error_code error;
  if (std::filesystem::exists(from / kIndexFile, error)) {
    open_index();
  } else if (std::filesystem::is_directory(from, error)) {
    open_file(from / kModelFile);
  } else if (std::filesystem::exists(from, error)) {
    open_file(from);
  } else {
    throw InputError("--init-from", {{"", from.string(), "a file or folder that exists"}});
  }
}

void WeightFiles::open_index() {
  ProblemList problems((from_ / kIndexFile).string());
  const std::map<std::string, std::string> file_of = read_index(from_ / kIndexFile);
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, name] : file_of) {
    const SafetensorsFile*& file = opened[name];
    if (file == nullptr) file = &open_file(from_ / name);
    if (file->find(tensor) == nullptr)
      problems.add("/weight_map/" + tensor, name + ", which has no such tensor",
                   "the file that has it");
  }
  problems.throw_if_any();
  tensors_.clear();
  for (const auto& [tensor, name] : file_of) tensors_[tensor] = opened.at(name)->find(tensor);
}

const SafetensorsFile& WeightFiles::open_file(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    throw InputError("--init-from", {{"", file.string() + ", which does not exist",
                                      "the model's safetensors files"}});
  }
  try {
    files_.push_back(std::make_unique<SafetensorsFile>(file, SafetensorsFile::Access::Read));
  } catch (const RuntimeFailure& failure) {
    throw InputError("--init-from", {{"", failure.what(), "a complete safetensors file"}});
  }
  for (const auto& [name, view] : files_.back()->tensors()) tensors_[name] = &view;
  return *files_.back();
}

const SafetensorsFile::View* WeightFiles::find(const std::string& name) const {
  for (const std::string& spelling : {name, name.substr(name.find('.') + 1)}) {
    if (const auto found = tensors_.find(spelling); found != tensors_.end()) return found->second;
  }
  return nullptr;
}

void WeightFiles::check(const ModelSpec& model) const {
  ProblemList problems(from_.string());
  std::set<const SafetensorsFile::View*> used;
  for (const StoredTensor& wanted : stored_tensors(model)) {
    const SafetensorsFile::View* view = find(wanted.name);
    used.insert(view);
    if (view == nullptr) {
      problems.add(wanted.name, "nothing", "a tensor of " + shape_text(wanted.shape));
    } else if (view->shape != wanted.shape) {
      problems.add(wanted.name, shape_text(view->shape), shape_text(wanted.shape));
    } else if (!view->is_readable()) {
      problems.add(wanted.name, view->format, "F32, BF16 or F16");
    }
  }
  check_others(model, used, problems);
  check_config(model, problems);
  problems.throw_if_any();
}

void WeightFiles::check_others(const ModelSpec& model,
                               const std::set<const SafetensorsFile::View*>& used,
                               ProblemList& problems) const {
  const auto embedding = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& tensor) {
    return used.contains(tensor.second) && is_embedding(tensor.first);
  });
  for (const auto& [name, view] : tensors_) {
    if (used.contains(view) || is_buffer(name, *view)) continue;
    const bool is_tied_head = model.tied_embeddings && name == "lm_head.weight";
    const bool is_there = embedding != tensors_.end();
    if (is_tied_head && is_there && holds_the_same(*view, *embedding->second)) continue;
    problems.add(name, shape_text(view->shape),
                 is_tied_head ? "the values of the embedding, which the plan's model shares"
                              : "no such tensor in the plan's model");
  }
}

void WeightFiles::check_config(const ModelSpec& model, ProblemList& problems) const {
  const auto file = from_ / "config.json";
  if (!std::filesystem::exists(file)) return;
  const json config = read_json_file(file);
  const json here = architecture_of(import_huggingface(config, file.string()));
  check_architecture(config, problems);
  add_differences("", here, architecture_of(model), problems);
}

std::string WeightFiles::checksum() const {
  std::uint64_t sum = 0;
  for (const auto& file : files_) sum = content_checksum(file->content(), sum);
  return checksum_text(sum);
}

SafetensorsFile::View WeightFiles::tensor(const std::string& name) const {
  const SafetensorsFile::View* view = find(name);
  SHARDWRIGHT_CHECK(view != nullptr, "weights that were not checked: " + name);
  return *view;
}

std::string architecture_checksum(const ModelSpec& model) {
  return checksum_text(key_of(0, architecture_of(model).dump()));
}

}  // namespace shardwright::executor
