// The price of one kernel.
#pragma once

#include "core/base/units.hpp"

namespace shardwright::sim {

struct KernelCost {
  Seconds time{};           // on the device, from start to end; the host's launch is not in it
  double efficiency = 0.0;  // of the peak that bounds it: matrix FLOP/s if `compute_bound`, else
                            // bytes/s; at most 1 for anything that has to come from memory
  bool compute_bound = false;
};

}  // namespace shardwright::sim
