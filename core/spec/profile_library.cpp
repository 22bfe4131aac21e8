#include "core/spec/profile_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/printable_text.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/spec_document.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

fs::path folder_path(const std::string& folder) {
  return data_directory() / "hardware_profiles" / folder;
}

std::vector<std::string> shipped(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_path(folder), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  if (error) {
    throw InputError(folder_path(folder).string(),
                     {{"", "a folder that cannot be read: " + error.message(),
                       "Shardwright's profiles (is SHARDWRIGHT_DATA right?)"}});
  }
  std::ranges::sort(names);
  return names;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

// "clusters": what the profiles of a folder are called one by one.
std::string singular(const std::string& folder) {
  return folder.substr(0, folder.size() - (folder.ends_with("ches") ? 2 : 1));
}

std::string lower(std::string text) {
  for (char& c : text)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// The shipped stacks whose framework or notes name a word: those of torchtitan or DeepSpeed have names of their own.
std::vector<std::string> stacks_that_name(const std::string& word) {
  constexpr std::size_t kLeastWord = 4;
  std::vector<std::string> found;
  if (word.size() < kLeastWord) return found;
  for (const std::string& name : shipped("stacks")) {
    const StackSpec stack = load_stack(name);
    const std::string words = lower(stack.capabilities.framework + " " + stack.notes);
    if (words.find(lower(word)) != std::string::npos) found.push_back(name);
  }
  return found;
}

// The file that a user's name or path means. `related` lists the names that an unknown name may stand for.
fs::path profile_file(const std::string& folder, const std::string& name_or_path,
                      std::vector<std::string> (*related)(const std::string&) = nullptr) {
  if (is_path(name_or_path)) return name_or_path;
  const std::vector<std::string> names = shipped(folder);
  if (std::ranges::find(names, name_or_path) == names.end()) {
    Expected expected = one_of(name_or_path, names);
    expected.text += ", or the path of a JSON file";
    const std::vector<std::string> others =
        related == nullptr ? std::vector<std::string>() : related(name_or_path);
    if (!others.empty())
      expected.text += fmt::format("; of {}: {}", printable(name_or_path), fmt::join(others, ", "));
    throw InputError(name_or_path,
                     {{"", fmt::format("no {} of this name", singular(folder)), expected}});
  }
  return folder_path(folder) / (name_or_path + ".json");
}

// Parts by name, or in files beside the cluster's own.
PartLibrary parts_beside(const fs::path& cluster_file) {
  return {.names = shipped,
          .read = [beside = cluster_file.parent_path()](const std::string& folder,
                                                        const std::string& name) {
            return read_json_file(name.ends_with(".json") ? beside / name
                                                          : folder_path(folder) / (name + ".json"));
          }};
}

template <class Spec>
std::vector<Spec> load_all(const std::vector<std::string>& names,
                           Spec (*load)(const std::string& name)) {
  std::vector<Spec> specs;
  for (const std::string& name : names) specs.push_back(load(name));
  return specs;
}

}  // namespace

ClusterSpec load_cluster(const std::string& name_or_path) {
  const fs::path file = profile_file("clusters", name_or_path);
  const json document = read_json_file(file);
  return is_patch(document) ? read_given_cluster(document, file.string())
                            : read_cluster(document, file.string(), parts_beside(file));
}

StackSpec load_stack(const std::string& name_or_path) {
  const fs::path file = profile_file("stacks", name_or_path, stacks_that_name);
  return read_given_stack(read_json_file(file), file.string());
}

RunSpec load_run(const std::string& name_or_path) {
  const fs::path file = profile_file("runs", name_or_path);
  return read_given_run(read_json_file(file), file.string());
}

BatchSpec load_batch(const std::string& name_or_path) {
  const fs::path file = profile_file("batches", name_or_path);
  return read_given_batch(read_json_file(file), file.string());
}

AcceleratorSpec load_accelerator(const std::string& name_or_path) {
  const fs::path file = profile_file("accelerators", name_or_path);
  return read_accelerator(read_json_file(file), file.string());
}

std::vector<std::string> shipped_clusters() {
  return shipped("clusters");
}

std::vector<std::string> shipped_stacks() {
  return shipped("stacks");
}

std::vector<std::string> shipped_runs() {
  return shipped("runs");
}

std::vector<std::string> shipped_batches() {
  return shipped("batches");
}

std::vector<std::string> shipped_accelerators() {
  return shipped("accelerators");
}

const std::vector<ClusterSpec>& shipped_cluster_specs() {
  static const std::vector<ClusterSpec> kClusters = load_all(shipped_clusters(), load_cluster);
  return kClusters;
}

const std::vector<StackSpec>& shipped_stack_specs() {
  static const std::vector<StackSpec> kStacks = load_all(shipped_stacks(), load_stack);
  return kStacks;
}

std::optional<std::string> find_accelerator(const std::string& name) {
  static const std::map<std::string, std::string> kProfiles = [] {
    std::map<std::string, std::string> profiles;
    for (const std::string& profile : shipped_accelerators()) {
      profiles[profile] = profile;
      for (const std::string& alias : load_accelerator(profile).aliases) profiles[alias] = profile;
    }
    return profiles;
  }();
  const auto found = kProfiles.find(name);
  return found == kProfiles.end() ? std::nullopt : std::optional(found->second);
}

std::string stack_that_states(const std::string& name, const std::string& pointer) {
  static const std::map<std::string, json> kDocuments = [] {
    std::map<std::string, json> documents;
    for (const std::string& stack : shipped_stacks())
      documents[stack] = read_json_file(profile_file("stacks", stack));
    return documents;
  }();
  const auto found = kDocuments.find(name);
  if (found == kDocuments.end() || !is_patch(found->second) ||
      found->second.contains(json::json_pointer(pointer)))
    return name;
  return stack_that_states(found->second.at("base").get<std::string>(), pointer);
}

}  // namespace shardwright
