// The nodes and processes of a plan, and the command line of torchrun for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::planner {

struct LaunchShape {
  std::int64_t nodes = 1;
  // Per node; launchers start the same number on every node.
  std::int64_t processes = 1;

  bool operator==(const LaunchShape&) const = default;
};

// Returns the fewest nodes that share the plan's ranks evenly; nodes x processes is the world size.
LaunchShape launch_shape(const ClusterSpec& cluster, const Plan& plan);

// Returns "torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK … PROGRAM"; one node needs
// no rendezvous. Options as in https://docs.pytorch.org/docs/stable/elastic/run.html.
std::string torchrun_line(const LaunchShape& shape, const std::string& program);

}  // namespace shardwright::planner
