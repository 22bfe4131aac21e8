// Virtual clocks of links: the progress of the flows that a link limits.
//
// All flows with one bottleneck run at its level. So one clock a link counts for all of them what
// each was served, V(t) = integral of level(t) dt in bytes, and a path that will have served some
// flow of its own at V = target keeps this one number, whatever the level does in between. Only a
// path that gets another bottleneck goes over to another clock. V starts anew whenever no path is
// on the clock, which keeps it small and so exact.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/flow_network.hpp"

namespace shardwright::sim {

// Times are in seconds, levels in bytes/s, what was served and targets in bytes to each flow.
class BottleneckClocks {
 public:
  explicit BottleneckClocks(std::size_t links) : clocks_(links) {}

  void add_path() { paths_.emplace_back(); }

  void set_level(LinkIndex link, double level, double now);

  // Puts a path, which is on no clock, on that of a link. It was served so much up to now, and
  // waits for its flows to be served `target`.
  void join(PathIndex path, LinkIndex link, double served, double target, double now);
  void leave(PathIndex path);
  bool is_on_any(PathIndex path) const { return paths_[path].link != FlowNetwork::kNone; }
  bool is_on(PathIndex path, LinkIndex link) const { return paths_[path].link == link; }

  // The bytes that a path, which is on a clock, has been served.
  double served(PathIndex path, double now) const;
  void set_target(PathIndex path, double target);

  // The path that reaches its target first, and when; there is one.
  bool empty(LinkIndex link) const { return clocks_[link].waiting.empty(); }
  PathIndex first(LinkIndex link) const { return clocks_[link].waiting.front().path; }
  double first_time(LinkIndex link) const;
  // Advances a clock to the target of its first path, which is reached now except for rounding.
  void go_to_first(LinkIndex link, double now);
  // True if the first path has reached its target within so many seconds at the present level.
  bool has_reached_first(LinkIndex link, double tolerance) const;
  // True if the path, which is on a clock that stands still, has been served so much.
  bool has_served(PathIndex path, double bytes, double tolerance) const;

  // Returns the links whose first time has changed since the last call.
  const std::vector<LinkIndex>& take_changed();

 private:
  struct Waiting {
    // The target on the clock.
    double target;
    PathIndex path;
  };
  struct Clock {
    double served = 0.0, updated = 0.0;
    double level = 0.0;
    // True if it is in changed_.
    bool changed = false;
    // A heap with the least target first.
    std::vector<Waiting> waiting;
  };
  struct PathPlace {
    LinkIndex link = FlowNetwork::kNone;
    // The position in the heap.
    std::uint32_t position = 0;
    // The reading of the clock at which the path had been served nothing.
    double joined = 0.0;
  };

  static double served_at(const Clock& clock, double now) {
    return clock.served + clock.level * (now - clock.updated);
  }
  void note_change(LinkIndex link);
  void put(Clock& clock, std::size_t position, const Waiting& waiting);
  void place(Clock& clock, std::size_t position, const Waiting& waiting);

  // Clocks by link.
  std::vector<Clock> clocks_;
  // Places by path.
  std::vector<PathPlace> paths_;
  std::vector<LinkIndex> changed_, taken_;
};

}  // namespace shardwright::sim
