#include "planner/infeasible.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/lowering/lowering.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::planner {
namespace {

Bytes peak_of(const PlanRequest& request, const Plan& plan) {
  Bytes most;
  const Program program = lower(request.model, plan, request.stack);
  for (const sim::MemoryPeak& peak : sim::peak_memory(program, request.stack))
    most = std::max(most, peak.peak);
  return most;
}

double gigabytes_of(Bytes bytes) {
  return bytes.value() / 1e9;
}

// The change of the nearest plan that brings it down to what is available, if `changed` does.
void try_change(const PlanRequest& request, const Plan& changed, const std::string& change,
                NoFeasiblePlan& result) {
  if (first_broken_rule(request.model, request.cluster, changed)) return;
  const Bytes peak = peak_of(request, changed);
  if (peak > result.available) return;
  result.closes_it.push_back(
      fmt::format("{}: it then needs {:.1f} GB", change, gigabytes_of(peak)));
}

// More ranks of data parallelism split the states further.
void try_more_accelerators(const PlanRequest& request, NoFeasiblePlan& result) {
  for (const std::int64_t factor : {2, 4, 8, 16}) {
    Plan larger = *result.nearest;
    larger.dp *= factor;
    larger.global_batch *= factor;
    if (larger.zero_stage < 3) larger.zero_stage = std::max(larger.zero_stage, 1);
    const std::size_t before = result.closes_it.size();
    try_change(request, larger,
               fmt::format("{} accelerators, with the global batch {}", larger.world_size(),
                           larger.global_batch),
               result);
    if (result.closes_it.size() > before) return;
  }
}

std::string biggest_rule(const Evaluation& evaluation) {
  const auto most =
      std::max_element(evaluation.broken_rules.begin(), evaluation.broken_rules.end());
  if (most == evaluation.broken_rules.end() || *most == 0) return "none";
  return name_of(static_cast<PlanRule>(most - evaluation.broken_rules.begin()));
}

}  // namespace

NoFeasiblePlan explain_infeasible(const PlanRequest& request, const Evaluation& evaluation) {
  NoFeasiblePlan result;
  result.available = available_memory(request);
  if (!evaluation.tightest.plan) {
    result.reason = fmt::format(
        "none of the {} plans of the space obeys the rules and constraints; most fall "
        "to the rule {}",
        evaluation.space, biggest_rule(evaluation));
    return result;
  }
  result.nearest = evaluation.tightest.plan;
  result.needed = Bytes(evaluation.tightest.memory);
  result.shortfall = result.needed - result.available;
  result.reason = fmt::format(
      "{} plans obey the rules, none fits into {:.1f} GB: the smallest needs {:.1f} GB",
      evaluation.too_large, gigabytes_of(result.available), gigabytes_of(result.needed));
  Plan offloaded = *result.nearest;
  offloaded.offload_optimizer = true;
  try_change(request, offloaded, "optimizer states and step on the host", result);
  try_more_accelerators(request, result);
  result.closes_it.push_back(
      fmt::format("accelerators with {:.1f} GB more memory", gigabytes_of(result.shortfall)));
  return result;
}

}  // namespace shardwright::planner
