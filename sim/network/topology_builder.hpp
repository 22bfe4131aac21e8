// Lays the vertices and links of a Topology out, part by part; see topology.hpp for the rules.
#pragma once

#include <cstdint>

#include "sim/network/topology.hpp"

namespace shardwright::sim {

class Topology::Builder {
 public:
  Builder(const ClusterSpec& cluster, std::int64_t nodes, LinkRate rate);
  Topology build();

 private:
  VertexIndex add_vertices(VertexKind kind, std::uint32_t count);
  // The link and, right after it, its way back.
  LinkIndex add_both_ways(VertexIndex a, VertexIndex b, BytesPerSecond capacity, Seconds latency);

  void add_scale_up();
  void add_domain_links(std::uint32_t begin, std::uint32_t size, VertexIndex scale_up_switch);
  void add_mesh_links(std::uint32_t begin, std::uint32_t size);
  void add_ring_links(std::uint32_t begin, std::uint32_t size);
  void add_nics();
  void add_tree();
  void add_level(const FabricLevel& level, std::uint32_t by_rail);
  void join_nics_to_leaves();
  void join_level_to_next(std::size_t index, double oversubscription, Seconds latency);
  void add_torus();
  void add_torus_links(VertexIndex first_router, std::uint32_t routers);

  const ClusterSpec& cluster_;
  // Shares of the nominal bandwidth.
  double scale_up_ratio_ = 1.0, nic_ratio_ = 1.0;
  BytesPerSecond rail_bandwidth_;
  Topology topology_;
};

}  // namespace shardwright::sim
