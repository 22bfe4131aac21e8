// The cluster as a job finds it that has only some of the nodes below a switch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

// The cluster whose first nodes are those of the job. Where the job has k of the N nodes below a
// switch of oversubscription o, the switch's links upwards are those of N / o nodes, so that the
// job alone finds an oversubscription of max(1, o k / N); k is that of the switch with the most of
// its nodes. As many nodes lie below one switch as always do of the job's nodes in a row, cut into
// runs of that length. A job below one switch finds the level as it is.
ClusterSpec cluster_of_job(ClusterSpec cluster, std::span<const std::int64_t> nodes);

// For each job, given its nodes, whether the switches reduce for it as far as they can: first come,
// first served. A job of several nodes takes one of the `reduction_jobs_per_switch` of each leaf
// that it has nodes below, or none where one of the leaves has none left. Above leaves many
// switches share the work, so that there is no limit.
std::vector<bool> share_out_reductions(const ClusterSpec& cluster,
                                       const std::vector<std::span<const std::int64_t>>& jobs);

}  // namespace shardwright::sim
