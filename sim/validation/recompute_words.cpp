#include "sim/validation/recompute_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <regex>
#include <utility>

#include "core/base/letters_and_digits.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

// The first number of a text, of layers; 0 without one, a million for more.
std::int64_t number_in(std::string_view text) {
  const auto place = text.find_first_of("0123456789");
  std::int64_t number = 0;
  if (place == std::string_view::npos) return number;
  const auto read = std::from_chars(text.data() + place, text.data() + text.size(), number);
  constexpr std::int64_t kMost = 1'000'000;
  return read.ec == std::errc() ? std::min(number, kMost) : kMost;
}

bool tells_nothing(std::string_view text) {
  return says_any(text, {"unknown", "unstated", "unspecified", "unclear", "not stated", "not said",
                         "not specified", "not reported", "not given", "not known"});
}

// "no", "off (it fits)", "without checkpointing", "gradient_checkpointing=false".
bool denies_recomputation(std::string_view text, const std::string& words) {
  static const std::regex kDenial(
      R"(^\W*(?:none|no|not|never|off|false|disabled?|without|0)\b|^\W*n/?a\W*$)", icase);
  return std::regex_search(std::string(text), kDenial) ||
         says_any(words, {"norecompute", "nocheckpoint", "withoutrecompute", "noactivation"}) ||
         denies_any(text, {"recomput", "checkpoint", "remat"});
}

// Of "every 4 layers", "every other layer"; 0 without such words.
std::int64_t interval_in(const std::string& words) {
  const auto place = words.find("every");
  if (place == std::string::npos) return 0;
  const std::string_view rest = std::string_view(words).substr(place + 5);
  return rest.starts_with("second") || rest.starts_with("other") ? 2 : number_in(rest);
}

// "Four layers" as "4 layers".
std::string with_digits(std::string_view text) {
  constexpr std::array kNumbers = {"one",   "two",   "three", "four", "five",   "six",
                                   "seven", "eight", "nine",  "ten",  "eleven", "twelve"};
  static const std::regex kWord(
      R"(\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?= (?:transformer |decoder |pipeline )?(?:layer|block|stage|of))s?)");
  std::string rest = lower_case(text), said;
  for (std::smatch match; std::regex_search(rest, match, kWord); rest = match.suffix().str()) {
    const auto* const number = std::find(kNumbers.begin(), kNumbers.end(), match[1].str());
    said += match.prefix().str() + std::to_string(number - kNumbers.begin() + 1);
  }
  return said + rest;
}

bool counts_per_stage(const std::string& text) {
  static const std::regex kEach(
      R"(\b(?:per|(?:of|in|on|for) (?:each|every|a)|each) (?:virtual |pipeline |pp |vpp )*(?:stage|chunk|rank)\b)");
  return std::regex_search(text, kEach);
}

RecomputeWords full_on(std::int64_t layers, LayersOf of) {
  return {RecomputePolicy::Full, layers, 1, of};
}

// "Full except the last 4 layers", "none for the last stage, full otherwise": layers or stages
// that are left out. A number that is not there is 1 with a place ("the last layer").
std::optional<RecomputeWords> all_but_some(const std::string& text) {
  static const std::string kPart =
      R"((?:(?:first|last|final|top|bottom|initial)\b ?(\d{1,4})?|(\d{1,4})) ?(?:(?:\w{1,14} )?(layer|block|stage)s?\b|(?=[;,.) ]*$)))";
  static const std::string kOf = R"((?:(?:for|on|in|of|at|that of|those of) )?(?:the )?)";
  static const std::regex kBefore(
      R"(\b(?:except(?:ing)?|excluding|but|apart from|minus|other than|skip(?:s|ping)?)"
      R"(|(?:none|not?|never|without)(?: (?:full|activation|gradient))?(?: (?:recomput|checkpoint)\w{0,9})?),? )" +
      kOf + kPart);
  static const std::regex kBehind(
      kPart +
      R"(,? (?:(?:is|are|was|were|being) )?(?:excluded|exempt(?:ed)?|left out|skipped|not (?:recomputed|checkpointed|included)|(?:without|no) (?:recomput|checkpoint)\w{0,9}|none\b|(?:kept|stored) in full))");
  std::smatch match;
  if (!std::regex_search(text, match, kBefore) && !std::regex_search(text, match, kBehind))
    return std::nullopt;
  const std::int64_t number = std::max<std::int64_t>(1, number_in(match[1].str() + match[2].str()));
  if (match[3] == "stage") return full_on(number, LayersOf::AllButStage);
  return full_on(number, counts_per_stage(text) ? LayersOf::AllButChunk : LayersOf::AllButModel);
}

// 0 where none of them is.
std::optional<double> share_in(const std::string& text) {
  static const std::regex kOf(
      R"(\b(\d{1,4}) ?(?:/|of|out of) ?(?:the |all |its |a total of )?(\d{1,4})(?= ?(?:$|[;,.)]|(?:\w{1,14} )?(?:layer|block)s?\b)))");
  static const std::regex kPercent(
      R"(\b(\d{1,3}(?:\.\d{1,4})?) ?(?:%|percent)(?= ?(?:$|[;,)]|(?:of )?(?:the |all |its )?(?:\w{1,14} )?(?:layer|block|activation)s?\b)))");
  static const std::regex kRatio(R"((?:^|[ =:(])(0?\.\d{1,4}|1\.0)(?![\w.]))");
  static const std::regex kWord(
      R"(\b(half|(?:a|one|1) (?:third|quarter))(?: of)?(?: (?:the|all|its))?(?= ?$| ?[;,.)]| (?:\w{1,14} )?(?:layer|block)s?\b))");
  std::smatch match;
  double share = -1.0;
  if (std::regex_search(text, match, kOf))
    share = std::stod(match[1]) / std::max(1.0, std::stod(match[2]));
  else if (std::regex_search(text, match, kPercent))
    share = std::stod(match[1]) / 100.0;
  else if (std::regex_search(text, match, kRatio))
    share = std::stod(match[1]);
  else if (std::regex_search(text, match, kWord))
    share = match[1] == "half" ? 0.5 : match[1].str().ends_with("third") ? 1.0 / 3.0 : 0.25;
  return share >= 0.0 && share <= 1.0 ? std::optional(share) : std::nullopt;
}

// "The first 8 layers", "layers 0-15".
std::optional<RecomputeWords> some_in(const std::string& text) {
  static const std::regex kFirst(
      R"(\b(?:first|last|final|top|bottom|initial) (\d{1,4} )?(?:\w{1,14} )?(?:layer|block)s?\b)");
  static const std::regex kRange(
      R"(\b(?:layers|blocks) (\d{1,4}) ?(?:-|\.\.|to|through|until) ?(\d{1,4})\b)");
  const LayersOf of = counts_per_stage(text) ? LayersOf::Chunk : LayersOf::Model;
  std::smatch match;
  if (std::regex_search(text, match, kFirst))
    return full_on(std::max<std::int64_t>(1, number_in(match[1].str())), of);
  if (!std::regex_search(text, match, kRange)) return std::nullopt;
  const std::int64_t first = number_in(match[1].str()), last = number_in(match[2].str());
  return last >= first ? std::optional(full_on(last - first + 1, of)) : std::nullopt;
}

// "Full in the first stage", which no plan can say.
bool names_stage_alone(const std::string& text) {
  static const std::regex kStage(
      R"(\b(?:first|last|final|1|2|3|4) (?:\w{1,14} )?stages?(?: only)?\b)");
  return !counts_per_stage(text) && std::regex_search(text, kStage);
}

std::optional<RecomputeWords> part_in(const std::string& text) {
  if (const auto all_but = all_but_some(text)) return all_but;
  if (const auto share = share_in(text)) {
    if (*share == 0.0) return RecomputeWords{};
    return RecomputeWords{RecomputePolicy::Full, 0, 1, LayersOf::Chunk, *share};
  }
  return some_in(text);
}

std::int64_t counted(std::int64_t chunk, double layers) {
  return std::clamp<std::int64_t>(std::llround(layers), 1, chunk);
}

}  // namespace

std::optional<RecomputeWords> recompute_in(std::string_view text) {
  const std::string words = letters_and_digits(text);
  if (tells_nothing(text)) return std::nullopt;
  const std::string numbered = with_digits(text.substr(0, kMostRead));
  const bool selective_alone = says(text, "selective") && !says(text, "full");
  if (const auto part = part_in(numbered); part && !selective_alone) return part;
  // "sac" is PyTorch's selective checkpointing; "minimal" is MaxText's policy that keeps the
  // results of matrix products.
  if ((says_any(words, {"selective", "coreattn", "coreattention"}) &&
       !denies_any(text, {"selective", "core"})) ||
      is_any(words, {"attention", "attn", "attentiononly", "attnonly", "sac", "minimal"}))
    return RecomputeWords{RecomputePolicy::Selective};
  if (denies_recomputation(text, words)) return RecomputeWords{};
  if (const std::int64_t every = interval_in(words); every > 1)
    return RecomputeWords{RecomputePolicy::Full, 0, every};
  if (names_stage_alone(numbered)) return std::nullopt;
  // A part of each layer, as no policy has it.
  if (says_any(words, {"mlp", "ffn", "layernorm", "moeact"}) && !says_any(words, {"full"}))
    return std::nullopt;
  if (says_any(words, {"uniform"})) return RecomputeWords{RecomputePolicy::Full};
  if (says_any(words, {"full", "block"})) return full_on(number_in(numbered), LayersOf::Chunk);
  if (is_any(words, {"true", "yes", "on", "enabled", "all", "everylayer"}) ||
      says_any(words, {"checkpoint", "recompute"}))
    return RecomputeWords{RecomputePolicy::Full};
  return std::nullopt;
}

bool recomputes_part_of_layers(const std::string& text) {
  return part_in(with_digits(text.substr(0, kMostRead))).has_value();
}

std::string set_recompute(const RecomputeWords& words, const ModelSpec& model, Plan& plan) {
  plan.recompute = words.policy;
  plan.recompute_layers = 0;
  if (words.policy != RecomputePolicy::Full) return "";
  const std::int64_t chunk = plan.even_chunk(model.layers);
  std::int64_t layers = chunk;
  std::string beside;
  const bool left_out = words.of == LayersOf::AllButChunk ||
                        (words.of == LayersOf::AllButModel && plan.chunks() == 1);
  if (words.every > 1) {
    layers = std::max<std::int64_t>(1, chunk / words.every);
  } else if (words.share < 1.0) {
    layers = counted(chunk, words.share * static_cast<double>(chunk));
  } else if (words.of == LayersOf::Model) {
    layers = counted(chunk, static_cast<double>(words.layers) / static_cast<double>(plan.chunks()));
    if (plan.chunks() > 1) beside = "the chunks have even shares of them";
  } else if (words.of == LayersOf::Chunk) {
    if (words.layers > 0) layers = std::min(words.layers, chunk);
  } else if (left_out) {
    layers = chunk - words.layers;
    if (layers <= 0) plan.recompute = RecomputePolicy::None;
  } else {
    // Those stages that recompute all of their layers take the most time.
    beside = "those that are left out are not simulated";
  }
  plan.recompute_layers = layers < chunk ? std::max<std::int64_t>(layers, 0) : 0;
  return beside;
}

}  // namespace shardwright::sim
