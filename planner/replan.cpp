#include "planner/replan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::planner {
namespace {

// Limits the search to plans that the executor runs; its schedules and ZeRO stages are those of its
// stack.
SearchLimits limits_of_executor(const Scenario& scenario) {
  SearchLimits limits;
  limits.max_tp = std::min(scenario.model.attention.kv_heads, sim::domain_size(scenario.cluster));
  limits.max_cp = 1;
  limits.recompute = {RecomputePolicy::None, RecomputePolicy::Full};
  limits.partial_recompute = false;
  limits.sharding_within_node = false;
  limits.layer_splits = {LayerSplit::FrontHeavy};
  return limits;
}

PlanRequest request_of(const Scenario& scenario, std::stop_token stop) {
  PlanRequest request;
  request.model = scenario.model;
  request.cluster = scenario.cluster;
  request.stack = scenario.stack;
  request.global_batch = scenario.plan.global_batch;
  request.seq_len = scenario.plan.seq_len;
  request.precision = scenario.plan.precision;
  request.lora = scenario.plan.lora;
  request.limits = limits_of_executor(scenario);
  request.top = 1;
  request.front = request.advice = false;
  request.stop = std::move(stop);
  return request;
}

}  // namespace

std::optional<Replanned> replan(const Scenario& scenario, std::int64_t most_ranks,
                                const std::stop_token& stop) {
  if (most_ranks < 1) {
    throw InputError("replan",
                     {{"ranks", fmt::format("{}", most_ranks), "a number of at least 1"}});
  }
  PlanRequest request = request_of(scenario, stop);
  for (std::int64_t ranks = most_ranks; ranks >= 1 && !stop.stop_requested(); --ranks) {
    request.gpus = ranks;
    SearchResult result = search(request);
    if (result.partial) return std::nullopt;
    if (result.plans.empty()) continue;
    PlanCandidate& best = result.plans.front();
    return Replanned{scenario_of(request, best.plan), std::move(best)};
  }
  return std::nullopt;
}

}  // namespace shardwright::planner
