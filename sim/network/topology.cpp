#include "sim/network/topology.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

// Adds the hops from one place of an axis to another. `link_after(place)` is the link from a place
// to the next one; its way back follows it.
template <typename LinkAfter>
void add_hops(const TorusAxis& axis, std::uint32_t from, std::uint32_t to,
              const LinkAfter& link_after, std::vector<RouteLink>& route) {
  const auto size = static_cast<std::uint32_t>(axis.nodes);
  const std::uint32_t ahead = (to + size - from) % size, behind = (from + size - to) % size;
  const bool forward = axis.wraps ? ahead <= behind : from < to;
  const bool backward = axis.wraps ? behind <= ahead : to < from;
  const double share = forward && backward ? 0.5 : 1.0;
  for (std::uint32_t hop = 0; forward && hop < ahead; ++hop)
    route.push_back({link_after((from + hop) % size), share});
  for (std::uint32_t hop = 1; backward && hop <= behind; ++hop)
    route.push_back({link_after((from + size - hop) % size) + 1, share});
}

}  // namespace

std::vector<BytesPerSecond> Topology::capacities() const {
  std::vector<BytesPerSecond> values;
  values.reserve(links_.size());
  for (const TopologyLink& link : links_) values.push_back(link.capacity);
  return values;
}

std::uint32_t Topology::rail_of(std::uint32_t accelerator) const {
  return accelerator % per_node_ * rails_ / per_node_;
}

Seconds Topology::latency(std::span<const RouteLink> route) const {
  Seconds sum;
  for (const RouteLink& hop : route) sum += links_[hop.link].latency * hop.share;
  return sum;
}

bool Topology::route(std::uint32_t from, std::uint32_t to, std::vector<RouteLink>& route) const {
  SHARDWRIGHT_CHECK(from < accelerators_ && to < accelerators_, "no such accelerator");
  route.clear();
  const bool same_domain = from / domain_ == to / domain_;
  if (!same_domain && (fabric_ == FabricKind::None || rails_ == 0)) return false;
  const std::uint32_t departing = same_domain ? to : departure(from, to);
  scale_up_route(from, departing, route);
  return same_domain || fabric_route(departing, to, route);
}

void Topology::scale_up_route(std::uint32_t from, std::uint32_t to,
                              std::vector<RouteLink>& route) const {
  if (from == to) return;
  const std::uint32_t begin = from - from % domain_;
  const std::uint32_t size = std::min(domain_, accelerators_ - begin);
  const std::uint32_t a = from - begin, b = to - begin;
  if (scale_up_ == ScaleUpKind::Mesh) {
    // Pairs with a < b in lexicographic order, each with its way back. Earlier domains are full.
    const std::uint32_t low = std::min(a, b), high = std::max(a, b);
    const std::uint32_t pair = low * size - low * (low + 1) / 2 + (high - low - 1);
    const std::uint32_t before = begin / domain_ * (domain_ * (domain_ - 1) / 2);
    route.push_back({first_scale_up_link_ + 2 * (before + pair) + (a < b ? 0 : 1)});
  } else if (scale_up_ == ScaleUpKind::Torus) {
    const auto link_after = [&](std::uint32_t place) {
      return first_scale_up_link_ + 2 * (begin + place);
    };
    add_hops({size, true}, a, b, link_after, route);
  } else {
    route.push_back({first_scale_up_link_ + 2 * from});
    route.push_back({first_scale_up_link_ + 2 * to + 1});
  }
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
                            std::vector<RouteLink>& route) const {
  const std::uint32_t from_nic = node_of(from) * rails_ + rail_of(from);
  const std::uint32_t to_nic = node_of(to) * rails_ + rail_of(to);
  route.push_back({first_to_nic_ + 2 * from});
  if (node_of(from) != node_of(to) || from_nic != to_nic) {
    route.push_back({first_from_nic_ + 2 * from_nic});
    if (fabric_ == FabricKind::Torus) {
      torus_route(node_of(from), node_of(to), route);
    } else if (!tree_route(from_nic, to_nic, route)) {
      return false;
    }
    route.push_back({first_from_nic_ + 2 * to_nic + 1});
  }
  route.push_back({first_to_nic_ + 2 * to + 1});
  return true;
}

// Climbs to the first level whose switch is above both, and down again.
bool Topology::tree_route(std::uint32_t from_nic, std::uint32_t to_nic,
                          std::vector<RouteLink>& route) const {
  const auto switch_above = [&](const Level& level, std::uint32_t a_nic) {
    const std::uint32_t group = a_nic / rails_ / level.nodes_below;
    return level.by_rail == 1 ? group : group * level.by_rail + a_nic % rails_;
  };
  std::size_t top = 0;
  while (switch_above(levels_[top], from_nic) != switch_above(levels_[top], to_nic)) {
    if (++top == levels_.size()) return false;
  }
  for (std::size_t i = 0; i < top; ++i)
    route.push_back({levels_[i].first_up + 2 * switch_above(levels_[i], from_nic)});
  for (std::size_t i = top; i > 0; --i)
    route.push_back({levels_[i - 1].first_up + 2 * switch_above(levels_[i - 1], to_nic) + 1});
  return true;
}

void Topology::torus_route(std::uint32_t from_node, std::uint32_t to_node,
                           std::vector<RouteLink>& route) const {
  std::uint32_t at = from_node, stride = 1;
  // The last axis varies fastest in the numbering of nodes.
  for (std::size_t axis = torus_.size(); axis-- > 0;) {
    const auto size = static_cast<std::uint32_t>(torus_[axis].nodes);
    const std::uint32_t start = at / stride % size, target = to_node / stride % size;
    const std::uint32_t first = at - start * stride;
    const auto link_after = [&](std::uint32_t place) {
      return torus_links_[(first + place * stride) * torus_.size() + axis];
    };
    add_hops(torus_[axis], start, target, link_after, route);
    at = first + target * stride;
    stride *= size;
  }
}

}  // namespace shardwright::sim
