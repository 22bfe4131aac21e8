#include "planner/export/launch_line.hpp"

#include <fmt/format.h>

namespace shardwright::planner {

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

}  // namespace shardwright::planner
