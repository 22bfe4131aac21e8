// How FlowNetwork fills a whole component: every rate grows from zero, none is held fixed.
//
// Which link is used up next is looked for in a heap of lower bounds. The share of a link only
// grows while others stop, so any earlier share is such a bound; a poor one is met and raised many
// times on the way. Levels change little from one change of flows to the next, so the filling first
// takes for a bound what the last one found, less a margin. Where that was too high, a link comes
// too late: its share is below the level by then, or, when others stopped all its paths, more of it
// is taken than it has. Otherwise the levels rose in the order of the stops, each path stopped at
// the first used-up link of its route, and the rates are right. If it happens, the filling is done
// again with shares alone.
#include <algorithm>

#include "sim/network/flow_network.hpp"
#include "sim/network/level_tolerances.hpp"

namespace shardwright::sim {
namespace {

// How far below its last level a link is looked for.
constexpr double kMargin = 0.2;

}  // namespace

void FlowNetwork::fill_component(const Component& component) {
  start_component_filling(component, true);
  if (!fill_to_the_end(component) || is_any_overbooked(component)) {
    start_component_filling(component, false);
    fill_to_the_end(component);
  }
  commit_component(component);
}

void FlowNetwork::start_component_filling(const Component& component, bool as_expected) {
  ++stop_mark_;
  stops_.clear();
  stopped_count_ = 0;
  stopped_.resize(std::max(stopped_.size(), component.paths + 1));
  candidates_.clear();
  for (const LinkIndex index : component.links) {
    const Link& link = links_[index];
    if (link.flows == 0.0) continue;
    left_[index] = {link.capacity, link.flows};
    const double equal_share = link.capacity / link.flows;
    candidates_.add(
        {as_expected ? std::max(equal_share, link.expected_level) : equal_share, index, false});
    if (!has_caps_) continue;
    for (const Member& member : link.members) {
      const double cap = caps_[member.path];
      const bool is_first_hop = member.hop == paths_[member.path].first_hop;
      if (is_first_hop && cap < kInfinity) candidates_.add({cap, member.path, true});
    }
  }
  candidates_.order();
}

// False if a link came too late.
bool FlowNetwork::fill_to_the_end(const Component& component) {
  double level = 0.0;
  while (stopped_count_ < component.paths) {
    const LevelCandidate next = candidates_.least();
    if (next.is_path) {
      candidates_.drop_least();
      if (stop_marks_[next.id] == stop_mark_) continue;
      level = std::max(level, next.level);
      stop_at_cap(next.id, level);
      continue;
    }
    const Remainder& left = left_[next.id];
    if (left.growing == 0.0) {
      links_[next.id].expected_level = level * (1.0 - kMargin);
      candidates_.drop_least();
      continue;
    }
    const double current = share(left);
    if (current > next.level * (1.0 + kTie)) {
      candidates_.raise_least(current);
      continue;
    }
    if (current < level * (1.0 - kTie)) return false;
    candidates_.drop_least();
    if (current > level * (1.0 + kTie)) level = current;
    links_[next.id].expected_level = level * (1.0 - kMargin);
    stop_members(next.id, level);
  }
  for (const LevelCandidate& rest : candidates_.candidates()) {
    if (!rest.is_path) links_[rest.id].expected_level = level * (1.0 - kMargin);
  }
  return true;
}

bool FlowNetwork::is_any_overbooked(const Component& component) const {
  return std::any_of(component.links.begin(), component.links.end(), [&](LinkIndex link) {
    return links_[link].flows > 0.0 && left_[link].capacity < -kAccept * links_[link].capacity;
  });
}

void FlowNetwork::stop_members(LinkIndex link, double level) {
  const std::size_t first = stopped_count_;
  // Without a branch, which would be unpredictable: the next path overwrites one that has stopped
  // before.
  std::size_t count = first;
  const std::uint32_t mark = stop_mark_;
  for (const Member& member : links_[link].members) {
    stopped_[count] = member.path;
    count += stop_marks_[member.path] == mark ? 0 : 1;
  }
  for (std::size_t i = first; i < count; ++i) take_from_route(stopped_[i], level);
  stopped_count_ = count;
  stops_.push_back({link, level, count});
}

void FlowNetwork::stop_at_cap(PathIndex path, double level) {
  take_from_route(path, level);
  stopped_[stopped_count_++] = path;
  stops_.push_back({kOwnCap, level, stopped_count_});
}

void FlowNetwork::take_from_route(PathIndex index, double level) {
  stop_marks_[index] = stop_mark_;
  const Path& path = paths_[index];
  const double flows = path.flows;
  const double load = level * flows;
  for (const LinkIndex link : route(path)) {
    left_[link].capacity -= load;
    left_[link].growing -= flows;
  }
}

void FlowNetwork::commit_component(const Component& component) {
  for (const LinkIndex index : component.links) {
    Link& link = links_[index];
    if (link.flows > 0.0) link.load = link.capacity - left_[index].capacity;
  }
  std::size_t first = 0;
  for (const Stop& stop : stops_) {
    if (stop.bottleneck != kOwnCap) set_level(stop.bottleneck, stop.level);
    for (std::size_t i = first; i < stop.end; ++i)
      set_rate(stopped_[i], stop.level, stop.bottleneck);
    first = stop.end;
  }
}

}  // namespace shardwright::sim
