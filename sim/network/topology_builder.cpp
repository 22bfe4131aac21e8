// Lays the vertices and links of a Topology out, part by part; see topology.hpp for the rules.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "sim/network/topology.hpp"

namespace shardwright::sim {

class Topology::Builder {
 public:
  Builder(const ClusterSpec& cluster, std::int64_t nodes, LinkRate rate) : cluster_(cluster) {
    const NodeSpec& node = cluster.node;
    SHARDWRIGHT_CHECK(nodes > 0 && node.accelerators > 0, "a cluster without accelerators");
    SHARDWRIGHT_CHECK(nodes * node.accelerators < (1LL << 28), "too many accelerators to number");
    if (rate == LinkRate::Achievable) {
      scale_up_ratio_ = node.scale_up.ring_efficiency;
      nic_ratio_ = node.nic.efficiency;
    }
    topology_.nodes_ = static_cast<std::uint32_t>(nodes);
    topology_.per_node_ = static_cast<std::uint32_t>(node.accelerators);
    topology_.accelerators_ = topology_.nodes_ * topology_.per_node_;
    topology_.scale_up_ = node.scale_up.kind;
    topology_.domain_ =
        static_cast<std::uint32_t>(std::max(node.scale_up.domain, node.accelerators));
    topology_.fabric_ = cluster.fabric.kind;
    topology_.rails_ = static_cast<std::uint32_t>(std::min(node.nic.per_node, node.accelerators));
    if (topology_.rails_ > 0) {
      rail_bandwidth_ = node.nic.bandwidth * nic_ratio_ * static_cast<double>(node.nic.per_node) /
                        topology_.rails_;
    }
  }

  Topology build() {
    add_vertices(VertexKind::Accelerator, topology_.accelerators_);
    add_scale_up();
    if (topology_.fabric_ != FabricKind::None && topology_.rails_ > 0) {
      add_nics();
      if (topology_.fabric_ == FabricKind::Torus) {
        add_torus();
      } else {
        add_tree();
      }
    }
    return std::move(topology_);
  }

 private:
  VertexIndex add_vertices(VertexKind kind, std::uint32_t count) {
    const auto first = static_cast<VertexIndex>(topology_.vertices_.size());
    topology_.vertices_.resize(first + count, kind);
    return first;
  }

  // The link and, right after it, its way back.
  LinkIndex add_both_ways(VertexIndex a, VertexIndex b, BytesPerSecond capacity, Seconds latency) {
    topology_.links_.push_back({a, b, capacity, latency});
    topology_.links_.push_back({b, a, capacity, latency});
    return static_cast<LinkIndex>(topology_.links_.size() - 2);
  }

  void add_scale_up() {
    const std::uint32_t domains =
        (topology_.accelerators_ + topology_.domain_ - 1) / topology_.domain_;
    const bool switched =
        topology_.scale_up_ == ScaleUpKind::Switched || topology_.scale_up_ == ScaleUpKind::Pcie;
    const VertexIndex first = add_vertices(VertexKind::ScaleUpSwitch, switched ? domains : 0);
    topology_.first_scale_up_link_ = static_cast<LinkIndex>(topology_.links_.size());
    for (std::uint32_t domain = 0; domain < domains; ++domain) {
      const std::uint32_t begin = domain * topology_.domain_;
      const std::uint32_t size = std::min(topology_.domain_, topology_.accelerators_ - begin);
      if (topology_.scale_up_ == ScaleUpKind::Mesh) {
        add_mesh_links(begin, size);
      } else if (topology_.scale_up_ == ScaleUpKind::Torus) {
        add_ring_links(begin, size);
      } else {
        add_domain_links(begin, size, first + domain);
      }
    }
  }

  void add_domain_links(std::uint32_t begin, std::uint32_t size, VertexIndex scale_up_switch) {
    const ScaleUpSpec& spec = cluster_.node.scale_up;
    for (std::uint32_t i = 0; i < size; ++i)
      add_both_ways(begin + i, scale_up_switch, spec.bandwidth * scale_up_ratio_,
                    spec.latency / 2.0);
  }

  void add_mesh_links(std::uint32_t begin, std::uint32_t size) {
    const ScaleUpSpec& spec = cluster_.node.scale_up;
    for (std::uint32_t a = 0; a < size; ++a) {
      for (std::uint32_t b = a + 1; b < size; ++b)
        add_both_ways(begin + a, begin + b, spec.bandwidth * scale_up_ratio_ / (size - 1.0),
                      spec.latency);
    }
  }

  void add_ring_links(std::uint32_t begin, std::uint32_t size) {
    const ScaleUpSpec& spec = cluster_.node.scale_up;
    for (std::uint32_t i = 0; i < size; ++i)
      add_both_ways(begin + i, begin + (i + 1) % size, spec.bandwidth * scale_up_ratio_ / 2.0,
                    spec.latency);
  }

  // Between an accelerator and its NIC lies the host's PCIe; where the profile does not give it,
  // the NIC is taken to be the narrower one.
  void add_nics() {
    topology_.first_nic_ = add_vertices(VertexKind::Nic, topology_.nodes_ * topology_.rails_);
    topology_.first_to_nic_ = static_cast<LinkIndex>(topology_.links_.size());
    const BytesPerSecond host_link = cluster_.node.host.accelerator_link;
    const BytesPerSecond capacity = host_link.value() > 0.0 ? host_link : rail_bandwidth_;
    for (std::uint32_t i = 0; i < topology_.accelerators_; ++i)
      add_both_ways(i, topology_.nic(topology_.node_of(i), topology_.rail_of(i)), capacity,
                    Seconds(0.0));
  }

  void add_tree() {
    const bool by_rail = topology_.fabric_ == FabricKind::RailOptimised;
    std::vector<FabricLevel> levels = cluster_.fabric.levels;
    if (levels.empty()) levels.push_back({topology_.nodes_, 1.0, Seconds(0.0)});
    // Leaves of one rail; everything above joins the rails.
    for (std::size_t i = 0; i < levels.size(); ++i)
      add_level(levels[i], by_rail && i == 0 ? topology_.rails_ : 1);
    join_nics_to_leaves();
    for (std::size_t i = 0; i + 1 < levels.size(); ++i)
      join_level_to_next(i, levels[i].oversubscription, levels[i + 1].latency / 2.0);
  }

  void add_level(const FabricLevel& level, std::uint32_t by_rail) {
    const auto below =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(level.nodes, 1, topology_.nodes_));
    const std::uint32_t groups = (topology_.nodes_ + below - 1) / below;
    topology_.levels_.push_back(
        {below, add_vertices(VertexKind::FabricSwitch, groups * by_rail), 0, by_rail});
  }

  void join_nics_to_leaves() {
    const Level& leaf = topology_.levels_.front();
    topology_.first_from_nic_ = static_cast<LinkIndex>(topology_.links_.size());
    for (std::uint32_t node = 0; node < topology_.nodes_; ++node) {
      for (std::uint32_t rail = 0; rail < topology_.rails_; ++rail) {
        const std::uint32_t group = node / leaf.nodes_below;
        const std::uint32_t index = leaf.by_rail == 1 ? group : group * leaf.by_rail + rail;
        add_both_ways(topology_.nic(node, rail), leaf.first_switch + index, rail_bandwidth_,
                      cluster_.fabric.base_latency / 2.0);
      }
    }
  }

  // A full switch's uplinks, also where its last group has fewer nodes: the hardware is the same.
  void join_level_to_next(std::size_t index, double oversubscription, Seconds latency) {
    Level& level = topology_.levels_[index];
    const Level& next = topology_.levels_[index + 1];
    double product = oversubscription;
    for (std::size_t i = 0; i < index; ++i) product *= cluster_.fabric.levels[i].oversubscription;
    const double nics_below =
        static_cast<double>(level.nodes_below) * topology_.rails_ / level.by_rail;
    const std::uint32_t groups = (topology_.nodes_ + level.nodes_below - 1) / level.nodes_below;
    level.first_up = static_cast<LinkIndex>(topology_.links_.size());
    for (std::uint32_t i = 0; i < groups * level.by_rail; ++i) {
      const std::uint32_t first_node = i / level.by_rail * level.nodes_below;
      add_both_ways(level.first_switch + i, next.first_switch + first_node / next.nodes_below,
                    rail_bandwidth_ * nics_below / product, latency);
    }
  }

  void add_torus() {
    const FabricSpec& fabric = cluster_.fabric;
    if (fabric.torus.empty() || fabric.torus_places() < topology_.nodes_) {
      throw InputError(cluster_.name,
                       {{"/fabric/torus", fmt::format("a torus of {} nodes", fabric.torus_places()),
                         fmt::format("at least {} nodes", topology_.nodes_)}});
    }
    topology_.torus_ = torus_slice(fabric, topology_.nodes_);
    std::uint32_t routers = 1;
    for (const TorusAxis& axis : topology_.torus_)
      routers *= static_cast<std::uint32_t>(axis.nodes);
    const VertexIndex first = add_vertices(VertexKind::TorusRouter, routers);
    topology_.first_from_nic_ = static_cast<LinkIndex>(topology_.links_.size());
    for (std::uint32_t i = 0; i < topology_.nodes_ * topology_.rails_; ++i)
      add_both_ways(topology_.first_nic_ + i, first + i / topology_.rails_, rail_bandwidth_,
                    Seconds(0.0));
    add_torus_links(first, routers);
  }

  void add_torus_links(VertexIndex first_router, std::uint32_t routers) {
    const TorusSlice& slice = topology_.torus_;
    const BytesPerSecond capacity =
        rail_bandwidth_ * topology_.rails_ / (2.0 * static_cast<double>(slice.size()));
    for (std::uint32_t router = 0; router < routers; ++router) {
      std::uint32_t stride = routers;
      for (const TorusAxis& axis : slice) {
        const auto size = static_cast<std::uint32_t>(axis.nodes);
        stride /= size;
        const std::uint32_t place = router / stride % size;
        const bool is_open_end = place + 1 == size && (size == 1 || !axis.wraps);
        const std::uint32_t next = router + ((place + 1) % size) * stride - place * stride;
        topology_.torus_links_.push_back(is_open_end ? LinkIndex{0}
                                                     : add_both_ways(first_router + router,
                                                                     first_router + next, capacity,
                                                                     cluster_.fabric.base_latency));
      }
    }
  }

  const ClusterSpec& cluster_;
  // Shares of the nominal bandwidth.
  double scale_up_ratio_ = 1.0, nic_ratio_ = 1.0;
  BytesPerSecond rail_bandwidth_;
  Topology topology_;
};

Topology Topology::build(const ClusterSpec& cluster, std::int64_t nodes, LinkRate rate) {
  return Builder(cluster, nodes, rate).build();
}

}  // namespace shardwright::sim
