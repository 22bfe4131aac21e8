// The cluster as a job finds it that has only some of the nodes below a switch.
#pragma once

#include <cstdint>
#include <span>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

// The cluster whose first nodes are those of the job. Where the job has k of the N nodes below a
// switch of oversubscription o, the switch's links upwards are those of N / o nodes, so that the job
// alone finds an oversubscription of max(1, o k / N); k is that of the switch with the most of its
// nodes. As many nodes lie below one switch as always do of the job's nodes in a row, cut into runs
// of that length. A job below one switch finds the level as it is.
ClusterSpec cluster_of_job(ClusterSpec cluster, std::span<const std::int64_t> nodes);

}  // namespace shardwright::sim
