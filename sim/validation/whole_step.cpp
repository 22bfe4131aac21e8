#include "sim/validation/whole_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

// Steps of reinforcement learning also generate and score.
std::string reinforcement_in(const std::string& notes) {
  static const std::regex kOtherTime(
      R"(\b(?:before|prior to|ahead of|later|later used (?:for|in)|(?:used|meant|intended) (?:for|in)|followed by|then|after) (?:the )?(?:rlhf|ppo|grpo|dpo)\b)"
      R"(|\b(?:rlhf|ppo|grpo|dpo)[- ](?:tuned|trained|aligned|checkpoint|weights|data\w{0,4})\b)",
      icase);
  static const std::regex kNames(R"(\b(?:rlhf|ppo|grpo|dpo)\b)", icase);
  return affirmed_match(std::regex_replace(notes, kOtherTime, ""), kNames);
}

std::string inference_in(const std::string& notes) {
  static const std::regex kTraining(
      R"(\btraining (?:step|throughput|time|speed|iteration|run)s?\b)", icase);
  static const std::regex kInference(
      R"(\binference[- ](?:throughput|latency|speed|time|only|benchmark)\b|\b(?:measured|timed|benchmark) (?:in|at|during|of) inference\b)"
      R"(|\b(?:prefill(?:ing)?|decod(?:e|ing))[- ](?:only|throughput|latency|speed|time|benchmark)\b)"
      R"(|\b(?:text |token )?generation (?:throughput|latency|speed|only)\b)",
      icase);
  return std::regex_search(notes, kTraining) ? "" : affirmed_match(notes, kInference);
}

// A kernel or format that serves the forward pass alone is no measurement of it.
std::string forward_in(const std::string& notes) {
  static const std::regex kForward(
      R"((?:^|[;.,(:] ?)(?:the )?forward(?:[- ]pass)?[- ]only\b)"
      R"(|\bonly the forward pass (?:is|was) (?:timed|measured|run)\b)"
      R"(|\b(?:timed?|times|timing|measure[sd]?|benchmark(?:ed|s)?|latency|throughput) (?:\w{1,20} ){0,3}forward(?:[- ]pass)?[- ]only\b)",
      icase);
  return affirmed_match(notes, kForward);
}

std::string frozen_in(const std::string& notes) {
  static const std::regex kFrozen(
      R"(\bonly the (?:last|first|top|final) (?:\w{1,20} )?(?:layers?|blocks?) (?:is|are|was|were) (?:trained|updated|tuned|fine-?tuned))"
      R"(|\b(?:layers|blocks|backbone|weights|parameters|encoder|base model|embeddings?) (?:(?:is|are|was|were|kept|all) ){0,2}frozen\b)"
      R"(|\bfrozen (?:\w{1,20} )?(?:layers|blocks|backbone|weights|encoder|llm|language model|base model|embeddings?)\b)"
      R"(|\bfreez(?:es?|ing) (?:\w{1,20} ){0,3}(?:layers|blocks|backbone|weights|encoder|llm|embeddings?)\b)"
      R"(|\blinear prob(?:e|ing)\b)",
      icase);
  return affirmed_match(notes, kFrozen);
}

// "QLoRA baseline is elsewhere", "rather than LoRA": what was not measured here.
std::string without_other_runs(const std::string& notes) {
  static const std::regex kCompared(
      R"(\b(?:than|instead of|unlike|versus|vs\.?|as opposed to|against|compared (?:to|with)) (?:\w{1,20} ){0,2}q?(?:lora|dora|peft)\b)",
      icase);
  static const std::regex kElsewhere(
      R"(\b(?:elsewhere|(?:the )?(?:other|next|previous|another) (?:rows?|runs?|tables?|sections?|figures?))\b)",
      icase);
  constexpr const char* kEnds = ".,;()\n";
  const std::string read = std::regex_replace(notes.substr(0, kMostRead), kCompared, "");
  std::string kept;
  for (std::size_t begin = 0; begin < read.size();) {
    const std::size_t end = std::min(read.find_first_of(kEnds, begin), read.size() - 1) + 1;
    const std::string clause = read.substr(begin, end - begin);
    kept += std::regex_search(clause, kElsewhere) ? "." : clause;
    begin = end;
  }
  return kept;
}

bool serves_models(const std::string& stack) {
  return affirms_any(stack, {"vllm", "tensorrt-llm", "trt-llm", "sglang", "lmdeploy"});
}

}  // namespace

std::string no_whole_step(const TrainingRow& row) {
  if (!row.unreadable.empty()) return row.unreadable;
  if (says(row.flops_convention, "per-layer timing"))
    return "the time is that of a single layer, not of a step";
  for (const std::string& text : {without_other_runs(row.notes), row.model.name, row.stack})
    if (says_low_rank_adapters(text))
      return "LoRA: small matrices beside frozen weights are trained, which is not modelled";
  for (const auto words : {reinforcement_in, inference_in, forward_in})
    if (const std::string said = words(row.notes); !said.empty())
      return fmt::format("the notes say that this is no training step: \"{}\"", said);
  if (const std::string said = frozen_in(row.notes); !said.empty())
    return fmt::format("the notes say that not all weights are trained: \"{}\"", said);
  return serves_models(row.stack)
             ? fmt::format("\"{}\" serves models and does not train them", row.stack)
             : "";
}

}  // namespace shardwright::sim
