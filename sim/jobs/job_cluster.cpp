#include "sim/jobs/job_cluster.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/cost/placement.hpp"

namespace shardwright::sim {
namespace {

// The most nodes, up to `below`, into which the job's nodes can be cut so that each run of them
// lies below one switch.
std::int64_t longest_run(std::span<const std::int64_t> nodes, std::int64_t below) {
  const auto fits = [&](std::int64_t run) {
    for (std::int64_t i = 1; i < std::ssize(nodes); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i % run != 0 && nodes[at] / below != nodes[at - 1] / below) return false;
    }
    return true;
  };
  std::int64_t run = std::min<std::int64_t>(below, std::ssize(nodes));
  while (!fits(run)) --run;
  return run;
}

std::int64_t most_below_one(std::span<const std::int64_t> nodes, std::int64_t below) {
  std::map<std::int64_t, std::int64_t> counts;
  std::int64_t most = 0;
  for (const std::int64_t node : nodes) most = std::max(most, ++counts[node / below]);
  return most;
}

}  // namespace

ClusterSpec cluster_of_job(ClusterSpec cluster, std::span<const std::int64_t> nodes) {
  const std::int64_t boards =
      domain_size(cluster) / std::max<std::int64_t>(1, cluster.node.accelerators);
  for (FabricLevel& level : cluster.fabric.levels) {
    const std::int64_t below = domains_below(level, cluster);
    const std::int64_t most = most_below_one(nodes, below);
    if (most == std::ssize(nodes)) continue;
    const std::int64_t run = longest_run(nodes, below);
    if (run < below) level.nodes = run * boards;
    level.oversubscription = std::max(
        1.0, level.oversubscription * static_cast<double>(most) / static_cast<double>(below));
  }
  return cluster;
}

std::vector<bool> share_out_reductions(const ClusterSpec& cluster,
                                       const std::vector<std::span<const std::int64_t>>& jobs) {
  const FabricSpec& fabric = cluster.fabric;
  std::vector<bool> served(jobs.size(), true);
  if (!fabric.in_network_reduction || fabric.reduction_jobs_per_switch == 0) return served;
  const std::int64_t below = domains_below(fabric.levels.front(), cluster);
  std::map<std::int64_t, std::int64_t> jobs_of_leaf;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if (jobs[job].size() < 2) continue;
    std::set<std::int64_t> leaves;
    for (const std::int64_t node : jobs[job]) leaves.insert(node / below);
    served[job] = std::all_of(leaves.begin(), leaves.end(), [&](std::int64_t leaf) {
      return jobs_of_leaf[leaf] < fabric.reduction_jobs_per_switch;
    });
    if (!served[job]) continue;
    for (const std::int64_t leaf : leaves) ++jobs_of_leaf[leaf];
  }
  return served;
}

}  // namespace shardwright::sim
