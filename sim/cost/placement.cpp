#include "sim/cost/placement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/program/groups.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright::sim {

namespace {

bool nests(std::int64_t a, std::int64_t b) {
  return a % b == 0 || b % a == 0;
}

// True if every group of the kind covers the nodes in the same way: all boundaries line up.
bool is_aligned(const GroupLattice& lattice, std::int64_t domain, std::int64_t world) {
  return (world <= domain || world % domain == 0) &&
         std::all_of(lattice.begin(), lattice.end(), [&](const GroupDimension& dimension) {
           return nests(domain, dimension.stride) &&
                  nests(domain, dimension.stride * dimension.count);
         });
}

GroupPlacement place_aligned(const GroupLattice& lattice, std::int64_t domain, std::int64_t world) {
  GroupPlacement result;
  for (const auto& [count, stride] : lattice) {
    const std::int64_t per_node = std::clamp<std::int64_t>(domain / stride, 1, count);
    result.size *= count;
    result.per_node *= per_node;
    const std::int64_t spacing = std::max<std::int64_t>(1, stride / domain);
    result.span += (count / per_node - 1) * spacing;
    result.grid.append(count / per_node, spacing);
  }
  result.nodes = result.size / result.per_node;
  if (result.nodes > 1) result.groups_per_node = std::min(domain, world) / result.per_node;
  return result;
}

// The nodes of the group whose first member is `first`, in ascending order, one entry per member.
void list_nodes(const GroupLattice& lattice, std::int64_t first, std::int64_t domain,
                std::vector<std::int64_t>& nodes) {
  nodes.assign(1, first);
  for (const auto& [count, stride] : lattice) {
    const std::size_t known = nodes.size();
    for (std::int64_t index = 1; index < count; ++index)
      for (std::size_t i = 0; i < known; ++i) nodes.push_back(nodes[i] + index * stride);
  }
  for (std::int64_t& rank : nodes) rank /= domain;
  std::sort(nodes.begin(), nodes.end());
}

// Widens `worst` by one group, given the nodes of its members.
void add_group(const std::vector<std::int64_t>& nodes, GroupPlacement& worst,
               std::vector<std::int64_t>& groups_on_node) {
  const bool leaves_node = nodes.front() != nodes.back();
  std::int64_t distinct = 0, most = 0;
  for (auto first = nodes.begin(); first != nodes.end(); ++distinct) {
    const auto last = std::upper_bound(first, nodes.end(), *first);
    most = std::max<std::int64_t>(most, last - first);
    if (leaves_node) ++groups_on_node[static_cast<std::size_t>(*first)];
    first = last;
  }
  worst.span = std::max(worst.span, nodes.back() - nodes.front() + 1);
  if (distinct < worst.nodes) return;
  worst.per_node = distinct > worst.nodes ? most : std::max(worst.per_node, most);
  worst.nodes = distinct;
}

// Looks at every group, where boundaries do not line up. Takes O(world size) time.
GroupPlacement place_by_enumeration(const GroupLattice& lattice, std::int64_t domain,
                                    std::int64_t world) {
  GroupPlacement worst;
  worst.size = lattice.members();
  std::vector<std::int64_t> groups_on_node(static_cast<std::size_t>(world / domain + 1));
  std::vector<std::int64_t> nodes;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (lattice.first_member(rank) != rank) continue;
    list_nodes(lattice, rank, domain, nodes);
    add_group(nodes, worst, groups_on_node);
  }
  worst.groups_per_node =
      std::max<std::int64_t>(1, *std::max_element(groups_on_node.begin(), groups_on_node.end()));
  return worst;
}

// Pairs of stages `hops` apart along the pipeline, of which `first_stages` have a partner.
struct StagePairs {
  // Ranks between neighbouring stages.
  std::int64_t inside = 1;
  std::int64_t hops = 1;
  std::int64_t first_stages = 1;
};

GroupPlacement place_pairs_by_enumeration(const StagePairs& pairs, const Plan& plan,
                                          std::int64_t domain) {
  GroupPlacement worst{.size = 2, .per_node = 2};
  std::vector<std::int64_t> pairs_on_node(static_cast<std::size_t>(plan.world_size() / domain + 1));
  for (std::int64_t rank = 0; rank < plan.world_size(); ++rank) {
    if (rank / pairs.inside % plan.pp >= pairs.first_stages) continue;
    const std::int64_t node = rank / domain;
    const std::int64_t distance = (rank + pairs.inside * pairs.hops) / domain - node;
    if (distance == 0) continue;
    worst.per_node = 1;
    worst.nodes = 2;
    worst.span = std::max(worst.span, distance + 1);
    auto& sharing = pairs_on_node[static_cast<std::size_t>(node)];
    worst.groups_per_node = std::max(worst.groups_per_node, ++sharing);
  }
  return worst;
}

GroupPlacement place_pairs(const StagePairs& pairs, const Plan& plan, std::int64_t domain) {
  if (plan.pp == 1) return {};
  const std::int64_t replica = pairs.inside * plan.pp;
  if (plan.world_size() <= domain || (replica <= domain && domain % replica == 0))
    return {.size = 2, .per_node = 2};
  if (!nests(domain, pairs.inside) || replica % domain != 0)
    return place_pairs_by_enumeration(pairs, plan, domain);
  const std::int64_t stages_per_node = std::max<std::int64_t>(1, domain / pairs.inside);
  const std::int64_t nodes_per_stage = std::max<std::int64_t>(1, pairs.inside / domain);
  // The pair begins at the first stage of a node alone, or at its last one where every stage has a
  // partner.
  const std::int64_t start = std::min(pairs.first_stages, stages_per_node) - 1;
  const std::int64_t distance = (start + pairs.hops) / stages_per_node;
  GroupPlacement result{.size = 2,
                        .per_node = 1,
                        .nodes = 2,
                        .groups_per_node = std::min(domain, pairs.inside),
                        .span = distance * nodes_per_stage + 1};
  result.grid.append((pairs.first_stages + pairs.hops + stages_per_node - 1) / stages_per_node,
                     result.span - 1);
  return result;
}

GroupPlacement place_group(Group group, const Plan& plan, std::int64_t domain) {
  if (group == Group::Pipeline)
    return place_pairs({ranks_inside_pipeline(plan), 1, plan.pp - 1}, plan, domain);
  if (group == Group::Mirror && group_size(group, plan) == 1) return {};
  if (group == Group::EmbeddingTie || group == Group::Mirror)
    return place_pairs({ranks_inside_pipeline(plan), plan.pp - 1, 1}, plan, domain);
  return place_on_domains(group_lattice(group, plan), domain, plan.world_size());
}

}  // namespace

std::int64_t extent_of(const GroupPlacement& placement) {
  std::int64_t extent = placement.grid.empty() ? placement.span : 1;
  for (const auto& [count, stride] : placement.grid) extent += (count - 1) * stride;
  return extent;
}

std::int64_t domain_size(const ClusterSpec& cluster) {
  return std::max<std::int64_t>({1, cluster.node.accelerators, cluster.node.scale_up.domain});
}

std::int64_t domains_below(const FabricLevel& level, const ClusterSpec& cluster) {
  const std::int64_t accelerators =
      level.nodes * std::max<std::int64_t>(1, cluster.node.accelerators);
  return std::max<std::int64_t>(1, accelerators / domain_size(cluster));
}

std::int64_t domain_block(const ClusterSpec& cluster, std::int64_t world_size) {
  const std::int64_t domain = domain_size(cluster);
  if (world_size <= domain) return domain;
  if (world_size % domain == 0) return domain;
  constexpr std::int64_t kUsualGroup = 8;
  const std::int64_t step =
      std::lcm(std::max<std::int64_t>(1, cluster.node.accelerators), kUsualGroup);
  for (std::int64_t block = domain / step * step; 2 * block > domain; block -= step) {
    if (world_size % block == 0) return block;
  }
  return domain;
}

GroupPlacement place_on_domains(const GroupLattice& lattice, std::int64_t domain,
                                std::int64_t world) {
  return is_aligned(lattice, domain, world) ? place_aligned(lattice, domain, world)
                                            : place_by_enumeration(lattice, domain, world);
}

GroupPlacement place(Group group, const Plan& plan, const ClusterSpec& cluster) {
  const std::int64_t domain = domain_block(cluster, plan.world_size());
  GroupPlacement placement = place_group(group, plan, domain);
  placement.job_nodes = (plan.world_size() + domain - 1) / domain;
  return placement;
}

TokenTraffic token_traffic(std::int64_t tokens, std::int64_t copies, std::int64_t most_nodes,
                           const GroupPlacement& placement) {
  TokenTraffic traffic{.count = tokens};
  if (copies <= 1 || placement.size <= 1) return traffic;
  const auto sent = static_cast<double>(copies);
  const auto hit = [&](std::int64_t places) {
    const auto n = static_cast<double>(places);
    return n * (1.0 - std::pow(1.0 - 1.0 / n, sent));
  };
  const std::int64_t nodes =
      most_nodes > 0 ? std::min(most_nodes, placement.nodes) : placement.nodes;
  traffic.local = hit(std::min(placement.size, nodes * placement.per_node)) / sent;
  if (placement.nodes > 1)
    traffic.remote = std::min(hit(placement.nodes), static_cast<double>(nodes)) / sent;
  return traffic;
}

}  // namespace shardwright::sim
