// The cluster that a plan runs on, with its parts named: what the topology view draws. Holds no
// widget.
#pragma once

#include <QString>
#include <cstdint>
#include <span>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "sim/network/topology.hpp"

namespace shardwright::gui {

// What a link joins, from the inside of a node outwards.
enum class LinkLevel : std::uint8_t {
  ScaleUp,  // accelerators, with each other or with the switch of their domain
  HostBus,  // accelerator and NIC
  Leaf,     // NIC and leaf (or the router of a torus)
  Spine,    // a switch and the one above it
  Torus,    // routers
};

// "scale-up", "host bus", …
const char* name_of(LinkLevel level);

class ClusterMap {
 public:
  // As many nodes as `ranks` accelerators need. Throws InputError where the topology cannot be
  // built.
  ClusterMap(const ClusterSpec& cluster, std::int64_t ranks);

  const ClusterSpec& cluster() const { return cluster_; }
  const sim::Topology& topology() const { return topology_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t nodes() const { return nodes_; }
  std::uint32_t domain_size() const { return domain_size_; }  // accelerators
  std::uint32_t domains() const;

  // Links that leave a vertex; the way back of link l is `way_back(l)`.
  std::span<const sim::LinkIndex> links_from(sim::VertexIndex vertex) const;
  static sim::LinkIndex way_back(sim::LinkIndex link) { return link ^ 1U; }
  LinkLevel level(sim::LinkIndex link) const { return level_[link]; }

  // Fabric switches by level from the leaf up; none for a torus or a cluster without a fabric.
  const std::vector<std::vector<sim::VertexIndex>>& switches() const { return switches_; }
  // The level of a fabric switch: 0 is a leaf.
  int switch_level(sim::VertexIndex vertex) const { return switch_level_[vertex]; }
  static QString level_title(int level);  // "leaf", "spine", "core"

  QString vertex_name(sim::VertexIndex vertex) const;  // "GPU 12", "NIC 3 of node 1", "leaf 5"
  QString link_name(sim::LinkIndex link) const;        // "GPU 12 → NVLink switch 1"

 private:
  void sort_links();
  void find_switch_levels();

  ClusterSpec cluster_;
  sim::Topology topology_;
  std::uint32_t ranks_ = 0, nodes_ = 0, domain_size_ = 1;
  std::vector<std::uint32_t>
      first_link_;  // by vertex, into `links_by_vertex_`; one more at the end
  std::vector<sim::LinkIndex> links_by_vertex_;
  std::vector<LinkLevel> level_;   // by link
  std::vector<int> switch_level_;  // by vertex; -1: no fabric switch
  std::vector<std::vector<sim::VertexIndex>> switches_;
  std::vector<std::uint32_t> number_;  // by vertex, among those of its kind and level
};

}  // namespace shardwright::gui
