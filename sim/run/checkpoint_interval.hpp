// The training time between checkpoints: two formulas, and the best by simulation.
#pragma once

#include "core/base/units.hpp"
#include "sim/run/run_simulation.hpp"

namespace shardwright::sim {

// sqrt(2 stall mtbf): Young, A First Order Approximation to the Optimum Checkpoint Interval (1974).
Seconds young_interval(Seconds stall, Seconds mtbf);

// Daly, A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps (2006),
// equation 37: sqrt(2 stall mtbf) (1 + sqrt(stall / (2 mtbf)) / 3 + stall / (18 mtbf)) - stall, and
// mtbf if the stall is at least twice that.
Seconds daly_interval(Seconds stall, Seconds mtbf);

// Returns the interval of the shortest mean wall time over the runs of `options`, which all
// intervals share; at least `least`, at most the work of the whole run.
Seconds best_interval(RunModel model, const RunOptions& options, Seconds least);

}  // namespace shardwright::sim
