#include "gui/topology/cluster_map.hpp"

#include <algorithm>
#include <numeric>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::gui {
namespace {

using sim::LinkIndex;
using sim::VertexIndex;
using sim::VertexKind;

std::int64_t nodes_for(const ClusterSpec& cluster, std::int64_t ranks) {
  const std::int64_t per_node = std::max<std::int64_t>(1, cluster.node.accelerators);
  return std::max<std::int64_t>(1, (ranks + per_node - 1) / per_node);
}

}  // namespace

ClusterMap::ClusterMap(const ClusterSpec& cluster, std::int64_t ranks, std::int64_t first_rank)
    : cluster_(cluster),
      topology_(sim::Topology::build(cluster, nodes_for(cluster, ranks))),
      ranks_(static_cast<std::uint32_t>(ranks)),
      nodes_(static_cast<std::uint32_t>(nodes_for(cluster, ranks))),
      domain_size_(static_cast<std::uint32_t>(sim::domain_size(cluster))),
      first_rank_(first_rank) {
  sort_links();
  find_switch_levels();
  const auto& vertices = topology_.vertices();
  for (const sim::TopologyLink& link : topology_.links()) {
    const VertexKind a = vertices[link.from], b = vertices[link.to];
    const auto joins = [&](VertexKind kind) { return a == kind || b == kind; };
    level_.push_back(joins(VertexKind::Nic)
                         ? joins(VertexKind::Accelerator) ? LinkLevel::HostBus : LinkLevel::Leaf
                     : joins(VertexKind::Accelerator)  ? LinkLevel::ScaleUp
                     : joins(VertexKind::FabricSwitch) ? LinkLevel::Spine
                                                       : LinkLevel::Torus);
  }
}

std::uint32_t ClusterMap::domains() const {
  return (topology_.accelerators() + domain_size_ - 1) / domain_size_;
}

void ClusterMap::sort_links() {
  const auto& links = topology_.links();
  first_link_.assign(topology_.vertices().size() + 1, 0);
  for (const sim::TopologyLink& link : links) ++first_link_[link.from + 1];
  std::partial_sum(first_link_.begin(), first_link_.end(), first_link_.begin());
  links_by_vertex_.resize(links.size());
  std::vector<std::uint32_t> next = first_link_;
  for (LinkIndex i = 0; i < links.size(); ++i) links_by_vertex_[next[links[i].from]++] = i;
}

// A leaf has links to NICs, each other switch to a switch one level lower. Vertices come level by
// level.
void ClusterMap::find_switch_levels() {
  const auto& vertices = topology_.vertices();
  switch_level_.assign(vertices.size(), -1);
  number_.assign(vertices.size(), 0);
  std::vector<std::uint32_t> count(5, 0);
  for (VertexIndex v = 0; v < vertices.size(); ++v) {
    if (vertices[v] != VertexKind::FabricSwitch) {
      number_[v] = count[static_cast<std::size_t>(vertices[v])]++;
      continue;
    }
    int level = 0;
    for (const LinkIndex link : links_from(v))
      level = std::max(level, switch_level_[topology_.links()[link].to] + 1);
    switch_level_[v] = level;
    if (switches_.size() <= static_cast<std::size_t>(level))
      switches_.resize(static_cast<std::size_t>(level) + 1);
    auto& of_level = switches_[static_cast<std::size_t>(level)];
    number_[v] = static_cast<std::uint32_t>(of_level.size());
    of_level.push_back(v);
  }
}

std::span<const LinkIndex> ClusterMap::links_from(VertexIndex vertex) const {
  return {links_by_vertex_.data() + first_link_[vertex],
          first_link_[vertex + 1] - first_link_[vertex]};
}

QString ClusterMap::level_title(int level) {
  return level == 0 ? u"leaf"_s : level == 1 ? u"spine"_s : u"core"_s;
}

QString ClusterMap::vertex_name(VertexIndex vertex) const {
  const std::uint32_t number = number_[vertex];
  switch (topology_.vertices()[vertex]) {
    case VertexKind::Accelerator:
      return u"%1 %2"_s.arg(to_qstring(accelerator_word(cluster_))).arg(first_rank_ + vertex);
    case VertexKind::ScaleUpSwitch:
      return u"%1 switch %2"_s.arg(to_qstring(cluster_.node.scale_up.name)).arg(number);
    case VertexKind::Nic: {
      const auto rails = static_cast<std::uint32_t>(
          std::min(cluster_.node.nic.per_node, cluster_.node.accelerators));
      return u"NIC %1 of node %2"_s.arg(number % rails).arg(number / rails);
    }
    case VertexKind::FabricSwitch:
      return u"%1 %2"_s.arg(level_title(switch_level_[vertex])).arg(number);
    case VertexKind::TorusRouter:
      return u"router %1"_s.arg(number);
  }
  return {};
}

QString ClusterMap::link_name(LinkIndex link) const {
  const sim::TopologyLink& ends = topology_.links()[link];
  return vertex_name(ends.from) + u" → "_s + vertex_name(ends.to);
}

}  // namespace shardwright::gui
