#include "core/spec/model_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/huggingface.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/spec_document.hpp"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path models_directory() {
  return data_directory() / "models";
}

ModelSpec read_either_format(const json& value, const std::string& source) {
  if (is_patch(value)) return read_given_model(value, source);
  if (value.is_object() && value.contains("schema")) return read_model(value, source);
  if (value.is_object() && value.contains("model_type")) return import_huggingface(value, source);
  throw InputError(source,
                   {{"", value.is_object() ? "none of the keys" : shown(value),
                     "a model: an object with \"schema\" (our own format), \"model_type\" (a "
                     "Hugging Face configuration) or \"base\" (a patch)"}});
}

// config.json says nothing about its model's name, its folder does.
std::string name_after(const fs::path& file) {
  if (file.filename() != "config.json") return file.stem().string();
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(file, ignored);
  return whole.parent_path().filename().string();
}

ModelSpec load_file(const fs::path& file) {
  const json value = read_json_file(file);
  ModelSpec model = read_either_format(value, file.string());
  if (!value.contains("schema") && !is_patch(value)) model.name = name_after(file);
  return model;
}

ModelSpec load_folder(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    throw InputError(folder.string(),
                     {{"", "a folder without config.json", "a Hugging Face model folder"}});
  }
  return load_file(file);
}

// A shipped model by name or alias; adds the names that it passes to `known`.
std::optional<ModelSpec> find_shipped(const std::string& name, std::vector<std::string>& known) {
  // The Hub ignores the case of its ids, so "qwen/qwen3-8b" means "Qwen/Qwen3-8B".
  const auto is_name = [&name](const std::string& other) { return same_name(other, name); };
  for (const std::string& shipped : shipped_models()) {
    ModelSpec model = load_file(models_directory() / (shipped + ".json"));
    const auto& aliases = model.aliases;
    if (is_name(shipped) || std::ranges::any_of(aliases, is_name)) return model;
    known.push_back(shipped);
    known.insert(known.end(), aliases.begin(), aliases.end());
  }
  return std::nullopt;
}

[[noreturn]] void refuse_name(const std::string& name, const std::vector<std::string>& known) {
  throw InputError(name, {{"", "no model of this name and no such file or folder",
                           known.empty() ? fmt::format("a file or a folder: {} holds no models",
                                                       models_directory().string())
                                         : one_of(name, known)}});
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || fs::path(text).extension() == ".json";
}

// True for "OWNER/NAME", an id of the Hugging Face Hub, which may also be a relative path.
bool looks_like_hub_id(const std::string& text) {
  const auto slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size() && text[0] != '.' &&
         text.find('/', slash + 1) == std::string::npos && fs::path(text).extension() != ".json";
}

}  // namespace

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(models_directory(), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

ModelSpec load_model(const std::string& name_or_path) {
  if (name_or_path == "-")
    return read_either_format(read_json_argument(name_or_path), argument_source(name_or_path));
  std::error_code ignored;
  std::vector<std::string> known;
  const bool is_path = looks_like_path(name_or_path);
  const bool hub_id = looks_like_hub_id(name_or_path) && !fs::exists(name_or_path, ignored);
  if (!is_path || hub_id) {
    if (auto model = find_shipped(name_or_path, known)) return *std::move(model);
    if (!fs::exists(name_or_path, ignored)) refuse_name(name_or_path, known);
  }
  if (fs::is_directory(name_or_path, ignored)) return load_folder(name_or_path);
  return load_file(name_or_path);
}

const std::vector<ModelSpec>& shipped_model_specs() {
  static const std::vector<ModelSpec> kModels = [] {
    std::vector<ModelSpec> models;
    for (const std::string& name : shipped_models()) models.push_back(load_model(name));
    return models;
  }();
  return kModels;
}

}  // namespace shardwright
