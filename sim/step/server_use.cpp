#include "sim/step/server_use.hpp"

#include <algorithm>
#include <variant>

#include "core/lowering/replica_exchange.hpp"

namespace shardwright::sim {
namespace {

// What a rank of the mean stage exchanges.
struct MeanRank {
  ServerTransfer push, pull;
  Seconds update;
};

MeanRank mean_rank(double parameters, const Plan& plan, const ClusterSpec& cluster,
                   const StackSpec& stack) {
  const double own = parameters / static_cast<double>(plan.pp);
  const Bytes gradient = reduced_gradient_bytes(stack, plan.precision);
  const Bytes weight = storage_bytes(plan.precision);
  MeanRank rank;
  rank.push = server_transfer(OpKind::Push, gradient * own, plan, cluster);
  rank.pull = server_transfer(OpKind::Pull, weight * own, plan, cluster);
  for (const ExchangeOp& op : served_parameters(own, weight)) {
    if (op.kind == OpKind::ServerOptimizer)
      rank.update = server_update_time(op.kernel, plan, cluster);
  }
  return rank;
}

// NICs send while they receive; pushes, steps and pulls follow each other through the memory.
Seconds busy_time(const MeanRank& rank, const Plan& plan) {
  const double turns = plan.replicas.stale() ? static_cast<double>(plan.dp) : 1.0;
  return std::max(
             {rank.push.nics, rank.pull.nics, rank.push.memory + rank.update + rank.pull.memory}) *
         turns;
}

}  // namespace

double served_parameters_of(const Program& program) {
  double sum = 0.0;
  for (const RankProgram& stage : program.stages)
    sum += stage.parameters.dense + stage.parameters.expert;
  return sum;
}

ServerUse server_use(double parameters, const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const MeanRank rank = mean_rank(parameters, plan, scenario.cluster, scenario.stack);
  ServerUse use;
  use.nodes = server_nodes(plan, scenario.cluster);
  use.push = rank.push;
  use.pull = rank.pull;
  use.update = rank.update;
  use.busy = busy_time(rank, plan);
  use.memory = server_state_bytes(plan) *
               (parameters * static_cast<double>(plan.tp) / static_cast<double>(use.nodes.servers));
  use.host_memory = scenario.cluster.node.host.memory;
  return use;
}

Seconds served_step(double parameters, const Plan& plan, const ClusterSpec& cluster,
                    const StackSpec& stack) {
  return busy_time(mean_rank(parameters, plan, cluster, stack), plan);
}

}  // namespace shardwright::sim
