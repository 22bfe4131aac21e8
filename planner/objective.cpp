#include "planner/objective.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/spec/pools.hpp"

namespace shardwright::planner {
namespace {

StepExpense expense_of(const ClusterSpec& cluster, double gpus, Seconds step, Seconds computing) {
  const AcceleratorSpec& accelerator = cluster.accelerator;
  const double share = step.value() > 0.0 ? std::clamp(computing / step, 0.0, 1.0) : 0.0;
  const Watts device =
      accelerator.idle_power + (accelerator.power - accelerator.idle_power) * share;
  const Watts node = cluster.node.power_overhead /
                     static_cast<double>(std::max<std::int64_t>(1, cluster.node.accelerators));
  return {accelerator_price(cluster) * step * gpus,
          (device + node) * step * gpus * cluster.power_usage_effectiveness};
}

}  // namespace

Seconds computing_time(const sim::StepResult& result) {
  const std::vector<Seconds> times = computing_times(result);
  return std::accumulate(times.begin(), times.end(), Seconds()) / static_cast<double>(times.size());
}

std::vector<Seconds> computing_times(const sim::StepResult& result) {
  std::vector<Seconds> times;
  for (const sim::StageResult& stage : result.stages)
    times.push_back(stage.time.compute() + stage.time.optimizer);
  return times;
}

DollarsPerSecond accelerator_price(const ClusterSpec& cluster) {
  return cluster.price > DollarsPerSecond() ? cluster.price : cluster.accelerator.price;
}

DollarsPerSecond accelerator_price(const ClusterSpec& cluster, const Plan& plan) {
  if (!names_pools(plan)) return accelerator_price(cluster);
  DollarsPerSecond sum;
  for (const ClusterSpec& pool : pool_clusters(cluster, plan))
    sum += accelerator_price(pool) * static_cast<double>(ranks_on_pool(plan, pool.name));
  return sum / static_cast<double>(plan.world_size());
}

StepExpense step_expense(const ClusterSpec& cluster, const Plan& plan, Seconds step,
                         Seconds computing) {
  return expense_of(cluster, static_cast<double>(plan.world_size()), step, computing);
}

StepExpense step_expense(const ClusterSpec& cluster, const Plan& plan, Seconds step,
                         const std::vector<Seconds>& computing) {
  const std::vector<ClusterSpec> pools = pool_clusters(cluster, plan);
  StepExpense sum;
  for (std::size_t stage = 0; stage < computing.size(); ++stage) {
    const auto pool = static_cast<std::size_t>(pool_of_stage(plan, stage));
    const StepExpense of_stage = expense_of(
        pools[pool], static_cast<double>(ranks_of_stage(plan, stage)), step, computing[stage]);
    sum.price += of_stage.price;
    sum.energy += of_stage.energy;
  }
  return sum;
}

StepExpense step_expense(const Scenario& scenario, const sim::StepResult& result) {
  if (!names_pools(scenario.plan))
    return step_expense(scenario.cluster, scenario.plan, result.step, computing_time(result));
  return step_expense(scenario.cluster, scenario.plan, result.step, computing_times(result));
}

double score(Objective objective, const Plan& plan, const sim::StepResult& result,
             const StepExpense& expense) {
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  switch (objective) {
    case Objective::Time:
      return result.step.value() / tokens;
    case Objective::Cost:
      return expense.price.value() / tokens;
    case Objective::Memory:
      return result.memory().peak.value();
    case Objective::TokensPerJoule:
      return expense.energy.value() / tokens;
  }
  return 0.0;
}

std::vector<std::size_t> pareto_front(const std::vector<TradeOff>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (points[a].first != points[b].first) return points[a].first < points[b].first;
    return points[a].second < points[b].second;
  });
  std::vector<std::size_t> front;
  double lowest = std::numeric_limits<double>::infinity();
  for (const std::size_t index : order) {
    if (points[index].second >= lowest) continue;
    lowest = points[index].second;
    front.push_back(index);
  }
  return front;
}

}  // namespace shardwright::planner
