#include "sim/step/switch_links.hpp"

#include <set>

#include "sim/cost/placement.hpp"

namespace shardwright::sim {

SwitchLinks::SwitchLinks(const ClusterSpec& cluster, std::int64_t nodes, double nics,
                         BytesPerSecond nic, LinkIndex first) {
  for (std::size_t i = 0; i < cluster.fabric.levels.size(); ++i) {
    const FabricLevel& level = cluster.fabric.levels[i];
    const std::int64_t below = domains_below(level, cluster);
    if (level.oversubscription <= 1.0 || below >= nodes) continue;
    levels_.push_back({i, below, first + static_cast<LinkIndex>(capacities_.size())});
    const auto switches = static_cast<std::size_t>((nodes + below - 1) / below);
    capacities_.insert(capacities_.end(), 2 * switches,
                       nic * (nics * static_cast<double>(below) / level.oversubscription));
  }
}

void SwitchLinks::add_between(std::span<const std::int64_t> nodes,
                              std::vector<LinkIndex>& route) const {
  for (const Level& level : levels_) {
    std::set<LinkIndex> up;
    for (const std::int64_t node : nodes) up.insert(level.up(node));
    if (up.size() < 2) continue;
    for (const LinkIndex link : up) {
      route.push_back(link);
      route.push_back(link + 1);
    }
  }
}

void SwitchLinks::add_way(std::int64_t from, std::int64_t to, std::vector<LinkIndex>& route) const {
  for (const Level& level : levels_) {
    if (level.switch_above(from) == level.switch_above(to)) continue;
    route.push_back(level.up(from));
    route.push_back(level.down(to));
  }
}

void SwitchLinks::add_way_up(std::int64_t from, std::vector<LinkIndex>& route) const {
  for (const Level& level : levels_) route.push_back(level.up(from));
}

void SwitchLinks::add_way_down(std::int64_t to, std::vector<LinkIndex>& route) const {
  for (const Level& level : levels_) route.push_back(level.down(to));
}

SwitchPlace SwitchLinks::switch_of(LinkIndex link) const {
  std::size_t i = levels_.size() - 1;
  while (i > 0 && link < levels_[i].first) --i;
  return {levels_[i].number, static_cast<std::int64_t>(link - levels_[i].first) / 2};
}

}  // namespace shardwright::sim
