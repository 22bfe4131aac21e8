#include "sim/validation/noted_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>

#include "sim/validation/negation.hpp"
#include "sim/validation/noted_batch.hpp"
#include "sim/validation/noted_sharding.hpp"
#include "sim/validation/recompute_words.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

// What a figure counts ("MFU without recomputation") is not what ran.
bool speaks_of_a_figure(const std::string& clause) {
  static const std::regex kFigure(
      R"(\b(?:mfu|hfu|[kmgtp]?flops?|utili[sz]ation)\b|\brecomput\w{0,6} (?:(?:is|was|not) ){0,2}(?:counted|included)\b)",
      icase);
  return std::regex_search(clause, kFigure);
}

std::string without_clauses_of_figures(const std::string& notes) {
  std::string rest;
  for (std::size_t begin = 0; begin < notes.size();) {
    const std::size_t end = std::min(notes.find_first_of(";.,()", begin), notes.size() - 1) + 1;
    const std::string clause = notes.substr(begin, end - begin);
    if (!speaks_of_a_figure(clause)) rest += clause;
    begin = end;
  }
  return rest;
}

// A technique of recomputation with one word before or behind it: "full activation checkpointing",
// "recompute_granularity=full", "full AC".
std::regex recomputation_with(const std::string& word) {
  const std::string of = "(?:(?:activation|gradient|layer)[-_ ])?",
                    key = "(?:[-_ ](?:granularity|policy|mode))?";
  const std::string name = "(?:recomput\\w{0,6}|checkpointing|remat\\w{0,16}|ac\\b)";
  return std::regex("\\b" + word + "[- ]" + of + name + "|\\b" + of + name + key +
                        "(?: ?[=:] ?| )[\"']?" + word + "\\b",
                    icase);
}

bool says_recomputed(const std::string& text) {
  static const std::regex kOn(
      R"(\b(?:activation|gradient)[-_ ](?:recomput\w{0,6}|checkpointing)(?= ?(?:$|[;,.)+])))"
      R"(|\b(?:(?:activation|gradient)[-_ ]checkpointing|(?:activation[-_ ])?recomput\w{0,6}|checkpoint[-_ ]activations)(?: (?:is|was))? ?[=:]? ?(?:true|on|enabled|used|yes)\b)"
      R"(|\bwith (?:(?:activation|gradient) checkpointing|(?:activation )?recomputation)(?= ?(?:$|[;,.)+])))"
      R"(|\bactivations (?:are|were) (?:all )?recomputed\b)",
      icase);
  return !affirmed_match(text, kOn).empty();
}

bool denies_recomputation(const std::string& text) {
  static const std::regex kNoAc(
      R"(\b(?:no|without) AC\b|\bAC ?[=:]? ?(?:off|none|false|disabled)\b)", icase);
  return std::regex_search(text, kNoAc) ||
         denies_any(text, {"recomput", "activation recomput", "activation checkpoint",
                           "gradient checkpoint", "activation remat"});
}

// The part of the notes that says of how many layers the activations are recomputed; empty without.
std::string partial_recomputation_in(const std::string& notes) {
  static const std::regex kRecomputed(
      R"(\b(?:recomput\w{0,6}|(?:activation|gradient|layer)[-_ ]checkpoint\w{0,3}|remat\w{0,16})\b)",
      icase);
  constexpr std::size_t kLongest = 160;  // of a clause that is about it
  static const std::regex kLayers(R"(\b(?:layers?|blocks?|stages?)\b)", icase);
  for (std::size_t begin = 0; begin < notes.size();) {
    const std::size_t end =
        std::min({notes.find(';', begin), notes.find(". ", begin), notes.size()});
    std::string clause = notes.substr(begin, end - begin);
    begin = end + 1;
    if (clause.size() > kLongest || !std::regex_search(clause, kRecomputed)) continue;
    if (says(clause, "offload") || !std::regex_search(clause, kLayers)) continue;
    if (!speaks_of_a_figure(clause) && recomputes_part_of_layers(clause)) return clause;
  }
  return "";
}

// In the words of the field (recompute_words.hpp); empty if the notes say nothing of it. What only
// may have been recomputed ("where needed"), or is named in two ways, is left open.
std::string recomputation_in(const std::string& notes) {
  static const std::regex kEvery(
      R"(\b(?:activation |gradient )?(?:recomput\w{0,6}|checkpointing) (?:of |on )?every (?:\d{1,6}|other|second)(?:th)? layers?\b)",
      icase);
  // "minimal" is MaxText's, --recompute-activations Megatron-LM's name for it.
  static const std::regex kMinimal(
      R"(\bremat[-_ ]?policy ?[=:]? ?minimal|--recompute-activations\b)", icase);
  static const std::regex kFull = recomputation_with("full"),
                          kSelective = recomputation_with("selective");
  const std::string text = without_clauses_of_figures(notes);
  if (auto match = affirmed_match(text, kEvery); !match.empty()) return match;
  if (auto partial = partial_recomputation_in(notes); !partial.empty()) return partial;
  const bool selective =
      !affirmed_match(text, kSelective).empty() || !affirmed_match(text, kMinimal).empty();
  const bool full = !affirmed_match(text, kFull).empty();
  if (selective && full) return "";
  if (selective) return "selective";
  if (full || says_recomputed(text)) return "full";
  return denies_recomputation(text) ? "none" : "";
}

std::optional<bool> sequence_parallelism_in(const std::string& notes) {
  static const std::regex kOn(
      R"(\bsequence[-_ ]parallel(?:ism)?(?: (?:is|was))? ?[=:]? ?(?:true|on|enabled|used|yes)\b)"
      R"(|\bwith sequence[-_ ]parallel(?:ism)?\b)",
      icase);
  if (says(notes, "ulysses")) return std::nullopt;  // whose ranks are those of cp
  if (denies_any(notes, {"sequence parallel", "sequence-parallel", "sequence_parallel"}))
    return false;
  return affirmed_match(notes, kOn).empty() ? std::nullopt : std::optional(true);
}

// DeepSpeed-Ulysses calls its ranks sequence-parallel ones.
std::optional<std::int64_t> context_degree_in(const std::string& notes, bool ulysses) {
  static const std::regex kContext(
      R"(\b(?:context[-_ ]parallel(?:ism)?|cp)(?:[-_ ](?:size|degree))?(?: ?[=:] ?| of | )?\d{1,6}\b)"
      R"(|\b\d{1,6}-way context[-_ ]parallel)",
      icase);
  static const std::regex kSequence(
      R"(\b(?:(?:ulysses[-_ ])?sequence[-_ ]parallel(?:ism)?|sp|ulysses)(?:[-_ ](?:size|degree))?(?: ?[=:] ?| of | )?\d{1,6}\b)",
      icase);
  std::string match = affirmed_match(notes, kContext);
  if (match.empty() && ulysses) match = affirmed_match(notes, kSequence);
  const auto place = match.find_first_of("0123456789");
  std::int64_t degree = 0;
  if (place == std::string::npos) return std::nullopt;
  std::from_chars(match.data() + place, match.data() + match.size(), degree);
  return degree > 0 ? std::optional(degree) : std::nullopt;
}

// Replicas may count the ranks of context parallelism in (row_degrees.hpp).
bool agrees_with_degrees(const TrainingRow& row, std::int64_t cp) {
  const std::int64_t model = row.plan.tp.value_or(1) * row.plan.pp.value_or(1);
  if (row.cluster.gpus % cp != 0 || row.cluster.gpus / cp % model != 0) return false;
  if (!row.plan.dp) return true;
  const std::int64_t ranks = row.cluster.gpus / model, dp = *row.plan.dp;
  return dp == ranks / cp || (dp == ranks && dp % cp == 0) || !row.plan.tp || !row.plan.pp;
}

void complete_context(TrainingRow& row, std::vector<std::string>& filled_in) {
  if (row.plan.cp) return;
  const bool ulysses = affirms_any(row.notes, {"ulysses"}) || affirms_any(row.stack, {"ulysses"});
  const auto degree = context_degree_in(row.notes, ulysses);
  if (!degree) return;
  if (agrees_with_degrees(row, *degree)) {
    row.plan.cp = degree;
    filled_in.push_back(fmt::format("cp: {}, by the notes", *degree));
  } else {
    filled_in.push_back(
        fmt::format("cp {} of the notes does not agree with the degrees: not taken", *degree));
  }
}

}  // namespace

void complete_plan(TrainingRow& row, std::vector<std::string>& filled_in) {
  complete_context(row, filled_in);
  complete_sharding(row, filled_in);
  complete_batch(row, filled_in);
  if (row.plan.recompute.empty()) {
    row.plan.recompute = recomputation_in(row.notes);
    if (!row.plan.recompute.empty())
      filled_in.push_back(fmt::format("recompute: {}, by the notes", row.plan.recompute));
  }
  if (!row.plan.sequence_parallel) {
    row.plan.sequence_parallel = sequence_parallelism_in(row.notes);
    if (row.plan.sequence_parallel)
      filled_in.push_back(
          fmt::format("sequence_parallel: {}, by the notes", *row.plan.sequence_parallel));
  }
}

}  // namespace shardwright::sim
