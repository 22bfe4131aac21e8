#include "planner/compare.hpp"

#include <fmt/format.h>

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
    figures.push_back({fmt::format("exposed_{}_s", name_of(axis)), time.exposed[axis].value()});
  }
  figures.push_back({"bubble_s", time.bubble.value()});
  figures.push_back({"host_s", time.host.value()});
  figures.push_back({"memory_peak_bytes", result.memory().peak.value()});
  for (const MemoryCategory which : enumerators<MemoryCategory>()) {
    figures.push_back(
        {fmt::format("memory_{}_bytes", name_of(which)), result.memory().of(which).value()});
  }
  figures.push_back({"tokens_per_s_per_gpu", result.throughput.tokens_per_s_per_gpu});
  figures.push_back({"tflops_per_gpu", result.throughput.tflops_per_gpu});
  figures.push_back({"mfu", result.throughput.mfu});
  figures.push_back({"hfu", result.throughput.hfu});
  return figures;
}

ComparedSide side_of(const Scenario& scenario, const sim::StepResult& result) {
  ComparedSide side;
  side.accelerators = static_cast<double>(scenario.plan.world_size());
  side.tokens =
      static_cast<double>(scenario.plan.global_batch) * static_cast<double>(scenario.plan.seq_len);
  side.tokens_per_s = side.tokens / result.step.value();
  side.dollars_per_token =
      step_expense(scenario.cluster, scenario.plan, result.step, computing_time(result))
          .price.value() /
      side.tokens;
  return side;
}

Yardstick yardstick_of(const ComparedSide& first, const ComparedSide& second) {
  if (first.accelerators != second.accelerators) return Yardstick::TokensPerSecondPerAccelerator;
  return first.tokens == second.tokens ? Yardstick::Step : Yardstick::TokensPerSecond;
}

std::optional<PartChange> largest_change(const Comparison& comparison) {
  if (comparison.yardstick == Yardstick::TokensPerSecondPerAccelerator) return std::nullopt;
  const double scale = comparison.first_side.tokens / comparison.second_side.tokens;
  PartChange largest;
  for (const ResultDifference& each : comparison.results) {
    if (each.figure == "memory_peak_bytes") break;  // the parts of the step come before
    const double change = each.second * scale - each.first;
    if (each.figure == "step_s" || std::abs(change) <= std::abs(largest.seconds)) continue;
    largest = {each.figure.substr(0, each.figure.size() - 2), change};
  }
  return largest.figure.empty() ? std::nullopt : std::optional(largest);
}

}  // namespace

Comparison compare(const Scenario& first, const Scenario& second) {
  Comparison comparison;
  comparison.first = sim::simulate_step(first);
  comparison.second = sim::simulate_step(second);
  comparison.inputs = differences_of(to_json(first), to_json(second));
  const std::vector<Figure> before = figures_of(comparison.first);
  const std::vector<Figure> after = figures_of(comparison.second);
  for (std::size_t i = 0; i < before.size(); ++i)
    comparison.results.push_back({before[i].name, before[i].value, after[i].value});
  const ComparedSide one = side_of(first, comparison.first);
  const ComparedSide other = side_of(second, comparison.second);
  comparison.results.push_back({"tokens_per_s", one.tokens_per_s, other.tokens_per_s});
  if (one.dollars_per_token > 0.0 && other.dollars_per_token > 0.0) {
    comparison.results.push_back(
        {"dollars_per_token", one.dollars_per_token, other.dollars_per_token});
  }
  comparison.first_side = one;
  comparison.second_side = other;
  comparison.same_model = first.model == second.model;
  comparison.yardstick = yardstick_of(one, other);
  comparison.largest_change = largest_change(comparison);
  return comparison;
}

}  // namespace shardwright::planner
