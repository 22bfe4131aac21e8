// How many processes a plan starts on how many nodes, and the command line of torchrun for it.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::planner {

struct LaunchShape {
  std::int64_t nodes = 1;
  std::int64_t processes = 1;  // of each node: launchers start as many on every one

  bool operator==(const LaunchShape&) const = default;
};

// The fewest nodes that share the plan's ranks evenly; nodes x processes is the world size.
LaunchShape launch_shape(const ClusterSpec& cluster, const Plan& plan);

// "torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK … PROGRAM"; one node needs no
// rendezvous. Options as in https://docs.pytorch.org/docs/stable/elastic/run.html.
std::string torchrun_line(const LaunchShape& shape, const std::string& program);

}  // namespace shardwright::planner
