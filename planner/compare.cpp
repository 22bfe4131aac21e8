#include "planner/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& document, const Json::json_pointer& pointer) {
  return document.contains(pointer) ? document.at(pointer).dump() : "none";
}

// Leaves of either document that differ, in the order of the first, then those that only the second
// has.
std::vector<InputDifference> differences_of(const Json& first, const Json& second) {
  std::vector<InputDifference> differences;
  const Json leaves_of_first = first.flatten(), leaves_of_second = second.flatten();
  const auto add = [&](const std::string& field) {
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

// Parts of the step follow `step_s`, up to the first figure of memory.
const ResultDifference& biggest_part(const std::vector<ResultDifference>& results) {
  const auto end = std::find_if(results.begin(), results.end(), [](const ResultDifference& each) {
    return each.figure == "memory_peak_bytes";
  });
  return *std::max_element(results.begin() + 1, end,
                           [](const ResultDifference& a, const ResultDifference& b) {
                             return std::abs(a.change()) < std::abs(b.change());
                           });
}

std::string verdict_on(const Comparison& comparison) {
  const Seconds first = comparison.first.step, second = comparison.second.step;
  if (first == second) return "both take the same time";
  const ResultDifference& part = biggest_part(comparison.results);
  const bool second_wins = second < first;
  const double ratio = second_wins ? first / second : second / first;
  return fmt::format("the {} is {:.1f} % faster; the largest change is in {}: {:+.4g} s",
                     second_wins ? "second" : "first", 100.0 * (ratio - 1.0),
                     part.figure.substr(0, part.figure.size() - 2), part.change());
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
  comparison.verdict = verdict_on(comparison);
  return comparison;
}

}  // namespace shardwright::planner
