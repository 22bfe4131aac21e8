#include "planner/compare.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/quantity_text.hpp"
#include "planner/objective.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

using Json = nlohmann::ordered_json;

// The keys of a field, outermost first. A figure and its source are one field.
std::vector<std::string> path_of(Json::json_pointer pointer) {
  std::vector<std::string> path;
  if (!pointer.empty() && pointer.back() == "value") pointer.pop_back();
  for (; !pointer.empty(); pointer.pop_back()) path.insert(path.begin(), pointer.back());
  return path;
}

InputValue value_at(const Json& document, const Json::json_pointer& pointer,
                    const std::string& key) {
  if (!document.contains(pointer)) return {"null", "none"};
  const Json& value = document.at(pointer);
  if (value.is_string()) return {value.dump(), value.get<std::string>()};
  return {value.dump(),
          value.is_number() ? with_unit(key, value.get<double>()).second : value.dump()};
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
    const std::vector<std::string> path = path_of(pointer);
    differences.push_back(
        {path, value_at(first, pointer, path.back()), value_at(second, pointer, path.back())});
  };
  for (const auto& [field, value] : leaves_of_first.items()) {
    if (!leaves_of_second.contains(field) || leaves_of_second.at(field) != value) add(field);
  }
  for (const auto& [field, value] : leaves_of_second.items()) {
    if (!leaves_of_first.contains(field)) add(field);
  }
  return differences;
}

struct FigureValue {
  Figure figure;
  double value;
};

std::vector<FigureValue> figures_of(const sim::StepResult& result) {
  const sim::Throughput& rates = result.throughput;
  std::vector<FigureValue> figures = {{StepFigure::Step, result.step.value()}};
  for (const sim::StepPart part : enumerators<sim::StepPart>())
    figures.push_back({part, result.time().of(part).value()});
  figures.push_back({StepFigure::MemoryPeak, result.memory().peak.value()});
  for (const MemoryCategory category : enumerators<MemoryCategory>())
    figures.push_back({category, result.memory().of(category).value()});
  figures.push_back({StepFigure::TokensPerSecondPerAccelerator, rates.tokens_per_s_per_gpu});
  figures.push_back({StepFigure::TflopsPerAccelerator, rates.tflops_per_gpu});
  figures.push_back({StepFigure::Mfu, rates.mfu});
  figures.push_back({StepFigure::Hfu, rates.hfu});
  return figures;
}

ComparedSide side_of(const Scenario& scenario, const sim::StepResult& result) {
  ComparedSide side;
  side.accelerators = static_cast<double>(scenario.plan.world_size());
  side.tokens =
      static_cast<double>(scenario.plan.global_batch) * static_cast<double>(scenario.plan.seq_len);
  side.tokens_per_s = side.tokens / result.step.value();
  side.dollars_per_token = step_expense(scenario, result).price.value() / side.tokens;
  return side;
}

Yardstick yardstick_of(const ComparedSide& first, const ComparedSide& second) {
  if (first.accelerators != second.accelerators) return Yardstick::TokensPerSecondPerAccelerator;
  return first.tokens == second.tokens ? Yardstick::Step : Yardstick::TokensPerSecond;
}

std::optional<PartChange> largest_change(const Comparison& comparison) {
  if (comparison.yardstick == Yardstick::TokensPerSecondPerAccelerator) return std::nullopt;
  const double scale = comparison.first_side.tokens / comparison.second_side.tokens;
  std::optional<PartChange> largest;
  for (const ResultDifference& each : comparison.results) {
    const auto* part = std::get_if<sim::StepPart>(&each.figure);
    const double change = each.second * scale - each.first;
    if (part == nullptr || std::abs(change) <= (largest ? std::abs(largest->seconds) : 0.0))
      continue;
    largest = {*part, change};
  }
  return largest;
}

}  // namespace

std::string InputDifference::pointer() const {
  std::string pointer;
  for (const std::string& key : path) pointer += '/' + key;
  return pointer;
}

Comparison compare(const Scenario& first, const Scenario& second) {
  Comparison comparison;
  comparison.first = sim::simulate_step(first);
  comparison.second = sim::simulate_step(second);
  comparison.inputs = differences_of(to_json(first), to_json(second));
  const std::vector<FigureValue> before = figures_of(comparison.first);
  const std::vector<FigureValue> after = figures_of(comparison.second);
  for (std::size_t i = 0; i < before.size(); ++i)
    comparison.results.push_back({before[i].figure, before[i].value, after[i].value});
  const ComparedSide one = side_of(first, comparison.first);
  const ComparedSide other = side_of(second, comparison.second);
  comparison.results.push_back({StepFigure::TokensPerSecond, one.tokens_per_s, other.tokens_per_s});
  if (one.dollars_per_token > 0.0 && other.dollars_per_token > 0.0) {
    comparison.results.push_back(
        {StepFigure::DollarsPerToken, one.dollars_per_token, other.dollars_per_token});
  }
  comparison.first_side = one;
  comparison.second_side = other;
  comparison.same_model = first.model == second.model;
  comparison.yardstick = yardstick_of(one, other);
  comparison.largest_change = largest_change(comparison);
  return comparison;
}

}  // namespace shardwright::planner
