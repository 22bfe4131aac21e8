#include "core/spec/profile_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/data_directory.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/nearest_name.hpp"
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
  return folder.substr(0, folder.size() - 1);
}

// The file that a user's name or path means.
fs::path profile_file(const std::string& folder, const std::string& name_or_path) {
  if (is_path(name_or_path)) return name_or_path;
  const std::vector<std::string> names = shipped(folder);
  if (std::ranges::find(names, name_or_path) == names.end()) {
    throw InputError(name_or_path,
                     {{"", fmt::format("no {} of this name", singular(folder)),
                       one_of(name_or_path, names) + ", or the path of a JSON file"}});
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

// ASCII alone, whatever the locale.
char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_letter_or_digit(char c) {
  const char small = to_lower(c);
  return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9');
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "8xH100": the count in front of a product name is no part of it.
std::string without_count(const std::string& word) {
  const auto x = word.find('x');
  if (x != std::string::npos && x + 1 < word.size() && is_number(word.substr(0, x)))
    return word.substr(x + 1);
  return word;
}

// Lower-case words of letters and digits; "80 GB" is one word.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&words, &word] {
    if (word == "gb" && !words.empty() && is_number(words.back())) {
      words.back() += word;
    } else if (!word.empty()) {
      words.push_back(without_count(word));
    }
    word.clear();
  };
  for (const char c : text) {
    if (is_letter_or_digit(c)) {
      word += to_lower(c);
    } else {
      finish();
    }
  }
  finish();
  return words;
}

bool contains_all(const std::vector<std::string>& words, const std::vector<std::string>& wanted) {
  return std::ranges::all_of(wanted, [&words](const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  });
}

std::optional<double> stated_gigabytes(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() > 2 && word.size() < 8 && word.ends_with("gb") &&
        is_number(word.substr(0, word.size() - 2)))
      return std::stod(word);
  }
  return std::nullopt;
}

// One way to write one accelerator.
struct Spelling {
  std::string profile;
  std::vector<std::string> words;
  double gigabytes = 0.0;
};

std::vector<Spelling> read_spellings() {
  std::vector<Spelling> spellings;
  for (const std::string& name : shipped_accelerators()) {
    const AcceleratorSpec spec = load_accelerator(name);
    const double gigabytes = spec.memory / shardwright::gigabytes(1.0);
    spellings.push_back({name, words_of(name), gigabytes});
    for (const std::string& alias : spec.aliases)
      spellings.push_back({name, words_of(alias), gigabytes});
  }
  return spellings;
}

// GB, GiB and usable against physical memory differ by less than this.
constexpr double kMemoryTolerance = 0.08;

bool memory_fits(const Spelling& spelling, std::optional<double> stated) {
  return !stated || std::abs(*stated - spelling.gigabytes) <= kMemoryTolerance * spelling.gigabytes;
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
  const fs::path file = profile_file("stacks", name_or_path);
  return read_given_stack(read_json_file(file), file.string());
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

std::optional<std::string> find_accelerator(std::string_view spelling) {
  static const std::vector<Spelling> kSpellings = read_spellings();
  const std::vector<std::string> words = words_of(spelling);
  const std::optional<double> stated = stated_gigabytes(words);
  const Spelling* best = nullptr;
  for (const Spelling& candidate : kSpellings) {
    if (!contains_all(words, candidate.words) || !memory_fits(candidate, stated)) continue;
    if (best == nullptr || candidate.words.size() > best->words.size()) best = &candidate;
  }
  if (best == nullptr) return std::nullopt;
  return best->profile;
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
