#include "sim/validation/model_names.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <regex>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/model_library.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

using Words = std::set<std::string>;

// "7b", "8x7b", "1t"; also "a3b", whose letter is a word of its own.
bool is_size(const std::string& word) {
  return is_digit(word.front()) && (!is_digit(word.back()) || word.find('b') != std::string::npos);
}

bool is_number(const std::string& word) {
  return is_digit(word.front()) && !is_size(word);
}

// Weights that were tuned from others have their sizes, and Megatron-LM's models are GPTs.
std::string family_of(const std::string& word) {
  static const std::map<std::string, std::string> kSame = {
      {"codellama", "llama"}, {"vicuna", "llama"},   {"alpaca", "llama"},
      {"bloomz", "bloom"},    {"zephyr", "mistral"}, {"megatron", "gpt"}};
  const auto found = kSame.find(word);
  return found == kSame.end() ? word : found->second;
}

// What a name may hold without meaning another model: owners, and how the weights were trained.
bool says_nothing(const std::string& word) {
  static const Words kNothing = {"meta", "facebook", "google",   "nvidia", "mistralai", "ai",
                                 "v",    "hf",       "base",     "chat",   "instruct",  "it",
                                 "code", "model",    "pretrain", "mlperf", "deduped"};
  return kNothing.contains(word);
}

// Words that make another architecture of a model.
bool changes_sizes(const std::string& word) {
  static const Words kOthers = {"moe",   "experts", "mini",  "small",  "medium", "large",  "omni",
                                "video", "neo",     "xl",    "nano",   "tiny",   "vision", "vl",
                                "audio", "hybrid",  "mamba", "pruned", "draft",  "x",      "neox"};
  return kOthers.contains(word) || is_size(word);
}

// In the order of the name.
std::vector<std::string> words_in_order(const std::string& name) {
  static const std::regex kOwner(R"(^.*/)");
  // Of the weights, behind their size: "Mistral-7B-Instruct-v0.1", but "Llama-v3.1-8B".
  static const std::regex kRelease(R"((\d[bmt]\b.*)[-_ ]v\d+(?:\.\d+)?\b)");
  // Lengths and number formats: "32k", "fp8".
  static const std::regex kOfTheRun(R"(\b(?:\d+k|(?:mx|nv)?(?:bf|fp|int)-?\d+)\b)");
  static const std::regex kWord(
      R"(\d+x\d+(?:\.\d+)?[bmt]?|\d+b\d+|\d+(?:\.\d+)?(?:\s?[bmt](?![a-z0-9]))?|[a-z]+)");
  std::string text = std::regex_replace(lower_case(name), kOwner, "");
  text = std::regex_replace(text, kRelease, "$1");
  text = std::regex_replace(text, kOfTheRun, "");
  std::vector<std::string> words;
  for (std::sregex_iterator match(text.begin(), text.end(), kWord), end; match != end; ++match) {
    std::string word = match->str();
    word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
    if (!says_nothing(word)) words.push_back(family_of(word));
  }
  return words;
}

Words words_of(const std::string& name) {
  const std::vector<std::string> words = words_in_order(name);
  return {words.begin(), words.end()};
}

struct KnownName {
  std::string letters;
  Words words;
  const ModelSpec* model = nullptr;
};

const std::vector<KnownName>& known_names() {
  static const std::vector<KnownName> kNames = [] {
    std::vector<KnownName> names;
    const auto add = [&names](const std::string& name, const ModelSpec& model) {
      names.push_back({letters_and_digits(name), words_of(name), &model});
    };
    for (const ModelSpec& model : shipped_model_specs()) {
      add(model.name, model);
      for (const std::string& alias : model.aliases) add(alias, model);
    }
    return names;
  }();
  return kNames;
}

// Numbers of more digits are years, dates and lengths.
bool is_version(const std::string& word) {
  constexpr std::size_t kDigits = 2;
  return is_number(word) && (word.size() <= kDigits || word.find('.') != std::string::npos);
}

bool stands_in(const Words& part, const Words& whole, OtherNumbers others) {
  if (!std::includes(whole.begin(), whole.end(), part.begin(), part.end())) return false;
  const bool sized = std::any_of(part.begin(), part.end(), is_size);
  if (!sized && others == OtherNumbers::Refused) return false;
  return std::all_of(whole.begin(), whole.end(), [&](const std::string& word) {
    if (part.contains(word)) return true;
    return !changes_sizes(word) && (others == OtherNumbers::Allowed || !is_version(word));
  });
}

}  // namespace

const ModelSpec* model_named(const std::string& name, OtherNumbers others) {
  const Words words = words_of(name);
  const std::string letters = letters_and_digits(name);
  if (letters.empty()) return nullptr;
  const KnownName* best = nullptr;
  for (const KnownName& known : known_names()) {
    if (known.words == words) return known.model;
    if (!stands_in(known.words, words, others)) continue;
    if (best == nullptr || known.words.size() > best->words.size()) best = &known;
  }
  if (best != nullptr) return best->model;
  for (const KnownName& known : known_names())
    if (known.letters == letters) return known.model;
  return nullptr;
}

std::set<std::string> family_words(const std::string& name) {
  const std::vector<std::string> words = words_in_order(name);
  const auto number =
      std::find_if(words.begin(), words.end(), [](const auto& word) { return is_digit(word[0]); });
  return {words.begin(), number};
}

std::int64_t experts_in_name(const std::string& name) {
  static const std::regex kExperts(R"(^(\d{1,4})x)");
  std::smatch match;
  for (const std::string& word : words_in_order(name))
    if (std::regex_search(word, match, kExperts)) return std::stoi(match[1]);
  return 0;
}

}  // namespace shardwright::sim
