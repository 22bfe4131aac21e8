#include "sim/validation/row_scenario.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/validation/row_cluster.hpp"
#include "sim/validation/row_model.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_plan.hpp"
#include "sim/validation/row_stack.hpp"
#include "sim/validation/tuned_plan.hpp"

namespace shardwright::sim {
namespace {

std::string first_broken(const Scenario& scenario) {
  const std::vector<BrokenRule> broken =
      broken_rules(scenario.model, &scenario.cluster, scenario.plan);
  if (broken.empty()) return {};
  const BrokenRule& first = broken.front();
  return fmt::format("{}: found {}, expected {}", name_of(first.rule), first.problem.found,
                     first.problem.expected);
}

}  // namespace

RowScenario scenario_of(const TrainingRow& row) {
  RowScenario result;
  result.filled_in = row.filled_in;
  result.reason = row.unreadable;
  if (!result.reason.empty()) return result;
  if (says(row.flops_convention, "per-layer timing")) {
    result.reason = "the time is that of a single layer, not of a step";
    return result;
  }
  Scenario scenario;
  auto model = model_of_row(row, result.filled_in, result.reason);
  if (!model) return result;
  const auto cluster = cluster_of_row(row, result.filled_in, result.reason);
  if (!cluster) return result;
  scenario.stack = stack_of_row(row, result.filled_in);
  refine_stack(row, *model, scenario.stack, result.filled_in);
  set_dropout(scenario.stack, *model, result.filled_in);
  const auto plan = plan_of_row(row, *model, scenario.stack, result.filled_in, result.reason);
  if (!plan) return result;
  scenario.model = *model;
  scenario.cluster = *cluster;
  scenario.plan = *plan;
  result.reason = first_broken(scenario);
  if (!result.reason.empty()) return result;
  choose_as_tuned(row, scenario, result.filled_in);
  result.scenario = std::move(scenario);
  return result;
}

Scenario scenario_of_row(const std::string& file, const std::string& id,
                         std::vector<std::string>* filled_in) {
  RowScenario result = scenario_of(find_training_row(file, id));
  if (!result.scenario) {
    throw InputError(file, {{id, fmt::format("a row that cannot be simulated: {}", result.reason),
                             "a row with a plan that Shardwright models"}});
  }
  if (filled_in != nullptr) *filled_in = std::move(result.filled_in);
  return std::move(*result.scenario);
}

}  // namespace shardwright::sim
