// What one accelerator of a step can do at most, to hold against what its ops reach.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::gui {

// Zero: not told, as of a timeline without its plan.
struct DeviceLimits {
  Bytes memory;
  FlopPerSecond matrix_peak;     // in the plan's number format
  BytesPerSecond scale_up;       // inside of a scale-up domain, one direction
  BytesPerSecond between_nodes;  // its share of the node's NICs, one direction
};

DeviceLimits limits_of(const Scenario& scenario);

}  // namespace shardwright::gui
