#include "sim/network/topology.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "sim/network/topology_builder.hpp"

namespace shardwright::sim {

Topology Topology::build(const ClusterSpec& cluster, std::int64_t nodes, LinkRate rate) {
  return Builder(cluster, nodes, rate).build();
}

std::vector<BytesPerSecond> Topology::capacities() const {
  std::vector<BytesPerSecond> values;
  values.reserve(links_.size());
  for (const TopologyLink& link : links_) values.push_back(link.capacity);
  return values;
}

std::uint32_t Topology::rail_of(std::uint32_t accelerator) const {
  return accelerator % per_node_ * rails_ / per_node_;
}

Seconds Topology::latency(std::span<const LinkIndex> route) const {
  Seconds sum;
  for (const LinkIndex link : route) sum += links_[link].latency;
  return sum;
}

bool Topology::route(std::uint32_t from, std::uint32_t to, std::vector<LinkIndex>& route) const {
  SHARDWRIGHT_CHECK(from < accelerators_ && to < accelerators_, "no such accelerator");
  route.clear();
  if (from / domain_ == to / domain_) return scale_up_route(from, to, route);
  if (fabric_ == FabricKind::None || rails_ == 0) return false;
  const std::uint32_t departing = departure(from, to);
  return scale_up_route(from, departing, route) && fabric_route(departing, to, route);
}

bool Topology::scale_up_route(std::uint32_t from, std::uint32_t to,
                              std::vector<LinkIndex>& route) const {
  if (from == to) return true;
  const std::uint32_t begin = from - from % domain_;
  const std::uint32_t size = std::min(domain_, accelerators_ - begin);
  const std::uint32_t a = from - begin, b = to - begin;
  if (scale_up_ == ScaleUpKind::Mesh) {
    // Pairs with a < b in lexicographic order, each with its way back. Earlier domains are full.
    const std::uint32_t low = std::min(a, b), high = std::max(a, b);
    const std::uint32_t pair = low * size - low * (low + 1) / 2 + (high - low - 1);
    const std::uint32_t before = begin / domain_ * (domain_ * (domain_ - 1) / 2);
    route.push_back(first_scale_up_link_ + 2 * (before + pair) + (a < b ? 0 : 1));
  } else if (scale_up_ == ScaleUpKind::Torus) {
    const std::uint32_t ahead = (b + size - a) % size;
    const bool forward = 2 * ahead <= size;
    const std::uint32_t hops = forward ? ahead : size - ahead;
    for (std::uint32_t hop = 0; hop < hops; ++hop) {
      const std::uint32_t at = forward ? (a + hop) % size : (a + 2 * size - hop - 1) % size;
      route.push_back(first_scale_up_link_ + 2 * (begin + at) + (forward ? 0 : 1));
    }
  } else {
    route.push_back(first_scale_up_link_ + 2 * from);
    route.push_back(first_scale_up_link_ + 2 * to + 1);
  }
  return true;
}

// PXN: the accelerator of the source's node that stands where the destination stands in its own, if
// rails matter and the scale-up links are better than the fabric.
std::uint32_t Topology::departure(std::uint32_t from, std::uint32_t to) const {
  // PCIe is no faster than the network, but rails without a spine above them meet nowhere else.
  const bool changes_rail = scale_up_ != ScaleUpKind::Pcie || levels_.size() == 1;
  const bool by_rail = fabric_ == FabricKind::RailOptimised && changes_rail;
  if (!by_rail || rail_of(from) == rail_of(to)) return from;
  const std::uint32_t proxy = from - from % per_node_ + to % per_node_;
  return proxy / domain_ == from / domain_ ? proxy : from;
}

bool Topology::fabric_route(std::uint32_t from, std::uint32_t to,
                            std::vector<LinkIndex>& route) const {
  const std::uint32_t from_nic = node_of(from) * rails_ + rail_of(from);
  const std::uint32_t to_nic = node_of(to) * rails_ + rail_of(to);
  route.push_back(first_to_nic_ + 2 * from);
  if (node_of(from) != node_of(to) || from_nic != to_nic) {
    route.push_back(first_from_nic_ + 2 * from_nic);
    if (fabric_ == FabricKind::Torus) {
      torus_route(node_of(from), node_of(to), route);
    } else if (!tree_route(from_nic, to_nic, route)) {
      return false;
    }
    route.push_back(first_from_nic_ + 2 * to_nic + 1);
  }
  route.push_back(first_to_nic_ + 2 * to + 1);
  return true;
}

// Climbs to the first level whose switch is above both, and down again.
bool Topology::tree_route(std::uint32_t from_nic, std::uint32_t to_nic,
                          std::vector<LinkIndex>& route) const {
  const auto switch_above = [&](const Level& level, std::uint32_t a_nic) {
    const std::uint32_t group = a_nic / rails_ / level.nodes_below;
    return level.by_rail == 1 ? group : group * level.by_rail + a_nic % rails_;
  };
  std::size_t top = 0;
  while (switch_above(levels_[top], from_nic) != switch_above(levels_[top], to_nic)) {
    if (++top == levels_.size()) return false;
  }
  for (std::size_t i = 0; i < top; ++i)
    route.push_back(levels_[i].first_up + 2 * switch_above(levels_[i], from_nic));
  for (std::size_t i = top; i > 0; --i)
    route.push_back(levels_[i - 1].first_up + 2 * switch_above(levels_[i - 1], to_nic) + 1);
  return true;
}

void Topology::torus_route(std::uint32_t from_node, std::uint32_t to_node,
                           std::vector<LinkIndex>& route) const {
  std::uint32_t at = from_node, stride = 1;
  // The last axis varies fastest in the numbering of nodes.
  for (std::size_t axis = torus_.size(); axis-- > 0;) {
    const auto size = static_cast<std::uint32_t>(torus_[axis].nodes);
    const std::uint32_t start = at / stride % size, target = to_node / stride % size;
    const bool forward =
        torus_[axis].wraps ? 2 * ((target + size - start) % size) <= size : target > start;
    while (at / stride % size != target) {
      const std::uint32_t place = at / stride % size;
      const std::uint32_t next_place = (place + (forward ? 1 : size - 1)) % size;
      const std::uint32_t next = at + next_place * stride - place * stride;
      const std::uint32_t owner = forward ? at : next;
      route.push_back(torus_links_[owner * torus_.size() + axis] + (forward ? 0 : 1));
      at = next;
    }
    stride *= size;
  }
}

}  // namespace shardwright::sim
