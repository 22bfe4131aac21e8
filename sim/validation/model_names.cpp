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

// "7b", "8x7b", "1t", "8experts"; also "a3b", whose letter is a word of its own.
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

// Words that make another architecture of a model without them.
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
      R"(\d+x\d+(?:\.\d+)?[bmt]?|\d+b\d+|\d+[-_ ]?experts?|\d+(?:\.\d+)?(?:\s?[bmt](?![a-z0-9]))?|[a-z]+)");
  std::string text = std::regex_replace(lower_case(name), kOwner, "");
  text = std::regex_replace(text, kRelease, "$1");
  text = std::regex_replace(text, kOfTheRun, "");
  std::vector<std::string> words;
  for (std::sregex_iterator match(text.begin(), text.end(), kWord), end; match != end; ++match) {
    std::string word = match->str();
    std::erase_if(word, [](char c) { return c == ' ' || c == '-' || c == '_'; });
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
  Words of_any_name;  // of the model: "141b" beside "8x22b"
  const ModelSpec* model = nullptr;
};

const std::vector<KnownName>& known_names() {
  static const std::vector<KnownName> kNames = [] {
    std::vector<KnownName> names;
    for (const ModelSpec& model : shipped_model_specs()) {
      std::vector<std::string> spellings = {model.name};
      spellings.insert(spellings.end(), model.aliases.begin(), model.aliases.end());
      Words all;
      for (const std::string& spelling : spellings) all.merge(words_of(spelling));
      for (const std::string& spelling : spellings)
        names.push_back({letters_and_digits(spelling), words_of(spelling), all, &model});
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

// "MoE", "experts" and "8 experts" of a model that has so many.
bool says_what_is_sparse(const std::string& word, const ModelSpec& model) {
  if (!model.moe) return false;
  return is_any(word, {"moe", "experts"}) ||
         word.starts_with(std::to_string(model.moe->experts) + "expert");
}

bool stands_in(const KnownName& known, const Words& name, OtherNumbers others) {
  const Words& part = known.words;
  if (!std::includes(name.begin(), name.end(), part.begin(), part.end())) return false;
  const bool sized = std::any_of(part.begin(), part.end(), is_size);
  if (!sized && others == OtherNumbers::Refused) return false;
  return std::all_of(name.begin(), name.end(), [&](const std::string& word) {
    if (known.of_any_name.contains(word)) return true;
    if (says_what_is_sparse(word, *known.model)) return true;
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
    if (!stands_in(known, words, others)) continue;
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
