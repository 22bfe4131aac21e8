#include "sim/cost/torus_path.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/network/torus_slice.hpp"

namespace shardwright::sim {
namespace {

// The members of a group that lie along one axis of the job's slice.
struct MembersOnAxis {
  double members = 1.0;
  // Places of the axis, from the first member to where the next group begins.
  double places = 1.0;
  // True if these are the whole axis, and it is a ring.
  bool wraps = false;

  double spacing() const { return places / members; }

  // The traffic of the fullest link one way, where each member sends 1 in all, evenly to all of
  // them and itself, and so do the groups whose members lie between: on a ring that of all links,
  // on a line that of the one in the middle. Dally and Towles, Principles and Practices of
  // Interconnection Networks, chapter 3.
  double heaviest_link() const {
    const bool even = std::fmod(members, 2.0) == 0.0;
    const double way = even ? members : members - 1.0 / members;
    return spacing() * way / (wraps ? 8.0 : 4.0);
  }
};

// A run of members that are `stride` nodes apart continues on the next axis where it is longer than
// the rest of one.
void add_run(const GroupDimension& run, const TorusSlice& slice,
             std::vector<MembersOnAxis>& on_axis) {
  // Nodes between two places of the axis.
  double below = 1.0;
  auto stride = static_cast<double>(run.stride), left = static_cast<double>(run.count);
  for (std::size_t axis = slice.size(); axis-- > 0 && left > 1.0;) {
    const auto side = static_cast<double>(slice[axis].nodes);
    const double spacing = std::max(1.0, stride / below);
    const double here = std::clamp(std::ceil(side / spacing), 1.0, left);
    if (spacing < side && here > 1.0) {
      on_axis[axis].members *= here;
      on_axis[axis].places = std::max(on_axis[axis].places, std::min(side, here * spacing));
      left = std::ceil(left / here);
      stride = std::max(stride, below) * here;
    }
    below *= side;
  }
}

std::vector<MembersOnAxis> members_by_axis(const GroupPlacement& placement,
                                           const TorusSlice& slice) {
  std::vector<MembersOnAxis> on_axis(slice.size());
  if (placement.grid.empty()) {
    const std::int64_t spacing = std::max<std::int64_t>(1, placement.span / placement.nodes);
    add_run({placement.nodes, spacing}, slice, on_axis);
  } else {
    for (const GroupDimension& run : placement.grid) add_run(run, slice, on_axis);
  }
  for (std::size_t axis = 0; axis < slice.size(); ++axis) {
    on_axis[axis].wraps =
        slice[axis].wraps && on_axis[axis].places >= static_cast<double>(slice[axis].nodes);
  }
  return on_axis;
}

// A ring along an axis takes each of its links once a round, on a line there and back: of two
// rings, one each way round, a line has room for half. Groups whose members lie between those of
// others share the links with them.
void add_rings(const std::vector<MembersOnAxis>& on_axis, TorusPath& path) {
  const double directions = 2.0 * static_cast<double>(on_axis.size());
  double links = 0.0;
  for (const MembersOnAxis& axis : on_axis) {
    if (axis.members <= 1.0) continue;
    links += (axis.wraps ? 2.0 : 1.0) / axis.spacing();
    path.hops = std::max(path.hops, axis.spacing());
  }
  if (links > 0.0) path.ring = std::min(1.0, links / directions);
}

void add_pairs(const std::vector<MembersOnAxis>& on_axis, double nodes, TorusPath& path) {
  const double directions = 2.0 * static_cast<double>(on_axis.size());
  double heaviest = 0.0, hops = 0.0;
  for (const MembersOnAxis& axis : on_axis) {
    if (axis.members <= 1.0) continue;
    heaviest = std::max(heaviest, axis.heaviest_link());
    hops += axis.places / (axis.wraps ? 4.0 : 3.0);
  }
  // No node sends to itself.
  const double to_others = nodes / std::max(1.0, nodes - 1.0);
  if (heaviest > 0.0) path.pairwise = std::min(1.0, 1.0 / (directions * heaviest * to_others));
  path.far_hops = std::max(1.0, hops);
}

// Each node sends to the one that is `distance` further in the job's numbering, axis by axis.
// Neighbours exchange over one link each way; those farther apart share links with all between.
// Half a ring away both ways are as long, and each takes a half.
void add_messages(std::int64_t distance, const TorusSlice& slice, TorusPath& path) {
  double most = 0.0, all = 0.0;
  for (std::size_t axis = slice.size(); axis-- > 0; distance /= slice[axis].nodes) {
    const std::int64_t side = slice[axis].nodes;
    std::int64_t hops = distance % side;
    if (slice[axis].wraps) hops = std::min(hops, side - hops);
    const bool both_ways = slice[axis].wraps && 2 * hops == side;
    most = std::max(most, static_cast<double>(hops) * (both_ways ? 0.5 : 1.0));
    all += static_cast<double>(hops);
  }
  path.ring = std::min(1.0, 1.0 / (2.0 * static_cast<double>(slice.size()) * most));
  path.pairwise = path.ring;
  path.hops = path.far_hops = std::max(1.0, all);
}

}  // namespace

TorusPath torus_path(const GroupPlacement& placement, const FabricSpec& fabric) {
  const TorusSlice slice = torus_slice(fabric, std::max(placement.job_nodes, extent_of(placement)));
  TorusPath path;
  const std::vector<MembersOnAxis> on_axis = members_by_axis(placement, slice);
  add_rings(on_axis, path);
  add_pairs(on_axis, static_cast<double>(placement.nodes), path);
  if (placement.size == 2) add_messages(placement.span - 1, slice, path);
  return path;
}

}  // namespace shardwright::sim
