// Kernels of measured runs: their curves, or the KernelEfficiency of the device.
#pragma once

#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/calibration/figure_log.hpp"
#include "sim/calibration/run_samples.hpp"

namespace shardwright::sim {

// A CPU gets a curve for each kind and phase that ran.
void calibrate_kernels(ClusterSpec& cluster, const std::vector<KernelSample>& samples,
                       const StackSpec& stack, const FigureLog& log);

}  // namespace shardwright::sim
