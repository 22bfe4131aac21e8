// The costs of the ops of a program on a cluster: every distinct block is priced once.
#pragma once

#include <vector>

#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/cost.hpp"
#include "sim/cost/placement.hpp"
#include "sim/cost/port_share.hpp"
#include "sim/step/host_launch.hpp"
#include "sim/step/shared_device.hpp"

namespace shardwright::sim {

// Durations of the ops of one block, in issue order, on a device and a network that nothing else
// uses; those of kernels on the slowest device that takes part.
using BlockPrices = std::vector<Seconds>;

// An op that the accelerator computes: neither a communication, nor a copy to the host, nor the
// optimizer there.
bool is_kernel(const Op& op);

// The shares of the accelerator's ports that each op of one block fills alone.
using BlockPorts = std::vector<PortShare>;

struct Prices {
  // Prices by BlockId.
  std::vector<BlockPrices> blocks;
  // Ports by BlockId; empty if no port is shared.
  std::vector<BlockPorts> ports;
  // The basis of a block's kernels, by BlockId.
  std::vector<BasisTimes> basis;
  // Launches by pool (Block::pool).
  std::vector<HostLaunch> launch;
  Contention contention;

  // Returns the prices for accelerators whose collectives share the scale-up port alone.
  Prices without_shared_nics() const;
};

Contention contention_of(const StackSpec& stack);

Prices price(const Program& program, const ClusterSpec& cluster, const StackSpec& stack);

struct PricedBlock {
  BlockPrices times;
  BlockPorts ports;
  // The basis of its kernels.
  BasisTimes basis;
};

// Prices one block at a time, looking each group's placement up once.
class Pricer {
 public:
  // `apart`: the stages of a pipeline message lie on different nodes, wherever their ranks would.
  Pricer(const Plan& plan, const ClusterSpec& cluster, const StackSpec& stack, bool apart = false);

  PricedBlock price(const Block& block) const;

 private:
  KernelCost kernel(const Op& op) const;
  void price_message(OpKind kind, const CommunicationWork& message, PricedBlock& priced) const;
  const GroupPlacement& placement_of(const CommunicationWork& message) const {
    return placements_[static_cast<std::size_t>(message.group)];
  }

  const Plan& plan_;
  const ClusterSpec& cluster_;
  const StackSpec& stack_;
  // The time of a kernel on the slowest device of all ranks.
  double slowest_;
  // Ranks of a node.
  std::int64_t sharers_;
  // Placements by Group.
  std::vector<GroupPlacement> placements_;
};

}  // namespace shardwright::sim
