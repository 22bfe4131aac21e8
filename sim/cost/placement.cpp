#include "sim/cost/placement.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/program/groups.hpp"

namespace shardwright::sim {
namespace {

constexpr std::size_t kAxes = 5;
constexpr std::size_t at(Axis axis) {
  return static_cast<std::size_t>(axis);
}

struct Degrees {
  std::array<std::int64_t, kAxes> of{};
};

Degrees dense_degrees(const Plan& plan) {
  Degrees degrees;
  degrees.of[at(Axis::Tensor)] = plan.tp;
  degrees.of[at(Axis::Context)] = plan.cp;
  degrees.of[at(Axis::Expert)] = 1;
  degrees.of[at(Axis::Data)] = plan.dp;
  degrees.of[at(Axis::Pipeline)] = plan.pp;
  return degrees;
}

Degrees expert_degrees(const Plan& plan) {
  Degrees degrees = dense_degrees(plan);
  degrees.of[at(Axis::Tensor)] = plan.expert_tp;
  degrees.of[at(Axis::Context)] = 1;
  degrees.of[at(Axis::Expert)] = plan.ep;
  degrees.of[at(Axis::Data)] =
      std::max<std::int64_t>(1, plan.tp * plan.cp * plan.dp / (plan.expert_tp * plan.ep));
  return degrees;
}

// Ranks of one stage that lie inside of the pipeline axis; a single stage is not cut by it.
std::int64_t inside_pipeline(const Plan& plan) {
  if (plan.pp == 1) return plan.tp * plan.cp * plan.dp;
  std::int64_t inside = 1;
  const Degrees degrees = dense_degrees(plan);
  for (Axis axis : plan.rank_order) {
    if (axis == Axis::Pipeline) break;
    inside *= degrees.of[at(axis)];
  }
  return inside;
}

// Adds a run of `count` ranks of a stage, `stride` apart in the stage's own numbering, as ranks of
// the world: where the pipeline axis lies inside of the run, it cuts the run in two.
void append_stage_run(GroupLattice& lattice, std::int64_t count, std::int64_t stride,
                      const Plan& plan) {
  const std::int64_t inside = inside_pipeline(plan);
  if (stride >= inside) return lattice.append(count, stride * plan.pp);
  const std::int64_t low = std::min(count, inside / stride);
  lattice.append(low, stride);
  lattice.append(count / low, inside * plan.pp);
}

// The members that differ along `axes`, in a stage that is numbered by `degrees`.
GroupLattice stage_lattice(const Plan& plan, const Degrees& degrees,
                           std::initializer_list<Axis> axes) {
  GroupLattice lattice;
  std::int64_t stride = 1;
  for (Axis axis : plan.rank_order) {
    if (axis == Axis::Pipeline) continue;
    const std::int64_t degree = degrees.of[at(axis)];
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      append_stage_run(lattice, degree, stride, plan);
    stride *= degree;
  }
  return lattice;
}

// The innermost `size` members of a lattice, and the members that hold the same place in other such
// parts.
struct Split {
  GroupLattice inner, outer;
};

Split split(const GroupLattice& lattice, std::int64_t size) {
  Split result;
  std::int64_t left = size;
  for (const GroupDimension& dimension : lattice) {
    const std::int64_t inner = std::min(left, dimension.count);
    result.inner.append(inner, dimension.stride);
    result.outer.append(dimension.count / inner, dimension.stride * inner);
    left = std::max<std::int64_t>(1, left / inner);
  }
  return result;
}

Split shard_split(const Plan& plan, const GroupLattice& data) {
  const std::int64_t size = data.members();
  return split(data, plan.shard_group == 0 ? size : std::min(plan.shard_group, size));
}

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

// True if `rank` is the first member of its group: index 0 along every dimension.
bool is_first_member(const GroupLattice& lattice, std::int64_t rank) {
  return std::all_of(lattice.begin(), lattice.end(), [&](const GroupDimension& dimension) {
    return rank / dimension.stride % dimension.count == 0;
  });
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

// Where boundaries do not line up, every group is looked at. O(world size).
GroupPlacement place_by_enumeration(const GroupLattice& lattice, std::int64_t domain,
                                    std::int64_t world) {
  GroupPlacement worst;
  worst.size = lattice.members();
  std::vector<std::int64_t> groups_on_node(static_cast<std::size_t>(world / domain + 1));
  std::vector<std::int64_t> nodes;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (!is_first_member(lattice, rank)) continue;
    list_nodes(lattice, rank, domain, nodes);
    add_group(nodes, worst, groups_on_node);
  }
  worst.groups_per_node =
      std::max<std::int64_t>(1, *std::max_element(groups_on_node.begin(), groups_on_node.end()));
  return worst;
}

// Pairs of stages `hops` apart along the pipeline, of which `first_stages` have a partner.
struct StagePairs {
  std::int64_t inside = 1;  // ranks between neighbouring stages
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
  // From the first stage of a node alone, or from its last one where every stage has a partner.
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

GroupPlacement place_on_domains(Group group, const Plan& plan, std::int64_t domain) {
  if (group == Group::Pipeline)
    return place_pairs({inside_pipeline(plan), 1, plan.pp - 1}, plan, domain);
  if (group == Group::Mirror && group_size(group, plan) == 1) return {};
  if (group == Group::EmbeddingTie || group == Group::Mirror)
    return place_pairs({inside_pipeline(plan), plan.pp - 1, 1}, plan, domain);
  const GroupLattice lattice = group_lattice(group, plan);
  const std::int64_t world = plan.world_size();
  return is_aligned(lattice, domain, world) ? place_aligned(lattice, domain, world)
                                            : place_by_enumeration(lattice, domain, world);
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

void GroupLattice::append(std::int64_t count, std::int64_t stride) {
  if (count <= 1) return;
  SHARDWRIGHT_CHECK(used_ < dimensions_.size(), "too many dimensions");
  dimensions_[used_++] = {count, stride};
}

void GroupLattice::insert(GroupDimension dimension) {
  append(dimension.count, dimension.stride);
  std::stable_sort(dimensions_.begin(), dimensions_.begin() + static_cast<std::ptrdiff_t>(used_),
                   [](const auto& a, const auto& b) { return a.stride < b.stride; });
}

std::int64_t GroupLattice::members() const {
  std::int64_t members = 1;
  for (const GroupDimension& dimension : *this) members *= dimension.count;
  return members;
}

GroupLattice group_lattice(Group group, const Plan& plan) {
  const auto dense = [&](auto... axes) {
    return stage_lattice(plan, dense_degrees(plan), {axes...});
  };
  const auto expert = [&](Axis axis) { return stage_lattice(plan, expert_degrees(plan), {axis}); };
  const auto with_stages = [&](GroupLattice lattice, std::int64_t stages, std::int64_t hops) {
    lattice.insert({stages, inside_pipeline(plan) * hops});
    return lattice;
  };
  const std::int64_t pair = std::min<std::int64_t>(plan.pp, 2);
  switch (group) {
    case Group::Tensor:
      return dense(Axis::Tensor);
    case Group::Context:
      return dense(Axis::Context);
    case Group::Data:
      return dense(Axis::Context, Axis::Data);
    case Group::Expert:
      return expert(Axis::Expert);
    case Group::ExpertTensor:
      return expert(Axis::Tensor);
    case Group::ExpertData:
      return expert(Axis::Data);
    case Group::ShardInner:
      return shard_split(plan, dense(Axis::Context, Axis::Data)).inner;
    case Group::ShardOuter:
      return shard_split(plan, dense(Axis::Context, Axis::Data)).outer;
    case Group::ExpertShardInner:
      return shard_split(plan, expert(Axis::Data)).inner;
    case Group::ExpertShardOuter:
      return shard_split(plan, expert(Axis::Data)).outer;
    case Group::Pipeline:
      return with_stages({}, pair, 1);
    case Group::EmbeddingTie:
      return with_stages({}, pair, plan.pp - 1);
    case Group::Mirror:
      return with_stages({}, group_size(Group::Mirror, plan), plan.pp - 1);
    case Group::ModelParallel:
      return with_stages(dense(Axis::Tensor), plan.pp, 1);
  }
  SHARDWRIGHT_CHECK(false, "unknown group " + std::to_string(static_cast<int>(group)));
  return {};
}

GroupPlacement place(Group group, const Plan& plan, const ClusterSpec& cluster) {
  const std::int64_t domain = domain_block(cluster, plan.world_size());
  GroupPlacement placement = place_on_domains(group, plan, domain);
  placement.job_nodes = (plan.world_size() + domain - 1) / domain;
  return placement;
}

}  // namespace shardwright::sim
