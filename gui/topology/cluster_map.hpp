// The cluster that a plan runs on, with names for its parts. This file knows no widget.
#pragma once

#include <QString>
#include <cstdint>
#include <span>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "sim/network/topology.hpp"

namespace shardwright::gui {

// The ends of a link, from the inside of a node outwards.
enum class LinkLevel : std::uint8_t {
  // Two accelerators, or an accelerator and the switch of its domain.
  ScaleUp,
  HostBus,
  // A NIC and a leaf switch, or the router of a torus.
  Leaf,
  // A switch and one a level higher.
  Spine,
  Torus,
};
constexpr auto enum_names(LinkLevel) {
  return std::array{"scale-up", "host bus", "leaf", "spine", "torus"};
}

class ClusterMap {
 public:
  // Has as many nodes as `ranks` accelerators need. Throws InputError if the topology cannot be
  // built.
  ClusterMap(const ClusterSpec& cluster, std::int64_t ranks, std::int64_t first_rank = 0);

  const ClusterSpec& cluster() const { return cluster_; }
  const sim::Topology& topology() const { return topology_; }
  std::uint32_t ranks() const { return ranks_; }
  // The plan's number of the rank on the first accelerator: not 0 on a pool of later stages.
  std::int64_t first_rank() const { return first_rank_; }
  std::uint32_t nodes() const { return nodes_; }
  // The number of accelerators in a scale-up domain.
  std::uint32_t domain_size() const { return domain_size_; }
  std::uint32_t domains() const;

  // The links that leave a vertex. The opposite direction of link l is `way_back(l)`.
  std::span<const sim::LinkIndex> links_from(sim::VertexIndex vertex) const;
  static sim::LinkIndex way_back(sim::LinkIndex link) { return link ^ 1U; }
  LinkLevel level(sim::LinkIndex link) const { return level_[link]; }

  // The fabric switches by level from the leaf up; empty for a torus or a cluster without a fabric.
  const std::vector<std::vector<sim::VertexIndex>>& switches() const { return switches_; }
  // The level of a fabric switch: 0 is a leaf.
  int switch_level(sim::VertexIndex vertex) const { return switch_level_[vertex]; }
  // "leaf", "spine", "core".
  static QString level_title(int level);

  // "GPU 12", "NIC 3 of node 1", "leaf 5".
  QString vertex_name(sim::VertexIndex vertex) const;
  // "GPU 12 → NVLink switch 1".
  QString link_name(sim::LinkIndex link) const;

 private:
  void sort_links();
  void find_switch_levels();

  ClusterSpec cluster_;
  sim::Topology topology_;
  std::uint32_t ranks_ = 0, nodes_ = 0, domain_size_ = 1;
  std::int64_t first_rank_ = 0;
  // The first link of each vertex in `links_by_vertex_`, with one more entry at the end.
  std::vector<std::uint32_t> first_link_;
  std::vector<sim::LinkIndex> links_by_vertex_;
  std::vector<LinkLevel> level_;
  // The level of each vertex; -1 if it is no fabric switch.
  std::vector<int> switch_level_;
  std::vector<std::vector<sim::VertexIndex>> switches_;
  // The number of each vertex among those of its kind and level.
  std::vector<std::uint32_t> number_;
};

}  // namespace shardwright::gui
