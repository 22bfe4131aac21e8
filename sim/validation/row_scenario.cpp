#include "sim/validation/row_scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/step/step_estimate.hpp"
#include "sim/validation/noted_experts.hpp"
#include "sim/validation/noted_optimizer.hpp"
#include "sim/validation/noted_plan.hpp"
#include "sim/validation/possible_cuts.hpp"
#include "sim/validation/row_cluster.hpp"
#include "sim/validation/row_degrees.hpp"
#include "sim/validation/row_model.hpp"
#include "sim/validation/row_plan.hpp"
#include "sim/validation/row_sizes.hpp"
#include "sim/validation/row_stack.hpp"
#include "sim/validation/tuned_plan.hpp"
#include "sim/validation/whole_step.hpp"

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

// Adds the plan of a row that tells its degrees to the parts of its scenario.
RowScenario with_plan(const TrainingRow& row, Scenario parts, RowScenario result) {
  const auto plan = plan_of_row(row, parts.model, parts.stack, result.filled_in, result.reason);
  if (!plan) return result;
  parts.plan = *plan;
  result.reason = first_broken(parts);
  if (result.reason.empty()) result.scenario = std::move(parts);
  return result;
}

RowScenario with_tuned_plan(const TrainingRow& row, Scenario parts, RowScenario result) {
  result = with_plan(row, std::move(parts), std::move(result));
  if (result.scenario)
    result.chosen_to_fit = choose_as_tuned(row, *result.scenario, result.filled_in);
  return result;
}

// The cuts that may fit; where none does, the one that needs the least memory. Empty, with a
// reason, if none makes a plan.
std::vector<TrainingRow> cuts_that_may_fit(std::vector<TrainingRow> cuts, const Scenario& parts,
                                           RowScenario& result) {
  std::vector<TrainingRow> fitting, nearest;
  Bytes least;
  for (TrainingRow& cut : cuts) {
    RowScenario candidate = with_plan(cut, parts, result);
    if (!candidate.scenario) {
      result.reason = candidate.reason;
      continue;
    }
    const Bytes memory = least_memory(cut, std::move(*candidate.scenario));
    if (memory <= parts.cluster.accelerator.memory) {
      fitting.push_back(std::move(cut));
    } else if (nearest.empty() || memory < least) {
      nearest = {std::move(cut)};
      least = memory;
    }
  }
  return fitting.empty() ? nearest : fitting;
}

// What of its cut a row leaves open.
struct OpenDegrees {
  bool model, experts;
};

std::vector<TrainingRow> cuts_over(const TrainingRow& row, const Scenario& parts,
                                   OpenDegrees open) {
  std::vector<TrainingRow> cuts = open.model ? possible_cuts(row, parts) : std::vector{row};
  if (!open.experts) return cuts;
  std::vector<TrainingRow> spread;
  for (const TrainingRow& cut : cuts)
    for (TrainingRow& each : possible_expert_cuts(cut, parts)) spread.push_back(std::move(each));
  return spread;
}

// The fastest cut of a row that leaves its degrees open: published runs are tuned.
RowScenario with_best_cut(const TrainingRow& row, const Scenario& parts, RowScenario result) {
  const OpenDegrees open{!tells_degrees(row, parts.model, parts.stack),
                         leaves_experts_open(row, parts)};
  std::optional<RowScenario> best;
  StepEstimate fastest;
  const std::vector<TrainingRow> cuts =
      cuts_that_may_fit(cuts_over(row, parts, open), parts, result);
  if (!cuts.empty()) result.reason.clear();
  for (const TrainingRow& cut : cuts) {
    RowScenario candidate = with_tuned_plan(cut, parts, result);
    const StepEstimate estimate = estimate_step(*candidate.scenario);
    if (best && estimate.analytic >= fastest.analytic) continue;
    best = std::move(candidate);
    fastest = estimate;
  }
  if (!best) {
    if (result.reason.empty())
      result.reason = "the source does not say the tensor and pipeline degrees";
    return result;
  }
  const Plan& plan = best->scenario->plan;
  const bool fits = fastest.memory <= parts.cluster.accelerator.memory;
  best->chosen_to_fit = fits;
  std::vector<std::string> degrees;
  if (open.model) degrees.push_back(fmt::format("tp {}, pp {}", plan.tp, plan.pp));
  if (open.experts) degrees.push_back(fmt::format("ep {}", plan.ep));
  best->filled_in.push_back(fmt::format("{}: {}", fmt::join(degrees, ", "),
                                        fits ? "the fastest cut that fits" : "no cut fits"));
  return std::move(*best);
}

void list_open_fields(const TrainingRow& stated, const TrainingRow& completed, OpenDegrees open,
                      RowScenario& result) {
  const Plan& plan = result.scenario->plan;
  const PlanRow& given = stated.plan;
  const bool cut = open.model || (!given.tp && !given.pp && plan.tp * plan.pp > 1);
  if (cut && !given.tp) result.open.emplace_back("tp");
  if (cut && !given.pp) result.open.emplace_back("pp");
  if (open.experts) result.open.emplace_back("ep");
  for (std::string& field : open_fields(stated, completed, *result.scenario))
    result.open.push_back(std::move(field));
}

}  // namespace

RowScenario scenario_of(const TrainingRow& stated) {
  RowScenario result;
  result.filled_in = stated.filled_in;
  result.reason = no_whole_step(stated);
  if (!result.reason.empty()) return result;
  TrainingRow row = stated;
  complete_plan(row, result.filled_in);
  const ModelSpec* known = complete_model(row, result.filled_in);
  complete_expert_parallel(row, result.filled_in);
  Scenario parts;
  auto model = model_of_row(row, known, result.filled_in, result.reason);
  if (!model) return result;
  auto cluster = cluster_of_row(row, result.filled_in, result.reason);
  if (!cluster) return result;
  parts.stack = stack_of_row(row, result.filled_in);
  refine_stack(row, *model, parts.stack, result.filled_in);
  set_optimizer_by_notes(row, parts.stack, result.filled_in);
  set_dropout(parts.stack, *model, result.filled_in);
  parts.model = std::move(*model);
  parts.cluster = std::move(*cluster);
  const OpenDegrees open{!tells_degrees(row, parts.model, parts.stack),
                         leaves_experts_open(row, parts)};
  result = open.model || open.experts ? with_best_cut(row, parts, std::move(result))
                                      : with_tuned_plan(row, std::move(parts), std::move(result));
  if (result.scenario) list_open_fields(stated, row, open, result);
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
