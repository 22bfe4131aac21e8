// FlowNetwork solves for a region: the paths that a change reaches, with the others held fixed.
#include <algorithm>

#include "sim/network/flow_network.hpp"

namespace shardwright::sim {
namespace {

// Below the refill level by this, relatively, rounding cannot have changed what a filling did.
constexpr double kRefill = 1e-9;
// The cost of filling the component, in hops that a region looks at, as measured: per hop, and per
// link, whose place in the heap is most of it where few flows are on a link.
constexpr std::size_t kFilledHopsForAHop = 2;
constexpr std::size_t kHopsForALink = 12;

}  // namespace

// False, with nothing done, if the region is more work than all of the component.
bool FlowNetwork::solve_region(const Component& component) {
  ++region_mark_;
  region_.clear();
  links_of_region_.clear();
  region_hops_ = 0;
  region_work_ = 0;
  refill_level_ = 0.0;
  for (const PathIndex path : component.changed) take_into_region(path);
  for (const LinkIndex link : component.relieved) take_unbound_members(link);
  const std::size_t most_work =
      component.hops / kFilledHopsForAHop + component.links.size() * kHopsForALink;
  while (!region_.empty()) {
    fill_region();
    if (!extend_region()) break;
    if (region_work_ > most_work) return false;
  }
  commit_region();
  return true;
}

// The members that this link held back may grow now that it lost load.
void FlowNetwork::take_unbound_members(LinkIndex link) {
  for (const Member& member : links_[link].members) {
    if (paths_[member.path].bottleneck == link) take_into_region(member.path);
  }
}

void FlowNetwork::take_into_region(PathIndex index) {
  if (in_region(index)) return;
  const Path& path = paths_[index];
  region_paths_[index] = {region_mark_, kNone, kInfinity, false};
  refill_level_ = std::min(refill_level_, path.rate);
  region_.push_back(index);
  region_hops_ += path.hops;
  for (const LinkIndex hop : route(path)) {
    RegionLink& link = region_links_[hop];
    if (link.mark != region_mark_) {
      link = {region_mark_, 0, 0.0, links_[hop].load, kOpen, 0.0};
      links_of_region_.push_back(hop);
    }
    if (link.level != kOpen) refill_level_ = std::min(refill_level_, link.level);
    link.flows += path.flows;
    ++link.paths;
    // Exactly zero where nothing is fixed, so that rounding cannot build up.
    link.fixed =
        link.flows == links_[hop].flows ? 0.0 : std::max(0.0, link.fixed - path.rate * path.flows);
  }
}

// Progressive filling of the region in what the fixed paths leave. What an earlier filling did
// below the refill level stays: the paths that came into the region since were at least as fast,
// and no link that was used up below it had one of them, so up to there this filling would go the
// same way.
void FlowNetwork::fill_region() {
  std::size_t growing = start_region_filling();
  collect_region_candidates();
  region_work_ += region_hops_;
  double level = 0.0;
  while (growing > 0) {
    const LevelCandidate next = candidates_.least();
    const double next_level = next.level <= level * (1.0 + kTie) ? level : next.level;
    if (next.is_path) {
      candidates_.drop_least();
      if (!region_paths_[next.id].growing) continue;
      level = next_level;
      stop_alone(next.id, level);
      --growing;
      continue;
    }
    const Remainder& left = left_[next.id];
    const double current = left.growing == 0.0 ? kInfinity : share(left);
    // Shares only grow while others stop, so an outdated one goes back at its present place.
    if (current > next.level * (1.0 + kTie)) {
      if (left.growing == 0.0) {
        candidates_.drop_least();
      } else {
        candidates_.raise_least(current);
      }
      continue;
    }
    candidates_.drop_least();
    level = next_level;
    region_links_[next.id].level = level;
    growing -= stop_region_members(next.id, level);
  }
}

// Returns the number of paths that are to be stopped.
std::size_t FlowNetwork::start_region_filling() {
  for (const LinkIndex index : links_of_region_) {
    RegionLink& link = region_links_[index];
    left_[index] = {links_[index].capacity - link.fixed, link.flows};
    if (link.level >= refill_level_) link.level = kOpen;
  }
  std::size_t growing = 0;
  for (const PathIndex index : region_) {
    RegionPath& path = region_paths_[index];
    if (path.rate < refill_level_) {
      stop_in_region(index, path.rate, path.bottleneck);
    } else {
      path.growing = true;
      ++growing;
    }
  }
  return growing;
}

void FlowNetwork::collect_region_candidates() {
  candidates_.clear();
  for (const LinkIndex index : links_of_region_) {
    if (left_[index].growing == 0.0) continue;
    RegionLink& link = region_links_[index];
    const bool shared = link.paths > 1;
    link.limit = shared ? kInfinity : share(left_[index]);
    if (shared) candidates_.add({share(left_[index]), index, false});
  }
  for (const PathIndex index : region_) {
    if (!region_paths_[index].growing) continue;
    const double limit = limit_alone(index);
    if (limit < kInfinity) candidates_.add({limit, index, true});
  }
  candidates_.order();
}

// The highest rate of the path by its cap and by the links that it shares with none of the region;
// notes which of them limits it. Most links of a small region are such, and need no share of their
// own.
double FlowNetwork::limit_alone(PathIndex index) {
  double limit = caps_[index];
  LinkIndex bottleneck = kOwnCap;
  for (const LinkIndex hop : route(paths_[index])) {
    if (region_links_[hop].limit >= limit) continue;
    limit = region_links_[hop].limit;
    bottleneck = hop;
  }
  region_paths_[index].bottleneck = bottleneck;
  return limit;
}

void FlowNetwork::stop_alone(PathIndex index, double level) {
  const LinkIndex bottleneck = region_paths_[index].bottleneck;
  if (bottleneck != kOwnCap) region_links_[bottleneck].level = level;
  stop_in_region(index, level, bottleneck);
}

// Returns the number of paths that stopped.
std::size_t FlowNetwork::stop_region_members(LinkIndex link, double level) {
  std::size_t stopped = 0;
  for (const Member& member : links_[link].members) {
    if (!in_region(member.path) || !region_paths_[member.path].growing) continue;
    stop_in_region(member.path, level, link);
    ++stopped;
  }
  return stopped;
}

void FlowNetwork::stop_in_region(PathIndex index, double level, LinkIndex bottleneck) {
  region_paths_[index] = {region_mark_, bottleneck, level, false};
  const Path& path = paths_[index];
  for (const LinkIndex hop : route(path)) {
    left_[hop].capacity -= level * path.flows;
    left_[hop].growing -= path.flows;
  }
}

// Takes in the fixed paths that lost their bottleneck to the region's new rates or that hold back a
// slower path of the region. False if there is none: the rates are right.
bool FlowNetwork::extend_region() {
  const std::size_t paths_before = region_.size();
  const std::size_t links_before = links_of_region_.size();
  refill_level_ = kInfinity;
  for (std::size_t i = 0; i < links_before; ++i) {
    const LinkIndex index = links_of_region_[i];
    const Link& link = links_[index];
    if (region_links_[index].flows == link.flows) continue;
    region_work_ += link.members.size();
    if (region_links_[index].level != kOpen) {
      check_filled_link(index);
    } else if (link.load >= link.capacity * (1.0 - 1e-6)) {  // else it was nobody's bottleneck
      check_open_link(index);
    }
  }
  refill_level_ *= 1.0 - kRefill;
  return region_.size() > paths_before;
}

// Checks a link that stopped paths of the region: a faster fixed path must give way, and a fixed
// path that has its bottleneck here must be as fast as the others.
void FlowNetwork::check_filled_link(LinkIndex index) {
  const double level = region_links_[index].level;
  double fastest = 0.0;
  for (const Member& member : links_[index].members) {
    if (in_region(member.path)) continue;
    const Path& path = paths_[member.path];
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

// Checks a link that stopped no path of the region: those whose bottleneck it was must still find
// it used up and none faster on it.
void FlowNetwork::check_open_link(LinkIndex index) {
  const Link& link = links_[index];
  double fastest = 0.0;
  for (const Member& member : link.members) {
    if (in_region(member.path)) fastest = std::max(fastest, region_paths_[member.path].rate);
  }
  for (const Member& member : link.members) {
    const Path& path = paths_[member.path];
    if (in_region(member.path) || path.bottleneck != index) continue;
    const double accepted = path.rate * kAccept;
    if (left_[index].capacity > accepted * link.flows || fastest > path.rate + accepted)
      take_into_region(member.path);
  }
}

// The level at which the link would be used up if its fixed paths stayed at most as fast as they
// are, and those of the region that others stop at their rates: faster fixed paths give way down to
// this level. Starting from equal shares, the level rises as slower members leave more to the
// others.
double FlowNetwork::local_level(LinkIndex index) const {
  const Link& link = links_[index];
  double level = link.capacity / link.flows;
  for (double open_before = 0.0;;) {
    double taken = 0.0;
    double open = 0.0;
    for (const Member& member : link.members) {
      const Path& path = paths_[member.path];
      const RegionPath& in = region_paths_[member.path];
      double limit = in_region(member.path) ? in.rate : path.rate;
      if (in_region(member.path) && in.bottleneck == index) limit = kInfinity;
      if (limit < level) {
        taken += limit * path.flows;
      } else {
        open += path.flows;
      }
    }
    if (open == 0.0 || open == open_before) return level;
    open_before = open;
    level = std::max(level, (link.capacity - taken) / open);
  }
}

void FlowNetwork::commit_region() {
  for (const LinkIndex index : links_of_region_) {
    Link& link = links_[index];
    link.load = link.capacity - left_[index].capacity;
    const double level = region_links_[index].level;
    link.expected_level = 0.0;
    if (level != kOpen) set_level(index, level);
  }
  for (const PathIndex index : region_)
    set_rate(index, region_paths_[index].rate, region_paths_[index].bottleneck);
}

}  // namespace shardwright::sim
