// The pools of a mixed cluster, and what a plan places on them: the stages of all replicas, whole
// replicas, or the stages of each part of the replicas (docs/models/pools.md).
//
// A cluster's first pool is what its document describes; it bears the cluster's name.
//
// Replicas of different parts lie on different pools and run different numbers of microbatches, so
// that their ranks have programs of their own. The functions below count these as stages of their
// own: first those of the first part that the plan names, and so on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// True if the plan places stages or replicas on pools.
inline bool names_pools(const Plan& plan) {
  return !plan.stage_pools.empty() || !plan.replica_pools.empty();
}

// The number of parts of the replicas that lie differently; 1 where the plan names none.
std::size_t replica_parts(const Plan& plan);

// The part that a replica belongs to, given its place along the data-parallel axis.
std::size_t part_of_replica(const Plan& plan, std::int64_t replica);

// The first replica of a part, and the one behind its last.
std::int64_t first_replica(const Plan& plan, std::size_t part);

// The plan whose replicas all run as many microbatches as those of the part do, and whose first
// part has the part's number of experts. It has the groups and the shards of `plan`.
Plan plan_of_part(const Plan& plan, std::size_t part);

// True if groups of experts have members in several replicas.
inline bool spreads_experts(const Plan& plan) {
  return plan.tp * plan.cp % (plan.ep * plan.expert_tp) != 0;
}

// True if the plan says how many experts the ranks of each part hold.
bool numbers_experts(const Plan& plan);

// Of `all` routed experts of a layer those that a rank of the first part holds, and the most that
// any rank of the plan does.
std::int64_t experts_of_rank(const Plan& plan, std::int64_t all);
std::int64_t most_experts_of_rank(const Plan& plan, std::int64_t all);

// The sequences of a step of all replicas on the plan's pools. It does not overflow in plans whose
// numbers are in range.
std::int64_t batch_of_pools(const Plan& plan);

// The number of stages, those of each part of the replicas counted apart.
std::int64_t count_stages(const Plan& plan);

// The number of ranks of a stage.
std::int64_t ranks_of_stage(const Plan& plan, std::size_t stage);

// The parts of a plan between which a run of the executor can move work, each of neighbouring
// ranks.
enum class MovableParts : std::uint8_t { Replicas, Stages };

// The kinds of parts between which the plan lets work move; empty where it does not.
std::vector<MovableParts> movable_parts(const Plan& plan);

// The most times as long that a slow rank counts as taking.
inline constexpr double kMostSlowdown = 100.0;

// The pools that the plan names, each once, in the order of the stages; empty where the plan names
// none, so that all stages lie on the first pool.
std::vector<std::string> pools_of(const Plan& plan);

// The name of the stage's pool; empty where the plan names none.
const std::string& pool_name_of_stage(const Plan& plan, std::size_t stage);

// The number of the stage's pool in `pools_of`; 0 where the plan names none.
std::int32_t pool_of_stage(const Plan& plan, std::size_t stage);

// True if stages of one replica lie on several pools, in a plan that places its replicas.
bool splits_replicas(const Plan& plan);

// The numbers of the pools of all stages of the replica that this one belongs to, each once.
std::vector<std::int32_t> pools_of_replica(const Plan& plan, std::size_t stage);

// The numbers of the pools of this stage in all parts of the replicas, each once.
std::vector<std::int32_t> pools_of_replicas(const Plan& plan, std::size_t stage);

// The number of ranks on a pool that the plan names.
std::int64_t ranks_on_pool(const Plan& plan, const std::string& pool);

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
