#include "sim/network/flow_network.hpp"

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

// Shares that differ by less than this, relatively, are one level: symmetric flows get one rate
// exactly, and so end together.
constexpr double kTie = 1e-12;
// A fixed path is left alone while its rate is right within this, relatively.
constexpr double kAccept = 1e-11;
// Below the refill level by this, relatively, rounding cannot have changed what a filling did.
constexpr double kRefill = 1e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

FlowNetwork::FlowNetwork(std::vector<BytesPerSecond> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    SHARDWRIGHT_CHECK(capacities[i].value() > 0.0, "a link has no capacity");
    links_[i].capacity = capacities[i].value();
  }
}

PathIndex FlowNetwork::add_path(std::span<const LinkIndex> route, BytesPerSecond rate_cap) {
  SHARDWRIGHT_CHECK(!route.empty() || rate_cap < infinite<BytesPerSecond>(),
                    "a path has neither links nor a cap");
  Path path;
  path.first_hop = static_cast<std::uint32_t>(hops_.size());
  path.hops = static_cast<std::uint32_t>(route.size());
  path.cap = rate_cap.value();
  for (const LinkIndex link : route) {
    SHARDWRIGHT_CHECK(link < links_.size(), "a route names a link that is not there");
    hops_.push_back({link, kNone});
  }
  paths_.push_back(path);
  return static_cast<PathIndex>(paths_.size() - 1);
}

void FlowNetwork::add_flows(PathIndex path, std::uint32_t flows) {
  paths_[path].flows += flows;
  note_change(path);
}

void FlowNetwork::remove_flows(PathIndex path, std::uint32_t flows) {
  SHARDWRIGHT_CHECK(flows <= paths_[path].flows, "more flows leave a path than it has");
  paths_[path].flows -= flows;
  note_change(path);
}

void FlowNetwork::note_change(PathIndex path) {
  if (paths_[path].changed) return;
  paths_[path].changed = true;
  changed_.push_back(path);
}

std::span<const PathIndex> FlowNetwork::resolve() {
  ++epoch_;
  region_.clear();
  region_links_.clear();
  relieved_.clear();
  rate_changes_.clear();
  settle_changes();
  refill_level_ = 0.0;
  for (const LinkIndex link : relieved_) take_unbound_members(link);
  while (!region_.empty()) {
    fill_region();
    if (!extend_region()) break;
  }
  commit_region();
  return rate_changes_;
}

// Brings membership, flow counts and loads up to date at the old rates, then starts the region with
// the changed paths.
void FlowNetwork::settle_changes() {
  for (const PathIndex index : changed_) {
    Path& path = paths_[index];
    path.changed = false;
    if (path.flows == path.settled_flows) continue;
    if (path.settled_flows == 0) join_links(index);
    const auto more = path.flows - path.settled_flows;  // modulo 2^32, as are the sums below
    const double more_load =
        (static_cast<double>(path.flows) - static_cast<double>(path.settled_flows)) * path.rate;
    for (const Hop& hop : hops_of(path)) {
      Link& link = links_[hop.link];
      link.flows += more;
      link.load = link.flows == 0 ? 0.0 : link.load + more_load;
      if (more_load < 0.0 && link.flows > 0) relieved_.push_back(hop.link);
    }
    path.settled_flows = path.flows;
    if (path.flows == 0) leave_links(index);
  }
  for (const PathIndex index : changed_) {
    if (paths_[index].flows > 0 && !settle_alone(index)) take_into_region(index);
  }
  changed_.clear();
}

void FlowNetwork::join_links(PathIndex path) {
  const std::uint32_t first = paths_[path].first_hop;
  for (std::uint32_t hop = first; hop < first + paths_[path].hops; ++hop) {
    auto& members = links_[hops_[hop].link].members;
    hops_[hop].position = static_cast<std::uint32_t>(members.size());
    members.push_back({path, hop});
  }
}

void FlowNetwork::leave_links(PathIndex path) {
  for (const Hop& hop : hops_of(paths_[path])) {
    auto& members = links_[hop.link].members;
    hops_[members.back().hop].position = hop.position;
    members[hop.position] = members.back();
    members.pop_back();
  }
  paths_[path].rate = 0.0;
  paths_[path].bottleneck = kNone;
}

// A path that shares no link needs no solving. False if it shares one.
bool FlowNetwork::settle_alone(PathIndex index) {
  Path& path = paths_[index];
  double rate = path.cap;
  std::uint32_t bottleneck = kOwnCap;
  for (const Hop& hop : hops_of(path)) {
    const Link& link = links_[hop.link];
    if (link.members.size() > 1) return false;
    const double most = link.capacity / path.flows;
    if (most < rate) {
      rate = most;
      bottleneck = hop.link;
    }
  }
  for (const Hop& hop : hops_of(path)) links_[hop.link].load = rate * path.flows;
  path.bottleneck = bottleneck;
  if (rate != path.rate) rate_changes_.push_back(index);
  path.rate = rate;
  return true;
}

// The members that this link held back may grow now that it lost load.
void FlowNetwork::take_unbound_members(LinkIndex link) {
  for (const Member& member : links_[link].members) {
    if (paths_[member.path].bottleneck == link) take_into_region(member.path);
  }
}

void FlowNetwork::take_into_region(PathIndex index) {
  Path& path = paths_[index];
  if (in_region(path)) return;
  path.region_mark = epoch_;
  path.next_rate = kInfinity;
  refill_level_ = std::min(refill_level_, path.rate);
  region_.push_back(index);
  for (const Hop& hop : hops_of(path)) {
    Link& link = links_[hop.link];
    if (link.region_mark != epoch_) {
      link.region_mark = epoch_;
      link.fixed = link.load;
      link.level = kOpen;
      link.region_flows = 0;
      link.region_paths = 0;
      region_links_.push_back(hop.link);
    }
    if (link.level != kOpen) refill_level_ = std::min(refill_level_, link.level);
    link.region_flows += path.flows;
    ++link.region_paths;
    // Exactly zero where nothing is fixed, so that rounding cannot build up.
    link.fixed =
        link.region_flows == link.flows ? 0.0 : std::max(0.0, link.fixed - path.rate * path.flows);
  }
}

double FlowNetwork::share(const Link& link) {
  return std::max(0.0, link.residual) / link.growing;
}

// Progressive filling of the region in what the fixed paths leave. What an earlier filling did
// below the refill level stays: the paths that came into the region since were at least as fast,
// and no link that was used up below it had one of them, so up to there this filling would go the
// same way.
void FlowNetwork::fill_region() {
  std::size_t growing = start_filling();
  collect_candidates();
  double level = 0.0;
  while (growing > 0) {
    const Candidate next = candidates_.front();
    const double next_level = next.level <= level * (1.0 + kTie) ? level : next.level;
    if (next.is_path) {
      drop_least_candidate();
      if (!paths_[next.id].growing) continue;
      level = next_level;
      stop_alone(next.id, level);
      --growing;
      continue;
    }
    Link& link = links_[next.id];
    const double current = link.growing == 0 ? kInfinity : share(link);
    // Shares only grow while others stop, so an outdated one goes back at its present place.
    if (current > next.level * (1.0 + kTie)) {
      if (link.growing == 0) {
        drop_least_candidate();
      } else {
        raise_least_candidate(current);
      }
      continue;
    }
    drop_least_candidate();
    level = next_level;
    link.level = level;
    growing -= stop_members(next.id, level);
  }
}

// How many paths are to be stopped.
std::size_t FlowNetwork::start_filling() {
  for (const LinkIndex index : region_links_) {
    Link& link = links_[index];
    link.residual = link.capacity - link.fixed;
    link.growing = link.region_flows;
    if (link.level >= refill_level_) link.level = kOpen;
  }
  std::size_t growing = 0;
  for (const PathIndex index : region_) {
    Path& path = paths_[index];
    if (path.next_rate < refill_level_) {
      stop(index, path.next_rate, path.next_bottleneck);
    } else {
      path.growing = true;
      ++growing;
    }
  }
  return growing;
}

void FlowNetwork::collect_candidates() {
  candidates_.clear();
  for (const LinkIndex index : region_links_) {
    Link& link = links_[index];
    if (link.growing == 0) continue;
    const bool shared = link.region_paths > 1;
    link.limit = shared ? kInfinity : share(link);
    if (shared) candidates_.push_back({share(link), index, false});
  }
  for (const PathIndex index : region_) {
    if (!paths_[index].growing) continue;
    const double limit = limit_alone(paths_[index]);
    if (limit < kInfinity) candidates_.push_back({limit, index, true});
  }
  std::make_heap(candidates_.begin(), candidates_.end(), IsLater());
}

// How fast the path may become by its cap and by the links that it shares with none of the region;
// notes which of them it is. Most links of a small region are such, and need no share of their own.
double FlowNetwork::limit_alone(Path& path) const {
  double limit = path.cap;
  path.next_bottleneck = kOwnCap;
  for (std::uint32_t hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    const Link& link = links_[hops_[hop].link];
    if (link.limit >= limit) continue;
    limit = link.limit;
    path.next_bottleneck = hops_[hop].link;
  }
  return limit;
}

void FlowNetwork::drop_least_candidate() {
  const Candidate last = candidates_.back();
  candidates_.pop_back();
  if (candidates_.empty()) return;
  candidates_.front() = last;
  raise_least_candidate(last.level);
}

// Gives the top of the heap another level and lets it sink to its place: all the way along the
// lesser children and up again, for most come from the bottom and belong there.
void FlowNetwork::raise_least_candidate(double level) {
  Candidate sinking = candidates_.front();
  sinking.level = level;
  const std::size_t size = candidates_.size();
  std::size_t at = 0;
  for (std::size_t child = 1; child < size; child = 2 * at + 1) {
    const bool second = child + 1 < size && candidates_[child + 1].level < candidates_[child].level;
    child += second ? 1 : 0;
    candidates_[at] = candidates_[child];
    at = child;
  }
  for (; at > 0 && candidates_[(at - 1) / 2].level > level; at = (at - 1) / 2)
    candidates_[at] = candidates_[(at - 1) / 2];
  candidates_[at] = sinking;
}

void FlowNetwork::stop_alone(PathIndex index, double level) {
  const std::uint32_t bottleneck = paths_[index].next_bottleneck;
  if (bottleneck != kOwnCap) links_[bottleneck].level = level;
  stop(index, level, bottleneck);
}

// How many paths stopped.
std::size_t FlowNetwork::stop_members(LinkIndex link, double level) {
  std::size_t stopped = 0;
  for (const Member& member : links_[link].members) {
    const Path& path = paths_[member.path];
    if (!in_region(path) || !path.growing) continue;
    stop(member.path, level, link);
    ++stopped;
  }
  return stopped;
}

void FlowNetwork::stop(PathIndex index, double level, std::uint32_t bottleneck) {
  Path& path = paths_[index];
  path.growing = false;
  path.next_rate = level;
  path.next_bottleneck = bottleneck;
  for (const Hop& hop : hops_of(path)) {
    links_[hop.link].residual -= level * path.flows;
    links_[hop.link].growing -= path.flows;
  }
}

// Takes in the fixed paths that lost their bottleneck to the region's new rates or that hold back a
// slower path of the region. False if there is none: the rates are right.
bool FlowNetwork::extend_region() {
  const std::size_t paths_before = region_.size();
  const std::size_t links_before = region_links_.size();
  refill_level_ = kInfinity;
  for (std::size_t i = 0; i < links_before; ++i) {
    const LinkIndex index = region_links_[i];
    const Link& link = links_[index];
    if (link.region_flows == link.flows) continue;
    if (link.level != kOpen) {
      check_filled_link(index);
    } else if (link.load >= link.capacity * (1.0 - 1e-6)) {  // else it was nobody's bottleneck
      check_open_link(index);
    }
  }
  refill_level_ *= 1.0 - kRefill;
  return region_.size() > paths_before;
}

// Of a link that stopped paths of the region: a faster fixed path must give way, and a fixed path
// that has its bottleneck here must be as fast as the others.
void FlowNetwork::check_filled_link(LinkIndex index) {
  const double level = links_[index].level;
  double fastest = 0.0;
  for (const Member& member : links_[index].members) {
    const Path& path = paths_[member.path];
    if (in_region(path)) continue;
    fastest = std::max(fastest, path.rate);
    if (path.bottleneck == index && path.rate < level * (1.0 - kAccept))
      take_into_region(member.path);
  }
  if (fastest <= level * (1.0 + kAccept)) return;
  const double threshold = std::min(local_level(index), fastest * (1.0 - kTie));
  for (const Member& member : links_[index].members) {
    if (paths_[member.path].rate > threshold) take_into_region(member.path);
  }
}

// Of a link that stopped no path of the region: those whose bottleneck it was must still find it
// used up and none faster on it.
void FlowNetwork::check_open_link(LinkIndex index) {
  const Link& link = links_[index];
  double fastest = 0.0;
  for (const Member& member : link.members) {
    const Path& path = paths_[member.path];
    if (in_region(path)) fastest = std::max(fastest, path.next_rate);
  }
  for (const Member& member : link.members) {
    const Path& path = paths_[member.path];
    if (in_region(path) || path.bottleneck != index) continue;
    const double accepted = path.rate * kAccept;
    if (link.residual > accepted * link.flows || fastest > path.rate + accepted)
      take_into_region(member.path);
  }
}

// Where the link would be used up if its fixed paths stayed at most as fast as they are, and those
// of the region that others stop at what they got: faster fixed paths give way down to this level.
// Starting from equal shares, the level rises as slower members leave more to the others.
double FlowNetwork::local_level(LinkIndex index) const {
  const Link& link = links_[index];
  double level = link.capacity / link.flows;
  for (std::uint32_t open_before = 0;;) {
    double taken = 0.0;
    std::uint32_t open = 0;
    for (const Member& member : link.members) {
      const Path& path = paths_[member.path];
      double limit = in_region(path) ? path.next_rate : path.rate;
      if (in_region(path) && path.next_bottleneck == index) limit = kInfinity;
      if (limit < level) {
        taken += limit * path.flows;
      } else {
        open += path.flows;
      }
    }
    if (open == 0 || open == open_before) return level;
    open_before = open;
    level = std::max(level, (link.capacity - taken) / open);
  }
}

void FlowNetwork::commit_region() {
  for (const LinkIndex index : region_links_) {
    Link& link = links_[index];
    link.load = link.capacity - link.residual;
  }
  for (const PathIndex index : region_) {
    Path& path = paths_[index];
    path.bottleneck = path.next_bottleneck;
    if (path.next_rate == path.rate) continue;
    path.rate = path.next_rate;
    rate_changes_.push_back(index);
  }
}

}  // namespace shardwright::sim
