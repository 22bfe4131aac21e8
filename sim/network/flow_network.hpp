// Max-min fair rates that follow flows as they come and go.
//
// The rates are those of `max_min_rates` (see max_min.hpp for the maths). Flows with one route and
// cap form a path with a count: they share alike, so one rate serves all of them.
//
// A change is felt only where bottlenecks pass it on. After flows came or went, `resolve` starts
// from the paths that lost their bottleneck or are new and solves for this region alone, with all
// other rates held fixed. It then looks at the links of the region for a fixed path that no longer
// has a bottleneck, takes such paths into the region and solves again. When there is none, every
// path has a bottleneck, and the rates are the max-min fair ones of the whole network. The region
// never grows beyond the connected component of the change and mostly stays a small part of it.
//
// Rates agree with the reference within 1e-9, relatively; the sum over a link never exceeds its
// capacity but by rounding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/max_min.hpp"

namespace shardwright::sim {

// Paths are numbered from zero in the order of add_path.
using PathIndex = std::uint32_t;

class FlowNetwork {
 public:
  // Capacities are above zero.
  explicit FlowNetwork(std::vector<BytesPerSecond> capacities);

  // Makes a route known; no flow is on it yet. A link occurs at most once in a route. A route
  // without links needs a finite cap. The cap is per flow.
  PathIndex add_path(std::span<const LinkIndex> route,
                     BytesPerSecond rate_cap = infinite<BytesPerSecond>());

  // Flows that come to or leave a path; felt at the next resolve().
  void add_flows(PathIndex path, std::uint32_t flows = 1);
  void remove_flows(PathIndex path, std::uint32_t flows = 1);

  // Solves for the changes since the last call. Returns the paths with flows whose rate is now
  // another one, in a deterministic order; valid until the next call.
  std::span<const PathIndex> resolve();

  // Of each flow of the path, as of the last resolve(); zero where there is no flow.
  BytesPerSecond rate(PathIndex path) const { return BytesPerSecond(paths_[path].rate); }
  std::uint32_t flows(PathIndex path) const { return paths_[path].flows; }
  // The sum of the rates over a link, as of the last resolve().
  BytesPerSecond load(LinkIndex link) const { return BytesPerSecond(links_[link].load); }
  std::size_t path_count() const { return paths_.size(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // What ends the growth of a path: a link, or kOwnCap, or nothing as yet (kNone).
  static constexpr std::uint32_t kOwnCap = UINT32_MAX - 1;
  static constexpr double kOpen = -1.0;

  struct Path {
    std::uint32_t first_hop = 0, hops = 0;  // in hops_
    std::uint32_t flows = 0;                // asked for
    std::uint32_t settled_flows = 0;        // as of the last resolve
    double rate = 0.0;
    double cap = 0.0;
    std::uint32_t bottleneck = kNone;
    std::uint32_t region_mark = 0;  // equals epoch_: in the region
    bool growing = false;           // during filling: not stopped yet
    bool changed = false;           // waits in changed_ for the next resolve
    double next_rate = 0.0;
    std::uint32_t next_bottleneck = kNone;
  };
  struct Hop {
    LinkIndex link;
    std::uint32_t position;  // of the path among the members of the link
  };
  struct Member {
    PathIndex path;
    std::uint32_t hop;  // index in hops_
  };
  struct Link {
    double capacity = 0.0;
    double load = 0.0;
    std::uint32_t flows = 0;         // of all members
    std::uint32_t region_flows = 0;  // of the members in the region
    std::uint32_t region_paths = 0;  // members in the region
    std::uint32_t growing = 0;       // flows, during filling
    std::uint32_t region_mark = 0;   // equals epoch_: a path of the region passes here
    double level = 0.0;              // during filling: where it was used up; kOpen if not
    double limit = 0.0;              // as filling begins: of a path that has the link to itself
    double fixed = 0.0;              // load of the members outside the region
    double residual = 0.0;           // during filling: capacity that the stopped paths leave
    std::vector<Member> members;     // paths with flows
  };
  // What may become the next level: the share of a link that several paths of the region use, or
  // the limit that a path has to itself (its cap, or a link that no other of the region uses).
  struct Candidate {
    double level;
    std::uint32_t id;
    bool is_path;
  };
  struct IsLater {
    bool operator()(const Candidate& a, const Candidate& b) const { return a.level > b.level; }
  };

  std::span<Hop> hops_of(const Path& path) { return {hops_.data() + path.first_hop, path.hops}; }
  bool in_region(const Path& path) const { return path.region_mark == epoch_; }
  void note_change(PathIndex path);
  void settle_changes();
  void join_links(PathIndex path);
  void leave_links(PathIndex path);
  bool settle_alone(PathIndex index);
  void take_unbound_members(LinkIndex link);
  void take_into_region(PathIndex index);
  void fill_region();
  std::size_t start_filling();
  void collect_candidates();
  double limit_alone(Path& path) const;
  void drop_least_candidate();
  void raise_least_candidate(double level);
  static double share(const Link& link);
  std::size_t stop_members(LinkIndex link, double level);
  void stop_alone(PathIndex index, double level);
  void stop(PathIndex index, double level, std::uint32_t bottleneck);
  bool extend_region();
  void check_filled_link(LinkIndex index);
  void check_open_link(LinkIndex index);
  double local_level(LinkIndex index) const;
  void commit_region();

  std::vector<Link> links_;
  std::vector<Path> paths_;
  std::vector<Hop> hops_;
  std::vector<PathIndex> changed_;  // since the last resolve
  std::vector<PathIndex> region_;
  std::vector<LinkIndex> region_links_;
  std::vector<LinkIndex> relieved_;      // links that lost load
  std::vector<Candidate> candidates_;    // heap, least level first
  std::vector<PathIndex> rate_changes_;  // the answer of resolve
  double refill_level_ = 0.0;  // from there on the next filling may go another way than the last
  std::uint32_t epoch_ = 0;
};

}  // namespace shardwright::sim
