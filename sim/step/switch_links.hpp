// The links up and down of the switches of oversubscribed levels; other levels can't be the
// bottleneck and have none.
//
// A switch has one link up and one link down, with the bandwidth of the NICs below it divided by
// the level's oversubscription (as the prices take it).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/network/link.hpp"

namespace shardwright::sim {

// A switch of an oversubscribed level; both numbers count from 0.
struct SwitchPlace {
  std::size_t level = 0;
  std::int64_t index = 0;

  bool operator==(const SwitchPlace&) const = default;
};

class SwitchLinks {
 public:
  SwitchLinks() = default;
  // Of `nodes` scale-up domains, each of which has `nics` with the bandwidth `nic`. `first` becomes
  // the number of the first link.
  SwitchLinks(const ClusterSpec& cluster, std::int64_t nodes, double nics, BytesPerSecond nic,
              LinkIndex first);

  // Capacities by link, from the first one on.
  const std::vector<BytesPerSecond>& capacities() const { return capacities_; }

  // Adds the links between nodes that exchange data both ways.
  void add_between(std::span<const std::int64_t> nodes, std::vector<LinkIndex>& route) const;
  // Adds the links on the way from one node to another.
  void add_way(std::int64_t from, std::int64_t to, std::vector<LinkIndex>& route) const;
  // Adds the links on the way from the node to what lies above all switches, or back from there.
  void add_way_up(std::int64_t from, std::vector<LinkIndex>& route) const;
  void add_way_down(std::int64_t to, std::vector<LinkIndex>& route) const;

  // The switch that the link joins to the level above.
  SwitchPlace switch_of(LinkIndex link) const;

 private:
  struct Level {
    // The place of the level in the fabric's list.
    std::size_t number = 0;
    // Nodes below one switch.
    std::int64_t nodes = 1;
    // The first of its links: up and down of the first switch, of the second, and so on.
    LinkIndex first = 0;

    std::int64_t switch_above(std::int64_t node) const { return node / nodes; }
    LinkIndex up(std::int64_t node) const {
      return first + 2 * static_cast<LinkIndex>(switch_above(node));
    }
    LinkIndex down(std::int64_t node) const { return up(node) + 1; }
  };

  std::vector<Level> levels_;
  std::vector<BytesPerSecond> capacities_;
};

}  // namespace shardwright::sim
