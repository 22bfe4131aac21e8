#include "planner/export/plan_export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright::planner {
namespace {

bool has_experts_apart(const Plan& plan) {
  return plan.ep > 1 || plan.expert_tp > 1;
}

std::int64_t degree_of(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return std::max(plan.tp, plan.expert_tp);
    case Axis::Context:
      return plan.cp;
    case Axis::Expert:
      return plan.ep;
    case Axis::Data:
      return has_experts_apart(plan) ? std::max(plan.dp, expert_replicas(plan)) : plan.dp;
    case Axis::Pipeline:
      break;
  }
  return plan.pp;
}

std::vector<Axis> split_axes(const Plan& plan, std::span<const Axis> order) {
  std::vector<Axis> axes;
  for (const Axis axis : order) {
    if (degree_of(plan, axis) > 1) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

void check_accumulation(const Plan& plan, PlanExport& result) {
  const bool accumulates =
      plan.schedule == ScheduleKind::OneFOneB || plan.schedule == ScheduleKind::Interleaved;
  if (plan.pp > 1 || accumulates || plan.microbatches() == 1) return;
  result.refuse("schedule", fmt::format("{} with pp 1", name_of(plan.schedule)),
                "1f1b: without a pipeline, microbatches run one after the other");
}

void check_replicas(const Plan& plan, PlanExport& result) {
  const std::string agree = replicas_text(plan);
  if (!agree.empty()) result.refuse("data_parallel", agree, "none: an all-reduce of the gradients");
}

bool nests_as(const Plan& plan, std::span<const Axis> order) {
  return split_axes(plan, plan.rank_order) == split_axes(plan, order);
}

std::string shown(std::span<const Axis> order) {
  std::vector<const char*> names;
  for (const Axis axis : order) names.push_back(name_of(axis));
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_rank_order(const Plan& plan, PlanExport& result) {
  if (!nests_as(plan, kUsualRankOrder))
    result.refuse("rank_order", shown(plan.rank_order), shown(kUsualRankOrder));
}

void note_pools(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const std::vector<ClusterSpec> pools = pool_clusters(scenario.cluster, plan);
  if (pools.empty()) return;
  if (!plan.replica_pools.empty())
    return result.refuse("replica_pools", pools_text(plan),
                         "replicas on one pool: frameworks give each the same share of the batch");
  // Pipeline stages are the outermost axis of plans on pools.
  const std::int64_t per_stage = plan.world_size() / plan.pp;
  std::vector<std::string> places;
  std::int64_t first = 0;
  for (const ClusterSpec& pool : pools) {
    if (pool.accelerators_per_node() != pools.front().accelerators_per_node())
      result.refuse(
          "stage_pools",
          fmt::format("nodes of {} and of {} accelerators", pools.front().accelerators_per_node(),
                      pool.accelerators_per_node()),
          "pools whose nodes have the same number of accelerators");
    const std::int64_t end =
        first + per_stage * std::count(plan.stage_pools.begin(), plan.stage_pools.end(), pool.name);
    places.push_back(fmt::format("{} to {} on {}", first, end - 1, pool.name));
    first = end;
  }
  result.note("stage_pools", fmt::format("the order of the nodes decides it: start ranks {}",
                                         fmt::join(places, ", ranks ")));
}

OverlapSwitches effective_overlap(const Scenario& scenario) {
  const OverlapSwitches& plan = scenario.plan.overlap;
  const StackSpec& stack = scenario.stack;
  return {.grad_reduce = plan.grad_reduce && stack.overlap.grad_reduce,
          .param_gather = plan.param_gather && stack.overlap.param_gather,
          .tensor_parallel = plan.tensor_parallel && stack.overlap.tensor_parallel,
          .p2p = plan.p2p && stack.overlap.p2p,
          .expert_parallel = plan.expert_parallel && stack.overlap.expert_parallel,
          .expert_microbatches = plan.expert_microbatches && stack.overlap.expert_parallel};
}

void note_foreign_stack(const StackSpec& stack, std::span<const std::string> families,
                        const std::string& framework, PlanExport& result) {
  const bool known = std::find(families.begin(), families.end(), stack.family) != families.end();
  if (known || stack.family == "generic") return;
  result.note("stack " + stack.name,
              fmt::format("the plan was made for it; its speed with {} may differ", framework));
}

LaunchShape launch_shape(const ClusterSpec& cluster, const Plan& plan) {
  const std::int64_t world = plan.world_size();
  const std::int64_t node = cluster.accelerators_per_node();
  std::int64_t nodes = (world + node - 1) / node;
  while (world % nodes != 0) ++nodes;
  return {nodes, world / nodes};
}

std::string torchrun_line(const LaunchShape& shape, const std::string& program) {
  if (shape.nodes == 1)
    return fmt::format("torchrun --standalone --nproc-per-node {} {}", shape.processes, program);
  return fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} --node-rank $NODE_RANK --master-addr $MASTER_ADDR "
      "--master-port 29500 {}",
      shape.nodes, shape.processes, program);
}

std::string slurm_line(const LaunchShape& shape, const std::string& program) {
  const std::string rendezvous =
      shape.nodes == 1 ? "--standalone"
                       : fmt::format(
                             "--nnodes {} --rdzv-backend c10d --rdzv-id $SLURM_JOB_ID "
                             "--rdzv-endpoint $(scontrol show hostnames $SLURM_JOB_NODELIST | "
                             "head -n 1):29500",
                             shape.nodes);
  return fmt::format("srun --nodes {} --ntasks-per-node 1 torchrun {} --nproc-per-node {} {}",
                     shape.nodes, rendezvous, shape.processes, program);
}

std::string title_of(const Scenario& scenario) {
  std::string title = fmt::format("{} on {} x {} ({}), planned for {}", scenario.model.name,
                                  scenario.plan.world_size(), scenario.cluster.accelerator.name,
                                  scenario.cluster.name, scenario.stack.name);
  for (char& c : title) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return title;
}

}  // namespace shardwright::planner
