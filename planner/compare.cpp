#include "planner/compare.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "planner/objective.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& document, const Json::json_pointer& pointer) {
  return document.contains(pointer) ? document.at(pointer).dump() : "none";
}

// Other spellings of a part's name, remarks, and where its figures come from change no step.
bool is_remark(const std::string& field) {
  const auto holds = [&field](const char* key) { return field.find(key) != std::string::npos; };
  const auto ends = [&field](const char* key) { return field.ends_with(key); };
  return holds("/aliases/") || holds("/sources/") || holds("/filled_in/") || ends("/notes") ||
         ends("/source") || ends("/confidence");
}

// Leaves of either document that differ, but for remarks, in the order of the first, then those
// that only the second has.
std::vector<InputDifference> differences_of(const Json& first, const Json& second) {
  std::vector<InputDifference> differences;
  const Json leaves_of_first = first.flatten(), leaves_of_second = second.flatten();
  const auto add = [&](const std::string& field) {
    if (is_remark(field)) return;
    const Json::json_pointer pointer(field);
    differences.push_back({field, shown(first, pointer), shown(second, pointer)});
  };
  for (const auto& [field, value] : leaves_of_first.items()) {
    if (!leaves_of_second.contains(field) || leaves_of_second.at(field) != value) add(field);
  }
  for (const auto& [field, value] : leaves_of_second.items()) {
    if (!leaves_of_first.contains(field)) add(field);
  }
  return differences;
}

struct Figure {
  std::string name;
  double value;
};

std::vector<Figure> figures_of(const sim::StepResult& result) {
  const sim::TimeBreakdown& time = result.time();
  std::vector<Figure> figures = {
      {"step_s", result.step.value()},         {"gemm_s", time.gemm.value()},
      {"attention_s", time.attention.value()}, {"memory_bound_s", time.memory_bound.value()},
      {"optimizer_s", time.optimizer.value()}, {"interference_s", time.interference.value()}};
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data, Axis::Pipeline}) {
    figures.push_back({fmt::format("exposed_{}_s", name_of(axis)), time.exposed_on(axis).value()});
  }
  figures.push_back({"bubble_s", time.bubble.value()});
  figures.push_back({"host_s", time.host.value()});
  figures.push_back({"memory_peak_bytes", result.memory().peak.value()});
  for (int category = 0; category < kMemoryCategories; ++category) {
    const auto which = static_cast<MemoryCategory>(category);
    figures.push_back(
        {fmt::format("memory_{}_bytes", name_of(which)), result.memory().of(which).value()});
  }
  figures.push_back({"tokens_per_s_per_gpu", result.throughput.tokens_per_s_per_gpu});
  figures.push_back({"tflops_per_gpu", result.throughput.tflops_per_gpu});
  figures.push_back({"mfu", result.throughput.mfu});
  figures.push_back({"hfu", result.throughput.hfu});
  return figures;
}

// A scenario with what its step comes to.
struct Side {
  const Scenario& scenario;
  const sim::StepResult& result;

  double gpus() const { return static_cast<double>(scenario.plan.world_size()); }
  double tokens() const {
    return static_cast<double>(scenario.plan.global_batch) *
           static_cast<double>(scenario.plan.seq_len);
  }
  double tokens_per_s() const { return tokens() / result.step.value(); }
  double dollars_per_token() const {
    return step_expense(scenario.cluster, scenario.plan, result.step, computing_time(result))
               .price.value() /
           tokens();
  }
};

Yardstick yardstick_of(const Side& first, const Side& second) {
  if (first.gpus() != second.gpus()) return Yardstick::TokensPerSecondPerAccelerator;
  return first.tokens() == second.tokens() ? Yardstick::Step : Yardstick::TokensPerSecond;
}

// Which of two figures is higher, and by how many percent: "the second … 4.2 % more".
struct Lead {
  const char* who;
  double percent;
};

Lead lead_of(double first, double second) {
  return second > first ? Lead{"second", 100.0 * (second / first - 1.0)}
                        : Lead{"first", 100.0 * (first / second - 1.0)};
}

// The part of the step that differs most, in seconds per so many tokens as the first step trains.
std::string largest_change(const Comparison& comparison, const Side& first, const Side& second) {
  const double scale = first.tokens() / second.tokens();
  std::string part;
  double change = 0.0;
  for (const ResultDifference& each : comparison.results) {
    if (each.figure == "memory_peak_bytes") break;  // the parts of the step come before
    const double now = each.second * scale - each.first;
    if (each.figure == "step_s" || std::abs(now) <= std::abs(change)) continue;
    part = each.figure.substr(0, each.figure.size() - 2);
    change = now;
  }
  if (part.empty()) return "";
  return fmt::format("; the largest change is in {}: {:+.4g} s{}", part, change,
                     scale == 1.0 ? "" : " for the tokens of the first step");
}

std::string verdict_by_step(const Side& first, const Side& second) {
  if (first.result.step == second.result.step) return "both take the same time";
  const Lead lead = lead_of(first.tokens_per_s(), second.tokens_per_s());
  return fmt::format("the {} is {:.1f} % faster", lead.who, lead.percent);
}

std::string verdict_by_rate(const Side& first, const Side& second) {
  const std::string why =
      fmt::format(" (the steps train {:.0f} and {:.0f} tokens, so their times do not compare)",
                  first.tokens(), second.tokens());
  if (first.tokens_per_s() == second.tokens_per_s())
    return "both train as many tokens per second" + why;
  const Lead lead = lead_of(first.tokens_per_s(), second.tokens_per_s());
  return fmt::format("the {} trains {:.1f} % more tokens per second", lead.who, lead.percent) + why;
}

std::string verdict_by_accelerator(const Side& first, const Side& second) {
  const Lead each =
      lead_of(first.tokens_per_s() / first.gpus(), second.tokens_per_s() / second.gpus());
  const Lead all = lead_of(first.tokens_per_s(), second.tokens_per_s());
  std::string text = fmt::format(
      "per accelerator the {} trains {:.1f} % more tokens per second ({:.0f} and {:.0f} "
      "accelerators, so the steps do not compare); in all the {} trains {:.1f} % more",
      each.who, each.percent, first.gpus(), second.gpus(), all.who, all.percent);
  const double cost = first.dollars_per_token(), other_cost = second.dollars_per_token();
  if (cost > 0.0 && other_cost > 0.0 && cost != other_cost) {
    const Lead dearer = lead_of(cost, other_cost);
    text += fmt::format("; a token costs {:.1f} % more on the {}", dearer.percent, dearer.who);
  }
  return text;
}

std::string verdict_on(const Comparison& comparison, const Side& first, const Side& second) {
  std::string text;
  switch (comparison.yardstick) {
    case Yardstick::Step:
      text = verdict_by_step(first, second);
      break;
    case Yardstick::TokensPerSecond:
      text = verdict_by_rate(first, second);
      break;
    case Yardstick::TokensPerSecondPerAccelerator:
      text = verdict_by_accelerator(first, second);
      break;
  }
  if (comparison.yardstick != Yardstick::TokensPerSecondPerAccelerator)
    text += largest_change(comparison, first, second);
  if (!(first.scenario.model == second.scenario.model))
    text += "; the models differ, and so does what a token is worth";
  return text;
}

}  // namespace

const char* name_of(Yardstick yardstick) {
  constexpr std::array kNames = {"step_s", "tokens_per_s", "tokens_per_s_per_gpu"};
  return kNames[static_cast<std::size_t>(yardstick)];
}

Comparison compare(const Scenario& first, const Scenario& second) {
  Comparison comparison;
  comparison.first = sim::simulate_step(first);
  comparison.second = sim::simulate_step(second);
  comparison.inputs = differences_of(to_json(first), to_json(second));
  const std::vector<Figure> before = figures_of(comparison.first);
  const std::vector<Figure> after = figures_of(comparison.second);
  for (std::size_t i = 0; i < before.size(); ++i)
    comparison.results.push_back({before[i].name, before[i].value, after[i].value});
  const Side one{first, comparison.first}, other{second, comparison.second};
  const double dollars = one.dollars_per_token(), other_dollars = other.dollars_per_token();
  comparison.results.push_back({"tokens_per_s", one.tokens_per_s(), other.tokens_per_s()});
  if (dollars > 0.0 && other_dollars > 0.0)
    comparison.results.push_back({"dollars_per_token", dollars, other_dollars});
  comparison.yardstick = yardstick_of(one, other);
  comparison.verdict = verdict_on(comparison, one, other);
  return comparison;
}

}  // namespace shardwright::planner
