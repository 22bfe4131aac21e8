// The peak rates and the memory of one accelerator, which the rates of ops are compared with.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::gui {

// A zero is unknown, as for a timeline without its plan.
struct DeviceLimits {
  Bytes memory;
  // The rate of matrix products in the plan's number format.
  FlopPerSecond matrix_peak;
  // One direction inside of a scale-up domain.
  BytesPerSecond scale_up;
  // One direction of the accelerator's share of the node's NICs.
  BytesPerSecond between_nodes;
};

inline DeviceLimits limits_of(const Scenario& scenario) {
  const NodeSpec& node = scenario.cluster.node;
  const double nics =
      static_cast<double>(node.nic.per_node) / static_cast<double>(node.accelerators);
  return {scenario.cluster.accelerator.memory,
          scenario.cluster.accelerator.matrix.of(scenario.plan.precision), node.scale_up.bandwidth,
          node.nic.bandwidth * nics};
}

}  // namespace shardwright::gui
