#include "executor/checkpoint/weight_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/spec/huggingface.hpp"
#include "executor/checkpoint/architecture.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/data/content_sum.hpp"

namespace shardwright::executor {
namespace {

using nlohmann::json;

constexpr const char* kIndexFile = "model.safetensors.index.json";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// The files that an index names (huggingface.co/docs/transformers, "Sharded checkpoints").
std::set<std::string> files_in(const std::filesystem::path& index) {
  const json document = read_json_file(index);
  ProblemList problems(index.string());
  ObjectReader reader(document, "", problems);
  ObjectReader map = reader.object("weight_map");
  std::set<std::string> names;
  for (const std::string& tensor : map.keys()) names.insert(map.text(tensor));
  problems.throw_if_any();
  return names;
}

// A member's text, or what is there in its place.
std::string text_of(const json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  return found->is_string() ? found->get<std::string>() : shown(*found);
}

// What a spec does not carry: families whose layers look like Llama's and compute something else
// (Gemma scales embeddings and norms), and stretched rotary angles.
void check_architecture(const json& config, ProblemList& problems) {
  const std::string type = text_of(config, "model_type", "");
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "gpt2")
    problems.add("config.json, /model_type", type, "llama, mistral, qwen2 or gpt2");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto scaling = config.find(key);
    if (scaling == config.end() || !scaling->is_object()) continue;
    const std::string kind = text_of(*scaling, "rope_type", text_of(*scaling, "type", "default"));
    if (kind != "default") {
      problems.add(fmt::format("config.json, /{}", key), kind,
                   "default: the executor does not stretch rotary angles");
    }
  }
}

}  // namespace

WeightFiles::WeightFiles(const std::filesystem::path& from) : from_(from) {
  std::error_code error;
  if (std::filesystem::is_directory(from, error)) {
    open_folder();
  } else if (std::filesystem::exists(from, error)) {
    open_file(from);
  } else {
    throw InputError("--init-from", {{"", from.string(), "a file or folder that exists"}});
  }
}

void WeightFiles::open_folder() {
  std::set<std::string> names = {kModelFile};
  if (std::filesystem::exists(from_ / kIndexFile)) names = files_in(from_ / kIndexFile);
  for (const std::string& name : names) {
    if (!std::filesystem::exists(from_ / name)) {
      throw InputError("--init-from", {{"", (from_ / name).string() + ", which is not there",
                                        "the model's safetensors files"}});
    }
    open_file(from_ / name);
  }
}

void WeightFiles::open_file(const std::filesystem::path& file) {
  try {
    files_.push_back(std::make_unique<SafetensorsFile>(file, SafetensorsFile::Access::Read));
  } catch (const RuntimeFailure& failure) {
    throw InputError("--init-from", {{"", failure.what(), "a whole safetensors file"}});
  }
}

const SafetensorsFile::View* WeightFiles::find(const std::string& name) const {
  for (const std::string& spelling : {name, name.substr(name.find('.') + 1)}) {
    for (const auto& file : files_) {
      if (const auto* view = file->find(spelling)) return view;
    }
  }
  return nullptr;
}

void WeightFiles::check(const ModelSpec& model) const {
  ProblemList problems(from_.string());
  for (const StoredTensor& wanted : stored_tensors(model)) {
    const SafetensorsFile::View* view = find(wanted.name);
    if (view == nullptr) {
      problems.add(wanted.name, "nothing", "a tensor of " + shape_text(wanted.shape));
    } else if (view->shape != wanted.shape) {
      problems.add(wanted.name, shape_text(view->shape), shape_text(wanted.shape));
    } else if (!view->is_readable()) {
      problems.add(wanted.name, view->format, "F32, BF16 or F16");
    }
  }
  check_config(model, problems);
  problems.throw_if_any();
}

void WeightFiles::check_config(const ModelSpec& model, ProblemList& problems) const {
  const auto file = from_ / "config.json";
  if (!std::filesystem::exists(file)) return;
  const json config = read_json_file(file);
  const json here = architecture_of(import_huggingface(config, file.string())).flatten();
  check_architecture(config, problems);
  const json plan = architecture_of(model).flatten();
  for (const auto& [field, value] : plan.items()) {
    const json other = here.value(field, json());
    if (other != value)
      problems.add("config.json, as " + field, other.dump(), value.dump() + ", as in the plan");
  }
}

std::string WeightFiles::sum() const {
  std::uint64_t sum = 0;
  for (const auto& file : files_) sum = content_sum(file->content(), sum);
  return sum_text(sum);
}

SafetensorsFile::View WeightFiles::tensor(const std::string& name) const {
  const SafetensorsFile::View* view = find(name);
  SHARDWRIGHT_CHECK(view != nullptr, "weights that were not checked: " + name);
  return *view;
}

}  // namespace shardwright::executor
