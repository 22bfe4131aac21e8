// Kernels of measured runs: their curves, or the KernelEfficiency of the device.
#pragma once

#include <string>
#include <vector>

#include "calibration/exchange_calibration.hpp"
#include "calibration/run_samples.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::calibration {

// A CPU gets a curve for each kind and phase of which these timings determine any figure. Those
// ("norm forward") that have none and get none are returned: they are priced as before, by the
// curve of another phase or the formula.
std::vector<std::string> calibrate_kernels(ClusterSpec& cluster,
                                           const std::vector<KernelSample>& samples,
                                           const StackSpec& stack, const FigureLog& log);

}  // namespace shardwright::calibration
