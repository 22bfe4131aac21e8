// The pools of a mixed cluster, and the stages that a plan places on them (docs/models/pools.md).
//
// A cluster's first pool is what its document describes; it bears the cluster's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// The pools of the plan's stages, each once, in the order of the pipeline; empty where the plan
// names none, so that all stages lie on the first pool.
std::vector<std::string> pools_of(const Plan& plan);

// The number of the stage's pool in `pools_of`; 0 where the plan names none.
std::int32_t pool_of_stage(const Plan& plan, std::size_t stage);

// The pool of this name as a cluster of this pool alone; nothing if the cluster has no such pool.
// Curves that were measured on a network are those of the first pool.
std::optional<ClusterSpec> pool_cluster(const ClusterSpec& cluster, const std::string& name);

// The pools in `pools_of`; empty where the plan names none. The plan keeps its rules.
std::vector<ClusterSpec> pool_clusters(const ClusterSpec& cluster, const Plan& plan);

// The pool of one stage as a cluster of this pool alone; the cluster itself where the plan names
// none.
ClusterSpec stage_cluster(const ClusterSpec& cluster, const Plan& plan, std::int32_t stage);

// The names of all pools, the first pool's before the others.
std::vector<std::string> names_of_pools(const ClusterSpec& cluster);

// The ranks before those of a pool have to be a multiple of this, so that its groups lie on
// scale-up domains as they would without the other pools.
std::int64_t ranks_per_domain(const NodeSpec& node);

// The peak in the plan's format of a rank, as the mean over the stages.
FlopPerSecond mean_peak(const ClusterSpec& cluster, const Plan& plan);

// True if all stages of the plan lie on nodes of one kind, on one kind of fabric, and no link
// between pools is said to be slower.
bool alike_links(const ClusterSpec& cluster, const Plan& plan);

// Throws InputError if the plan names pools, for commands that would take all stages to lie on the
// first one. `source`: the plan's file.
void refuse_pools(const Plan& plan, const std::string& source);

}  // namespace shardwright
