#include "gui/topology/group_routes.hpp"

#include <algorithm>

namespace shardwright::gui {
namespace {

std::vector<std::int32_t> receivers(const ClusterMap& map, const AxisGroup& group,
                                    std::size_t member) {
  std::vector<std::int32_t> to;
  if (group.axis == Axis::Expert) {
    to = group.ranks;
  } else if (group.axis == Axis::Pipeline) {
    if (member > 0) to.push_back(group.ranks[member - 1]);
    if (member + 1 < group.ranks.size()) to.push_back(group.ranks[member + 1]);
  } else {
    for (const Hop& hop : ring_hops(group.ranks, member, map.domain_size())) to.push_back(hop.to);
  }
  std::erase(to, group.ranks[member]);
  return to;
}

}  // namespace

std::vector<Hop> ring_hops(std::span<const std::int32_t> members, std::size_t member,
                           std::uint32_t domain_size) {
  const auto domain_of = [&](std::size_t m) {
    return members[m] / static_cast<std::int32_t>(domain_size);
  };
  std::size_t first = member, last = member + 1;
  while (first > 0 && domain_of(first - 1) == domain_of(member)) --first;
  while (last < members.size() && domain_of(last) == domain_of(member)) ++last;
  const std::size_t here = last - first;
  const std::int32_t next_in_domain = members[first + (member - first + 1) % here];
  if (here == members.size()) return {{next_in_domain, 1.0}};
  const std::size_t next_first = last % members.size();
  std::size_t next_last = next_first + 1;
  while (next_last < members.size() && domain_of(next_last) == domain_of(next_first)) ++next_last;
  const double leaving = 1.0 / static_cast<double>(here);
  std::vector<Hop> hops;
  if (here > 1) hops.push_back({next_in_domain, 1.0 - leaving});
  hops.push_back({members[next_first + (member - first) % (next_last - next_first)], leaving});
  return hops;
}

std::vector<sim::LinkIndex> links_of(const ClusterMap& map, const AxisGroup& group) {
  std::vector<sim::LinkIndex> links;
  std::vector<sim::RouteLink> route;
  for (std::size_t member = 0; member < group.ranks.size(); ++member) {
    for (const std::int32_t to : receivers(map, group, member)) {
      map.topology().route(static_cast<std::uint32_t>(group.ranks[member]),
                           static_cast<std::uint32_t>(to), route);
      for (const sim::RouteLink& hop : route) links.push_back(hop.link);
    }
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

}  // namespace shardwright::gui
