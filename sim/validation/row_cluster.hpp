// The hardware of a published measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// The shipped cluster that a text names by an alias ("p5.48xlarge", "a3-megagpu-8g"), the longest
// one; null without.
const ClusterSpec* named_cluster(const std::string& text);

// The shipped cluster with the row's accelerator whose network is nearest to what the row says, of
// equally near ones the one that it names; where its bandwidth or its number of accelerators per
// node differs, the row's holds.
// `reason` is set where no shipped cluster has the accelerator.
std::optional<ClusterSpec> cluster_of_row(const TrainingRow& row,
                                          std::vector<std::string>& filled_in, std::string& reason);

}  // namespace shardwright::sim
