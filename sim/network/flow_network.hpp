// Max-min fair rates that follow flows as they come and go.
//
// Given are links l with capacity C_l > 0 and flows i, each with a route, a weight w_il > 0 on
// every link of its route (what a unit of its rate takes from the link, 1 by default) and a cap c_i
// on its rate (infinite by default). The rates x solve
//
//   sum over the flows i through l of  w_il x_i  <=  C_l     for every link l
//   x_i <= c_i                                               for every flow i
//
// and are max-min fair: no rate can grow but at the cost of one that is smaller or equal. Such
// rates exist, are unique, and are just those for which every flow has a bottleneck: it runs at its
// cap, or some link of its route is used up and no flow on that link is faster (Bertsekas and
// Gallager, Data Networks, 2nd ed., section 6.5.2).
//
// Progressive filling finds them: all rates grow together from zero; when a link is used up or a
// cap is reached, the flows concerned stay at the level reached and the others grow on. The level
// at which link l is used up, were nothing else to stop its growing flows, is its share
//
//   s_l = (C_l - sum over the stopped flows of w_il x_i) / (sum over the growing flows of w_il),
//
// and the smallest share (or cap) is the next level. Shares never shrink on the way.
//
// Assumes fluid flows that share at once and fairly: no start-up, no losses, no dependence on the
// round-trip time, ideal congestion control. Here weights are 1, and flows with one route and cap
// form a path with a count: they share alike, so one rate serves all of them.
//
// A change is solved for in one of two ways, within the links that routes connect with it, its
// component.
//
// It works by region where bottlenecks pass a change on to few: `resolve` starts from the paths
// that lost their bottleneck or are new and solves for this region alone, with all other rates held
// fixed. It then looks at the links of the region for a fixed path that no longer has a bottleneck,
// takes such paths into the region and solves again. When there is none, every path has a
// bottleneck, and the rates are the max-min fair ones of the whole network.
//
// It works by component where each change moves most rates: one progressive filling of all its
// paths, with nothing held fixed. It begins at the last checkpoint of the filling before up to
// which the change makes no difference. A region whose work comes to more than that of such a
// filling is given up for it, and as long as this goes on most changes are filled for at once,
// without a region before.
//
// Rates agree with those of plain filling within 1e-9, relatively; the sum over a link never
// exceeds its capacity but by rounding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "sim/network/level_heap.hpp"
#include "sim/network/link.hpp"

namespace shardwright::sim {

// Paths are numbered from zero in the order of add_path.
using PathIndex = std::uint32_t;

class FlowNetwork {
 public:
  // Stands for the link that is a path's bottleneck where there is none, or where it is the path's
  // cap.
  static constexpr LinkIndex kNone = UINT32_MAX;
  static constexpr LinkIndex kOwnCap = UINT32_MAX - 1;

  // Capacities are above zero.
  explicit FlowNetwork(std::vector<BytesPerSecond> capacities);

  // Adds a route without flows. A link occurs at most once in a route. A route
  // without links needs a finite cap. The cap is per flow.
  PathIndex add_path(std::span<const LinkIndex> route,
                     BytesPerSecond rate_cap = infinite<BytesPerSecond>());

  // Adds flows to a path, or takes them off, from the next resolve() on.
  void add_flows(PathIndex path, std::uint32_t flows = 1);
  void remove_flows(PathIndex path, std::uint32_t flows = 1);

  // Solves for the changes since the last call. Returns the paths with flows whose rate is now
  // another one, in a deterministic order; valid until the next call.
  std::span<const PathIndex> resolve();

  // The paths with flows whose bottleneck has changed, and the links whose level has: mostly far
  // fewer than the paths whose rate has changed. A path that lost its last flow and has one
  // again is among the paths. Valid until the next resolve().
  std::span<const PathIndex> moved_paths() const { return moved_paths_; }
  std::span<const LinkIndex> changed_levels() const { return changed_levels_; }

  // The rate of each flow on this path after the last resolve(), or 0 if the path carries no flow.
  BytesPerSecond rate(PathIndex path) const { return BytesPerSecond(paths_[path].rate); }
  // The link that ends the growth of the path; kNone where there is no flow.
  LinkIndex bottleneck(PathIndex path) const { return paths_[path].bottleneck; }
  // The rate, within a relative 1e-11, of the paths whose bottleneck the link is; without meaning
  // where there is none.
  BytesPerSecond level(LinkIndex link) const { return BytesPerSecond(links_[link].level); }
  // The links of the path.
  std::span<const LinkIndex> route(PathIndex path) const { return route(paths_[path]); }
  std::uint32_t flows(PathIndex path) const { return paths_[path].flows_asked; }
  // The sum of the rates over a link, as of the last resolve().
  BytesPerSecond load(LinkIndex link) const { return BytesPerSecond(links_[link].load); }
  std::size_t path_count() const { return paths_.size(); }

 private:
  struct alignas(32) Path {
    // The place of its hops in hop_links_, and their number.
    std::uint32_t first_hop = 0, hops = 0;
    // The number of flows at the last resolve().
    double flows = 0.0;
    double rate = 0.0;
    LinkIndex bottleneck = kNone;
    std::uint32_t flows_asked = 0;
  };
  struct Member {
    PathIndex path;
    // The index in hop_links_.
    std::uint32_t hop;
  };
  struct Link {
    double capacity = 0.0;
    double load = 0.0;
    double level = 0.0;
    // The flows of all members.
    double flows = 0.0;
    // The level at which a filling of the component may look for the link first.
    double expected_level = 0.0;
    // Paths with flows.
    std::vector<Member> members;
  };
  // The capacity of a link that the stopped paths leave during a filling, and the other flows.
  struct Remainder {
    double capacity = 0.0;
    double growing = 0.0;
  };
  // Paths that a filling of a component stopped together, up to `end` in Filling::stopped.
  struct Stop {
    LinkIndex bottleneck;
    double level;
    std::size_t end;
  };
  // The progress of a filling at some moment.
  struct Checkpoint {
    // The level of the last path that had stopped.
    double level = 0.0;
    // The number of stops that had been made.
    std::size_t stops = 0;
    // The remainders by place of the link in the component.
    std::vector<Remainder> left;
  };
  // The last filling of a component.
  struct Filling {
    // Paths in the order in which they stopped, with room for one more.
    std::vector<PathIndex> stopped;
    std::vector<Stop> stops;
    std::vector<Checkpoint> checkpoints;
    // The number of first checkpoints that hold in spite of changes since.
    std::size_t kept = 0;
    // The mark in stop_marks_ of the paths that it stopped.
    std::uint32_t mark = 0;

    std::size_t stopped_count() const { return stops.empty() ? 0 : stops.back().end; }
  };
  // Links that routes connect, and how the next change of theirs is solved for.
  struct Component {
    std::vector<LinkIndex> links;
    // Paths with flows, and their hops.
    std::size_t paths = 0, hops = 0;
    // Paths that have changed since the last resolve().
    std::vector<PathIndex> changed;
    // Links that have lost load since then.
    std::vector<LinkIndex> relieved;
    // True if it is in waiting_.
    bool waits = false;
    // The number of changes that are filled for before a region is tried.
    std::uint32_t fills_ahead = 0;
    std::uint32_t last_fills_ahead = 0;
    Filling filling;
  };

  struct RegionPath {
    // Equals region_mark_ if the path is in the region.
    std::uint32_t mark = 0;
    LinkIndex bottleneck = kNone;
    double rate = 0.0;
    // True during a filling until the path has stopped.
    bool growing = false;
  };
  struct RegionLink {
    // Equals region_mark_ if a path of the region passes the link.
    std::uint32_t mark = 0;
    // Members in the region.
    std::uint32_t paths = 0;
    // Flows of the members in the region.
    double flows = 0.0;
    // The load of the members outside the region.
    double fixed = 0.0;
    // The level at which a filling used the link up; kOpen if it did not.
    double level = 0.0;
    // The limit of a path that has the link to itself, as a filling begins.
    double limit = 0.0;
  };
  static constexpr double kOpen = -1.0;

  std::span<const LinkIndex> route(const Path& path) const {
    return {hop_links_.data() + path.first_hop, path.hops};
  }
  static double share(const Remainder& left) { return std::max(0.0, left.capacity) / left.growing; }

  void connect(std::span<const LinkIndex> route);
  void note_change(PathIndex path);
  void settle_changes();
  void settle_flows(PathIndex index);
  Component& waiting_component(LinkIndex link);
  void join_links(PathIndex path);
  void leave_links(PathIndex path);
  bool settle_alone(PathIndex index);
  void solve(Component& component);
  void set_rate(PathIndex index, double rate, LinkIndex bottleneck) {
    Path& path = paths_[index];
    if (path.bottleneck != bottleneck) moved_paths_.push_back(index);
    if (path.rate != rate) changed_rates_.push_back(index);
    path.bottleneck = bottleneck;
    path.rate = rate;
  }
  void set_level(LinkIndex index, double level) {
    if (links_[index].level != level) changed_levels_.push_back(index);
    links_[index].level = level;
  }

  // flow_network_region.cpp
  bool solve_region(const Component& component);
  bool in_region(PathIndex path) const { return region_paths_[path].mark == region_mark_; }
  void take_unbound_members(LinkIndex link);
  void take_into_region(PathIndex index);
  void fill_region();
  std::size_t start_region_filling();
  void collect_region_candidates();
  double limit_alone(PathIndex index);
  std::size_t stop_region_members(LinkIndex link, double level);
  void stop_alone(PathIndex index, double level);
  void stop_in_region(PathIndex index, double level, LinkIndex bottleneck);
  bool extend_region();
  void check_filled_link(LinkIndex index);
  void check_open_link(LinkIndex index);
  double local_level(LinkIndex index) const;
  void commit_region();

  // flow_network_component.cpp
  void keep_checkpoints(PathIndex path, double more_flows);
  void fill_component(Component& component);
  void start_component_filling(Component& component, bool as_expected);
  void go_back_to_checkpoint(Component& component);
  void add_caps_of_members(LinkIndex link);
  bool fill_to_the_end(Component& component, bool as_expected);
  void add_checkpoint(Component& component, double level);
  bool is_any_overbooked() const;
  void stop_members(Filling& filling, LinkIndex link, double level);
  void stop_at_cap(Filling& filling, PathIndex path, double level);
  void take_from_route(PathIndex index, double level, LinkIndex bottleneck);
  void commit_component(const Filling& filling, std::size_t first_stop);

  std::vector<Link> links_;
  std::vector<Path> paths_;
  // Caps by path.
  std::vector<double> caps_;
  // True if there are finite caps.
  bool has_caps_ = false;
  std::vector<LinkIndex> hop_links_;
  // The position of the path among the members of the link, by hop.
  std::vector<std::uint32_t> hop_positions_;
  // The component of each link.
  std::vector<std::uint32_t> component_of_;
  // The place of each link among those of its component.
  std::vector<std::uint32_t> place_of_;
  std::vector<Component> components_;

  // Paths that have changed since the last resolve().
  std::vector<PathIndex> changed_;
  // True for these paths.
  std::vector<bool> is_changed_;
  // Components with changes.
  std::vector<std::uint32_t> waiting_;
  // The answers of resolve().
  std::vector<PathIndex> changed_rates_;
  std::vector<PathIndex> moved_paths_;
  std::vector<LinkIndex> changed_levels_;

  // Remainders by link.
  std::vector<Remainder> left_;
  LevelHeap candidates_;

  // Paths of the region, by path.
  std::vector<RegionPath> region_paths_;
  // Links of the region, by link.
  std::vector<RegionLink> region_links_;
  std::vector<PathIndex> region_;
  std::vector<LinkIndex> links_of_region_;
  std::uint32_t region_mark_ = 0;
  // The level from which on the next filling may go another way than the last.
  double refill_level_ = 0.0;
  std::size_t region_hops_ = 0;
  // The number of hops looked at.
  std::size_t region_work_ = 0;

  // The filling that stopped each path.
  std::vector<std::uint32_t> stop_marks_;
  // The latest mark.
  std::uint32_t stop_mark_ = 0;
  // True if any component has some: most networks never need one.
  bool has_checkpoints_ = false;
  // The growing links of the filling under way, as it began.
  std::vector<LinkIndex> growing_links_;
};

}  // namespace shardwright::sim
