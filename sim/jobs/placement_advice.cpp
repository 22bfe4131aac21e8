#include "sim/jobs/placement_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "sim/cost/placement.hpp"
#include "sim/step/node_links.hpp"

namespace shardwright::sim {
namespace {

// Nodes below one switch of each oversubscribed level, from the leaf up.
std::vector<std::int64_t> narrow_levels(const ClusterSpec& cluster) {
  std::vector<std::int64_t> levels;
  for (const FabricLevel& level : cluster.fabric.levels) {
    if (level.oversubscription > 1.0) levels.push_back(domains_below(level, cluster));
  }
  return levels;
}

// The switches of a level that the group has traffic on both sides of.
std::set<std::int64_t> crossed_switches(std::span<const std::int64_t> nodes, bool leaves_cluster,
                                        std::int64_t below) {
  std::set<std::int64_t> switches;
  for (const std::int64_t node : nodes) switches.insert(node / below);
  if (switches.size() == 1 && !leaves_cluster) switches.clear();
  return switches;
}

// The switches that others cross, by level.
std::vector<std::set<std::int64_t>> busy_switches(const std::vector<std::int64_t>& levels,
                                                  const std::vector<NodeGroup>& others) {
  std::vector<std::set<std::int64_t>> busy;
  for (const std::int64_t below : levels) {
    std::set<std::int64_t>& switches = busy.emplace_back();
    for (const NodeGroup& group : others)
      switches.merge(crossed_switches(group.nodes, group.leaves_cluster, below));
  }
  return busy;
}

std::int64_t count_shared(std::span<const std::int64_t> nodes,
                          const std::vector<std::int64_t>& levels,
                          const std::vector<std::set<std::int64_t>>& busy) {
  std::int64_t shared = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    for (const std::int64_t each : crossed_switches(nodes, false, levels[i]))
      shared += busy[i].contains(each) ? 1 : 0;
  }
  return shared;
}

// The free nodes below a leaf.
using Leaves = std::map<std::int64_t, std::vector<std::int64_t>>;

class Adviser {
 public:
  Adviser(const ClusterSpec& cluster, std::int64_t nodes, std::int64_t needed,
          const std::vector<NodeGroup>& others, const std::vector<std::int64_t>& taken)
      : cluster_(cluster),
        nodes_(nodes),
        needed_(needed),
        levels_(narrow_levels(cluster)),
        busy_(busy_switches(levels_, others)),
        leaf_(cluster.fabric.levels.empty() ? nodes
                                            : domains_below(cluster.fabric.levels[0], cluster)) {
    const std::set<std::int64_t> gone(taken.begin(), taken.end());
    for (std::int64_t node = 0; node < nodes; ++node) {
      if (!gone.contains(node)) free_[node / leaf_].push_back(node);
    }
  }

  std::optional<std::vector<std::int64_t>> advise() {
    for (const FabricLevel& level : cluster_.fabric.levels) {
      const std::int64_t below = domains_below(level, cluster_);
      for (std::int64_t first = 0; first < nodes_; first += below) try_nodes(first, first + below);
    }
    try_nodes(0, nodes_);
    return best_;
  }

 private:
  // Fewer is better: shared switches, leaves, nodes that stay free below the switch.
  using Cost = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

  std::int64_t busy_above(std::int64_t leaf) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < levels_.size(); ++i)
      count += busy_[i].contains(leaf * leaf_ / levels_[i]) ? 1 : 0;
    return count;
  }

  // Looks at the free nodes from `first` to before `end`.
  void try_nodes(std::int64_t first, std::int64_t end) {
    std::vector<const Leaves::value_type*> leaves;
    std::int64_t free = 0;
    const auto last = free_.lower_bound((std::min(end, nodes_) + leaf_ - 1) / leaf_);
    for (auto at = free_.lower_bound(first / leaf_); at != last; ++at) {
      leaves.push_back(&*at);
      free += std::ssize(at->second);
    }
    if (free < needed_) return;
    std::stable_sort(leaves.begin(), leaves.end(), [&](const auto* a, const auto* b) {
      return std::pair(busy_above(a->first), -std::ssize(a->second)) <
             std::pair(busy_above(b->first), -std::ssize(b->second));
    });
    std::vector<std::int64_t> nodes;
    std::int64_t used = 0;
    for (const auto* leaf : leaves) {
      if (std::ssize(nodes) == needed_) break;
      const auto take = std::min(std::ssize(leaf->second), needed_ - std::ssize(nodes));
      nodes.insert(nodes.end(), leaf->second.begin(), leaf->second.begin() + take);
      ++used;
    }
    std::sort(nodes.begin(), nodes.end());
    const Cost cost{count_shared(nodes, levels_, busy_), used, free - needed_};
    if (best_ && cost >= cost_) return;
    best_ = std::move(nodes);
    cost_ = cost;
  }

  const ClusterSpec& cluster_;
  std::int64_t nodes_, needed_;
  std::vector<std::int64_t> levels_;
  std::vector<std::set<std::int64_t>> busy_;
  // Nodes below one leaf.
  std::int64_t leaf_;
  Leaves free_;
  std::optional<std::vector<std::int64_t>> best_;
  Cost cost_;
};

}  // namespace

std::int64_t count_shared_switches(const ClusterSpec& cluster, std::span<const std::int64_t> nodes,
                                   const std::vector<NodeGroup>& others) {
  const std::vector<std::int64_t> levels = narrow_levels(cluster);
  return count_shared(nodes, levels, busy_switches(levels, others));
}

std::optional<std::vector<std::int64_t>> advise_nodes(const ClusterSpec& cluster,
                                                      std::int64_t cluster_nodes,
                                                      std::int64_t needed,
                                                      const std::vector<NodeGroup>& others,
                                                      const std::vector<std::int64_t>& taken) {
  return Adviser(cluster, cluster_nodes, needed, others, taken).advise();
}

void place_jobs(JobSet& jobs, const std::string& source) {
  std::vector<NodeGroup> others;
  std::vector<std::int64_t> taken;
  const auto add = [&](const std::vector<std::int64_t>& nodes) {
    taken.insert(taken.end(), nodes.begin(), nodes.end());
  };
  for (const TrainingJob& job : jobs.training) {
    if (!job.nodes.empty()) others.push_back({job.nodes});
    add(job.nodes);
  }
  for (const StorageTraffic& traffic : jobs.storage) {
    NodeGroup& group = others.emplace_back(NodeGroup{traffic.nodes, traffic.servers.empty()});
    group.nodes.insert(group.nodes.end(), traffic.servers.begin(), traffic.servers.end());
    add(traffic.servers);
  }
  const std::int64_t nodes = count_nodes(jobs.cluster());
  for (std::size_t i = 0; i < jobs.training.size(); ++i) {
    TrainingJob& job = jobs.training[i];
    if (!job.nodes.empty()) continue;
    const std::int64_t needed = count_nics(job.scenario.plan, job.scenario.cluster).nodes;
    auto advised = advise_nodes(jobs.cluster(), nodes, needed, others, taken);
    if (!advised) {
      throw InputError(source, {{fmt::format("/training/{}/nodes", i),
                                 format_plural(nodes - std::ssize(taken), "free node"),
                                 fmt::format("{}, which the job fills", needed)}});
    }
    job.nodes = std::move(*advised);
    job.is_placed = true;
    others.push_back({job.nodes});
    add(job.nodes);
  }
}

}  // namespace shardwright::sim
