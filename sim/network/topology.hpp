// The graph of a cluster: accelerators, the switches inside the nodes, NICs, and the fabric, joined
// by directed links. Gives routes, latencies and cut bandwidths.
//
// Built from a ClusterSpec so:
// - Scale-up. Accelerators lie in domains of `scale_up.domain` (at least a node). Switched and PCIe
//   domains have one switch vertex; Mesh has a link between any two accelerators, which divide the
//   bandwidth; Torus is a ring of its accelerators with half of the bandwidth each way round.
// - NICs. A node has as many rails as NICs, at most one an accelerator; where it has more NICs,
//   those of a rail count as one with their bandwidth added up. Accelerators are dealt to the rails
//   evenly.
// - Fabric. The switches of one level below one switch of the next act as one switch with the
//   bandwidth of all their links to it (traffic is spread evenly over equal paths; hash collisions
//   are not modelled). A leaf joins `levels[0].nodes` nodes, by rail where the fabric is
//   rail-optimised. Upwards leaves the bandwidth that enters from below, divided by the level's
//   oversubscription. Without levels one switch joins all nodes (one a rail where rail-optimised).
//   Of a torus there is the slice that as many nodes get (torus_slice.hpp), with a router a place;
//   a NIC's bandwidth is spread evenly over the directions.
// - Latency. NIC to NIC below one leaf: `base_latency`; each higher level that a route climbs to
//   adds its `latency`; a hop of a torus: `base_latency`; a scale-up hop: `scale_up.latency`.
//
// Routes: within a domain over the scale-up links. Between domains from NIC to NIC, climbing no
// higher than needed. On a rail-optimised fabric the source reaches the rail of the destination
// through the accelerator of its own domain on that rail (NCCL's PXN), so traffic never changes
// rails in the fabric. A torus is routed axis by axis, the shorter way round where the axis wraps.
// If both ways round are equally short, each carries half of the traffic.
//
// Flat arrays: 16,384 accelerators take a few megabytes and some milliseconds. Routes are closed
// forms, because PXN and the order of the axes are rules that no search for shortest paths gives,
// and because such a search visits most of the graph for each source.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/network/link.hpp"
#include "sim/network/torus_slice.hpp"

namespace shardwright::sim {

using VertexIndex = std::uint32_t;

enum class VertexKind : std::uint8_t { Accelerator, ScaleUpSwitch, Nic, FabricSwitch, TorusRouter };

struct TopologyLink {
  VertexIndex from = 0;
  VertexIndex to = 0;
  BytesPerSecond capacity;
  Seconds latency;
};

// A link that traffic passes, and its share of this traffic: 1, or 1/2 where the traffic takes two
// equally short ways.
struct RouteLink {
  LinkIndex link = 0;
  double share = 1.0;
};

// The bandwidths of the links: those of the datasheets, or the ones that large messages reach of
// them (`scale_up.ring_efficiency`, `nic.efficiency`).
enum class LinkRate : std::uint8_t { Nominal, Achievable };

class Topology {
 public:
  // Vertices of accelerators come first: accelerator i is vertex i. Throws InputError if a torus
  // has fewer places than there are nodes.
  static Topology build(const ClusterSpec& cluster, std::int64_t nodes,
                        LinkRate rate = LinkRate::Nominal);

  std::uint32_t accelerators() const { return accelerators_; }
  const std::vector<VertexKind>& vertices() const { return vertices_; }
  const std::vector<TopologyLink>& links() const { return links_; }
  std::vector<BytesPerSecond> capacities() const;
  std::uint32_t node_of(std::uint32_t accelerator) const { return accelerator / per_node_; }
  std::uint32_t rail_of(std::uint32_t accelerator) const;
  // The slice of a torus fabric; without axes for others.
  const TorusSlice& torus() const { return torus_; }

  // Writes the links from one accelerator to another to `route`, in order; none from one to itself.
  // Clears `route` first, so that callers in loops allocate nothing. Returns false if no route
  // exists.
  bool route(std::uint32_t from, std::uint32_t to, std::vector<RouteLink>& route) const;
  Seconds latency(std::span<const RouteLink> route) const;

  // True if every accelerator reaches every other one.
  bool is_connected() const;
  // The most that the accelerators of `from` can send at once to those of `to`: the minimum cut.
  BytesPerSecond cut_bandwidth(std::span<const std::uint32_t> from,
                               std::span<const std::uint32_t> to) const;
  // The cut between the first half of the accelerators and the second. Fabrics are built in order
  // of nodes, so this is the bisection of trees and of tori whose first axis is the longest.
  BytesPerSecond bisection_bandwidth() const;

 private:
  // A link and its way back are neighbours: the way back is `forward + 1`.
  struct Level {
    // Nodes under one switch.
    std::uint32_t nodes_below = 1;
    VertexIndex first_switch = 0;
    // The first of the up links to the next level, each followed by its way down.
    LinkIndex first_up = 0;
    // Switches for the same nodes.
    std::uint32_t by_rail = 1;
  };

  class Builder;

  VertexIndex nic(std::uint32_t node, std::uint32_t rail) const {
    return first_nic_ + node * rails_ + rail;
  }
  void scale_up_route(std::uint32_t from, std::uint32_t to, std::vector<RouteLink>& route) const;
  std::uint32_t departure(std::uint32_t from, std::uint32_t to) const;
  bool fabric_route(std::uint32_t from, std::uint32_t to, std::vector<RouteLink>& route) const;
  bool tree_route(std::uint32_t from_nic, std::uint32_t to_nic,
                  std::vector<RouteLink>& route) const;
  void torus_route(std::uint32_t from_node, std::uint32_t to_node,
                   std::vector<RouteLink>& route) const;

  std::vector<VertexKind> vertices_;
  std::vector<TopologyLink> links_;
  std::uint32_t accelerators_ = 0, per_node_ = 1, nodes_ = 0;
  ScaleUpKind scale_up_ = ScaleUpKind::Switched;
  // Accelerators of a scale-up domain.
  std::uint32_t domain_ = 1;
  // The first link inside of domains, which Builder lays out by domain.
  LinkIndex first_scale_up_link_ = 0;
  FabricKind fabric_ = FabricKind::None;
  std::uint32_t rails_ = 0;
  VertexIndex first_nic_ = 0;
  // The first link from an accelerator to its NIC, by accelerator.
  LinkIndex first_to_nic_ = 0;
  // The first link from a NIC to its leaf or router, by NIC.
  LinkIndex first_from_nic_ = 0;
  std::vector<Level> levels_;
  TorusSlice torus_;
  // Forward links by router and axis; not of an axis' open end.
  std::vector<LinkIndex> torus_links_;
};

}  // namespace shardwright::sim
