// A measured step and its prediction in one timeline.
#pragma once

#include "calibration/measured_run.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {

// The run's last recorded step. Each measured rank is followed by the prediction of its stage on
// the profile: rank r becomes 2 r and 2 r + 1, labelled "rank 3, stage 1: measured" and ":
// predicted". Spans keep their names, streams, layers and microbatches, so that they can be
// compared line by line.
Timeline side_by_side(const MeasuredRun& run, const ClusterSpec& cluster);

}  // namespace shardwright::calibration
