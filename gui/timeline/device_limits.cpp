#include "gui/timeline/device_limits.hpp"

namespace shardwright::gui {

DeviceLimits limits_of(const Scenario& scenario) {
  const NodeSpec& node = scenario.cluster.node;
  const double nics =
      static_cast<double>(node.nic.per_node) / static_cast<double>(node.accelerators);
  return {scenario.cluster.accelerator.memory,
          scenario.cluster.accelerator.matrix.of(scenario.plan.precision), node.scale_up.bandwidth,
          node.nic.bandwidth * nics};
}

}  // namespace shardwright::gui
