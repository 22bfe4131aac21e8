// Tells whether the measurements of a run speak for a profile's accelerator.
#pragma once

#include "calibration/measured_run.hpp"
#include "core/base/error.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright::calibration {

// Adds a problem where the run computed on CPUs and the profile is of GPUs or the other way round,
// or where it was planned for another accelerator of the same kind. A run that does not say what it
// computed on did so on what its plan is for.
void check_device(const MeasuredRun& run, const ClusterSpec& cluster, ProblemList& problems);

}  // namespace shardwright::calibration
