#include "planner/replan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/cost/placement.hpp"
#include "sim/step/simulate.hpp"

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

// The plan with fewer replicas. Schedules take some numbers of microbatches only, so the batch falls
// until they do; nothing if no batch obeys the rules.
std::optional<Plan> with_replicas(const Scenario& scenario, std::int64_t dp) {
  Plan plan = scenario.plan;
  plan.dp = dp;
  const std::int64_t group = dp * plan.micro_batch;
  const std::int64_t most = scenario.plan.global_batch / group;
  const std::int64_t least = std::max<std::int64_t>(1, most - plan.pp);
  for (std::int64_t microbatches = most; microbatches >= least; --microbatches) {
    plan.global_batch = microbatches * group;
    if (broken_rules(scenario.model, &scenario.cluster, plan).empty()) return plan;
  }
  return std::nullopt;
}

}  // namespace

double shrunk_speed(const Scenario& scenario, Seconds step, std::int64_t ranks) {
  const std::int64_t of_replica = scenario.plan.world_size() / scenario.plan.dp;
  for (std::int64_t dp = ranks / of_replica; dp >= 1; --dp) {
    const std::optional<Plan> plan = with_replicas(scenario, dp);
    if (!plan) continue;
    Scenario smaller = scenario;
    smaller.plan = *plan;
    const double tokens =
        static_cast<double>(plan->global_batch) / static_cast<double>(scenario.plan.global_batch);
    return std::min(1.0, tokens * (step / sim::simulate_step(smaller).step));
  }
  return 0.0;
}

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
