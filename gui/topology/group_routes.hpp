// The ways that the members of a group send along, as NCCL's rings have them. This file knows no
// widget.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gui/topology/cluster_map.hpp"
#include "gui/topology/plan_groups.hpp"

namespace shardwright::gui {

// What a member sends to another, as a share of all that it sends.
struct Hop {
  std::int32_t to = 0;
  double share = 0.0;
};

// A member sends to the next one of its scale-up domain, and from a domain with p members 1/p of
// its bytes to its counterpart in the next domain. `members` are ranks in ascending order, of which
// `member` is the place of the one that sends.
std::vector<Hop> ring_hops(std::span<const std::int32_t> members, std::size_t member,
                           std::uint32_t domain_size);

// Returns the links, ascending, that a group sends along: in a ring, of experts from all to all, of
// a pipeline from stage to stage and back.
std::vector<sim::LinkIndex> links_of(const ClusterMap& map, const AxisGroup& group);

}  // namespace shardwright::gui
