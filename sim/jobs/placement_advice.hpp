// The nodes of a cluster that a job should take: those that share the fewest links with other jobs.
//
// Two jobs share the links up and down of a switch if each has traffic on both sides of it. Only
// switches of oversubscribed levels count, because the links of others carry all that comes.
//
// For each switch below which enough nodes are free, and for the whole cluster, the job takes the
// free nodes leaf by leaf: first those below the fewest switches whose links others use, of equals
// those with the most free nodes. The best of these candidates is the advice: the one with the
// fewest shared links, then on the fewest leaves, then below the fullest switch. With one
// oversubscribed level this is exact; with several the leaves of one pod may be split better.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "sim/jobs/job_set.hpp"

namespace shardwright::sim {

// Nodes that exchange data with each other.
struct NodeGroup {
  std::vector<std::int64_t> nodes;
  // They also exchange data with what lies above all switches.
  bool leaves_cluster = false;
};

// The switches whose links a job on these nodes would share with others.
std::int64_t count_shared_switches(const ClusterSpec& cluster, std::span<const std::int64_t> nodes,
                                   const std::vector<NodeGroup>& others);

// So many of the first `cluster_nodes` nodes, none of which is in `taken`; nothing if fewer are
// free.
std::optional<std::vector<std::int64_t>> advise_nodes(const ClusterSpec& cluster,
                                                      std::int64_t cluster_nodes,
                                                      std::int64_t needed,
                                                      const std::vector<NodeGroup>& others,
                                                      const std::vector<std::int64_t>& taken);

// Gives nodes to each job that has none, in order. Throws InputError if too few are free.
void place_jobs(JobSet& jobs, const std::string& source);

}  // namespace shardwright::sim
