// Figures that measured runs determine of the stack (the host's time for an op, the slowdown beside
// collectives, the memory that no tensor explains) and of the variation of speed among ranks.
#pragma once

#include <vector>

#include "calibration/exchange_calibration.hpp"
#include "calibration/measured_run.hpp"
#include "calibration/run_samples.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright::calibration {

// `cluster` has a stack, unless there are no runs.
void calibrate_stack(ClusterSpec& cluster, const std::vector<MeasuredRun>& runs,
                     const std::vector<RunSamples>& samples, const FigureLog& log);

}  // namespace shardwright::calibration
