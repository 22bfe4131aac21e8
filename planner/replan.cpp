#include "planner/replan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "planner/open_fields.hpp"
#include "sim/cost/placement.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// Limits the search to plans that the executor runs; its schedules and ZeRO stages are those of its
// stack.
SearchLimits limits_of_executor(const Scenario& scenario) {
  SearchLimits limits;
  for (const std::string& pool : names_of_pools(scenario.cluster))
    limits.max_tp =
        std::max(limits.max_tp, sim::domain_size(*pool_cluster(scenario.cluster, pool)));
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
  request.takes_pools = true;
  request.front = request.advice = false;
  request.stop = std::move(stop);
  return request;
}

// The plan with fewer replicas. Schedules take some numbers of microbatches only, so the batch
// falls until they do; nothing if no batch obeys the rules.
std::optional<Plan> with_replicas(const Scenario& scenario, Plan plan, std::int64_t dp) {
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

// `plan` with as many replicas as `ranks` hold; nothing if they hold none.
std::optional<Plan> on_ranks(const Scenario& scenario, const Plan& plan, std::int64_t ranks) {
  const std::int64_t of_replica = plan.world_size() / plan.dp;
  for (std::int64_t dp = ranks / of_replica; dp >= 1; --dp) {
    if (const std::optional<Plan> smaller = with_replicas(scenario, plan, dp)) return smaller;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Plan> plans_for_fewer_ranks(const Scenario& scenario, const std::stop_token& stop) {
  constexpr std::int64_t kLayouts = 4;
  const std::vector<std::string> kLayout = {"tp",          "pp",        "vpp",         "cp",
                                            "dp",          "ep",        "zero_stage",  "schedule",
                                            "micro_batch", "recompute", "stage_layers"};
  std::vector<Plan> plans{scenario.plan};
  PlanRequest request = request_for_open(scenario, kLayout, scenario.plan.world_size());
  request.top = kLayouts;
  request.one_per_layout = true;
  request.threads = 0;
  request.stop = stop;
  const SearchResult result = search(request);
  if (result.partial) return plans;
  for (const PlanCandidate& each : result.plans) plans.push_back(each.plan);
  return plans;
}

double shrunk_speed(const Scenario& scenario, std::span<const Plan> plans,
                    const sim::StepResult& whole, std::int64_t ranks) {
  // A plan that the model of memory puts beyond the accelerator's is no fuller on fewer ranks.
  const Bytes room = std::max(scenario.cluster.accelerator.memory, whole.memory().peak);
  double best = 0.0;
  for (const Plan& plan : plans) {
    const std::optional<Plan> left = on_ranks(scenario, plan, ranks);
    if (!left) continue;
    Scenario smaller = scenario;
    smaller.plan = *left;
    const sim::StepResult step = sim::simulate_step(smaller);
    if (step.memory().peak > room) continue;
    const double tokens =
        static_cast<double>(left->global_batch) / static_cast<double>(scenario.plan.global_batch);
    best = std::max(best, tokens * (whole.step / step.step));
  }
  return std::min(1.0, best);
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
