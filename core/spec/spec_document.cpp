#include "core/spec/spec_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/batch_json.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/run_json.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

constexpr const char* kBase = "base";

json load_document(SpecKind kind, const std::string& name) {
  switch (kind) {
    case SpecKind::Model:
      return to_json(load_model(name));
    case SpecKind::Cluster:
      return to_json(load_cluster(name));
    case SpecKind::Run:
      return to_json(load_run(name));
    case SpecKind::Batch:
      return to_json(load_batch(name));
    case SpecKind::Stack:
      break;
  }
  return to_json(load_stack(name));
}

std::vector<std::string> shipped_names(SpecKind kind) {
  return kind == SpecKind::Model     ? shipped_models()
         : kind == SpecKind::Cluster ? shipped_clusters()
         : kind == SpecKind::Run     ? shipped_runs()
         : kind == SpecKind::Batch   ? shipped_batches()
                                     : shipped_stacks();
}

// Models, clusters and stacks also have aliases.
bool has_alias(SpecKind kind, const std::string& name, std::vector<std::string>& names) {
  const auto add = [&names](const auto& specs) {
    for (const auto& spec : specs)
      names.insert(names.end(), spec.aliases.begin(), spec.aliases.end());
  };
  if (kind == SpecKind::Model) add(shipped_model_specs());
  if (kind == SpecKind::Cluster) add(shipped_cluster_specs());
  if (kind == SpecKind::Stack) add(shipped_stack_specs());
  return std::ranges::any_of(names,
                             [&](const std::string& other) { return same_name(other, name); });
}

// The libraries also take paths, which would tie a file to the place where it is read.
bool may_be_path(std::string_view name) {
  return name.empty() || name == "-" || name.find('/') != std::string_view::npos ||
         name.find(".json") != std::string_view::npos;
}

// The part's readers throw problems of their own; they are collected here, at the part's place in
// the file.
template <class Spec>
Spec read_part(ObjectReader& object, const std::string& key,
               Spec (*read)(const nlohmann::json&, const std::string&)) {
  const nlohmann::json& part = object.raw(key);
  if (!part.is_object() && (!part.is_string() || may_be_path(part.get_ref<const std::string&>()))) {
    object.problem_with(
        key,
        fmt::format("a {0}, the name of a shipped one, or a patch {{\"base\": NAME, …}}", key));
    return {};
  }
  try {
    return read(part, object.problems().source());
  } catch (const InputError& error) {
    object.problems().add_all(object.pointer() + "/" + key, error);
    return {};
  }
}

}  // namespace

json patch_at(std::string_view path, json value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {{std::string(path), std::move(value)}};
  return {{std::string(path.substr(0, dot)), patch_at(path.substr(dot + 1), std::move(value))}};
}

bool is_patch(const json& given) {
  return given.is_object() && given.contains(kBase);
}

const json& shipped_document(SpecKind kind, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::pair<SpecKind, std::string>, json> documents;
  // Shipped documents may be patches on others, so a document is loaded without the lock.
  {
    const std::lock_guard lock(mutex);
    if (const auto found = documents.find({kind, name}); found != documents.end())
      return found->second;
  }
  std::vector<std::string> names = shipped_names(kind);
  const bool known = std::ranges::find(names, name) != names.end();
  if (!known && !has_alias(kind, name, names))
    throw InputError(name, {{"", shown(name), one_of(name, names)}});
  json document = load_document(kind, name);
  const std::lock_guard lock(mutex);
  return documents.try_emplace({kind, name}, std::move(document)).first->second;
}

json whole_document(SpecKind kind, const json& given, const std::string& source) {
  const bool patch = is_patch(given);
  if (!patch && !given.is_string()) return given;
  const json& name = patch ? given.at(kBase) : given;
  const std::string place = patch ? std::string("/") + kBase : "";
  if (!name.is_string()) {
    throw InputError(source,
                     {{place, shown(name), std::string("the name of a shipped ") + name_of(kind)}});
  }
  json document;
  try {
    document = shipped_document(kind, name.get_ref<const std::string&>());
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = place + problem.where;
    throw InputError(source, std::move(problems));
  }
  if (!patch) return document;
  json changes = given;
  changes.erase(kBase);
  document.merge_patch(changes);
  return document;
}

ModelSpec read_given_model(const json& given, const std::string& source) {
  return read_model(whole_document(SpecKind::Model, given, source), source);
}

ClusterSpec read_given_cluster(const json& given, const std::string& source) {
  // A document brings its parts along.
  const PartLibrary no_parts = {[](const std::string&) { return std::vector<std::string>{}; },
                                [](const std::string&, const std::string& name) -> json {
                                  throw InputError(
                                      name, {{"", "the name \"" + name + "\"",
                                              "the part itself: a plan file is self-contained"}});
                                }};
  return read_cluster(whole_document(SpecKind::Cluster, given, source), source, no_parts);
}

StackSpec read_given_stack(const json& given, const std::string& source) {
  return read_stack(whole_document(SpecKind::Stack, given, source), source);
}

RunSpec read_given_run(const json& given, const std::string& source) {
  return read_run(whole_document(SpecKind::Run, given, source), source);
}

BatchSpec read_given_batch(const json& given, const std::string& source) {
  return read_batch(whole_document(SpecKind::Batch, given, source), source);
}

ModelSpec read_given_model(ObjectReader& object, const std::string& key) {
  return read_part<ModelSpec>(object, key, read_given_model);
}

ClusterSpec read_given_cluster(ObjectReader& object, const std::string& key) {
  return read_part<ClusterSpec>(object, key, read_given_cluster);
}

StackSpec read_given_stack(ObjectReader& object, const std::string& key) {
  return read_part<StackSpec>(object, key, read_given_stack);
}

RunSpec read_given_run(ObjectReader& object, const std::string& key) {
  return read_part<RunSpec>(object, key, read_given_run);
}

}  // namespace shardwright
