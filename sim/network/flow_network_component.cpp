// FlowNetwork fills a whole component: every rate grows from zero, none is held fixed.
//
// Flows that come to or leave a path make no difference to a filling before the path stops, and
// none before a link of it is used up. So a filling notes now and then the capacity that the
// stopped paths left, and the next one begins at the last such checkpoint before the changes.
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

namespace shardwright::sim {
namespace {

// The margin below its last level from which on a link is looked for.
constexpr double kMargin = 0.2;
// Checkpoints of a filling, at most, and how many hops it takes for each link that one holds: by
// then the copy is cheap against them.
constexpr std::size_t kMostCheckpoints = 16;
constexpr std::size_t kHopsForACopy = 2;
// A path that stops above a checkpoint by less than this, relatively, may have been a tie there.
constexpr double kClear = 1e-9;

}  // namespace

// Adds the flows that come to a path, or leave it, to those that grow in each checkpoint, and gives
// up those after which this makes a difference. To be called at the old rate of the path.
void FlowNetwork::keep_checkpoints(PathIndex index, double more_flows) {
  const Path& path = paths_[index];
  if (path.hops == 0) return;
  Filling& filling = components_[component_of_[route(path).front()]].filling;
  const double stops_at = path.flows == 0.0 ? caps_[index] : path.rate;
  for (std::size_t i = 0; i < filling.kept; ++i) {
    Checkpoint& checkpoint = filling.checkpoints[i];
    bool holds = checkpoint.level * (1.0 + kClear) < stops_at;
    for (const LinkIndex link : route(path)) {
      Remainder& left = checkpoint.left[place_of_[link]];
      left.growing += more_flows;
      holds = holds && left.capacity > checkpoint.level * left.growing * (1.0 + kClear);
    }
    if (!holds) filling.kept = i;
  }
}

void FlowNetwork::fill_component(Component& component) {
  if (component.paths == 0) return;
  Filling& filling = component.filling;
  const std::size_t kept = filling.kept;
  start_component_filling(component, true);
  const std::size_t first_stop = filling.stops.size();
  if (!fill_to_the_end(component, true) || is_any_overbooked()) {
    filling.kept = kept;
    start_component_filling(component, false);
    fill_to_the_end(component, false);
  }
  commit_component(filling, first_stop);
}

void FlowNetwork::start_component_filling(Component& component, bool as_expected) {
  go_back_to_checkpoint(component);
  candidates_.clear();
  growing_links_.clear();
  for (const LinkIndex index : component.links) {
    if (left_[index].growing == 0.0) continue;
    growing_links_.push_back(index);
    const double current = share(left_[index]);
    candidates_.add(
        {as_expected ? std::max(current, links_[index].expected_level) : current, index, false});
    if (has_caps_) add_caps_of_members(index);
  }
  candidates_.order();
}

// The last checkpoint that is kept, or the beginning.
void FlowNetwork::go_back_to_checkpoint(Component& component) {
  Filling& filling = component.filling;
  filling.stopped.resize(std::max(filling.stopped.size(), component.paths + 1));
  if (filling.kept == 0) {
    filling.stops.clear();
    filling.mark = ++stop_mark_;
    for (const LinkIndex index : component.links)
      left_[index] = {links_[index].capacity, links_[index].flows};
    return;
  }
  const Checkpoint& checkpoint = filling.checkpoints[filling.kept - 1];
  const std::size_t stopped_after = filling.stopped_count();
  filling.stops.resize(checkpoint.stops);
  for (std::size_t i = filling.stopped_count(); i < stopped_after; ++i)
    stop_marks_[filling.stopped[i]] = 0;
  for (std::size_t place = 0; place < component.links.size(); ++place)
    left_[component.links[place]] = checkpoint.left[place];
}

void FlowNetwork::add_caps_of_members(LinkIndex link) {
  for (const Member& member : links_[link].members) {
    const double cap = caps_[member.path];
    const bool is_first_hop = member.hop == paths_[member.path].first_hop;
    if (is_first_hop && cap < kInfinity) candidates_.add({cap, member.path, true});
  }
}

// False if a link came too late.
bool FlowNetwork::fill_to_the_end(Component& component, bool as_expected) {
  Filling& filling = component.filling;
  const std::size_t paths_apart =
      std::max(component.paths / kMostCheckpoints,
               component.links.size() * kHopsForACopy * component.paths / component.hops);
  std::size_t next_checkpoint = filling.stopped_count() + paths_apart;
  double level = filling.kept == 0 ? 0.0 : filling.checkpoints[filling.kept - 1].level;
  while (filling.stopped_count() < component.paths) {
    if (filling.stopped_count() >= next_checkpoint) {
      add_checkpoint(component, level);
      next_checkpoint = filling.stopped_count() + paths_apart;
    }
    const LevelCandidate next = candidates_.least();
    if (next.is_path) {
      candidates_.drop_least();
      if (stop_marks_[next.id] == filling.mark) continue;
      level = std::max(level, next.level);
      stop_at_cap(filling, next.id, level);
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
    if (as_expected && current < level * (1.0 - kTie)) return false;
    candidates_.drop_least();
    if (current > level * (1.0 + kTie)) level = current;
    links_[next.id].expected_level = level * (1.0 - kMargin);
    stop_members(filling, next.id, level);
  }
  for (const LevelCandidate& rest : candidates_.candidates()) {
    if (!rest.is_path) links_[rest.id].expected_level = level * (1.0 - kMargin);
  }
  return true;
}

void FlowNetwork::add_checkpoint(Component& component, double level) {
  Filling& filling = component.filling;
  if (filling.kept == filling.checkpoints.size()) filling.checkpoints.emplace_back();
  has_checkpoints_ = true;
  Checkpoint& checkpoint = filling.checkpoints[filling.kept++];
  checkpoint.level = level;
  checkpoint.stops = filling.stops.size();
  checkpoint.left.resize(component.links.size());
  for (std::size_t place = 0; place < component.links.size(); ++place)
    checkpoint.left[place] = left_[component.links[place]];
}

bool FlowNetwork::is_any_overbooked() const {
  return std::any_of(growing_links_.begin(), growing_links_.end(), [&](LinkIndex link) {
    return left_[link].capacity < -kAccept * links_[link].capacity;
  });
}

void FlowNetwork::stop_members(Filling& filling, LinkIndex link, double level) {
  const std::size_t first = filling.stopped_count();
  // This has no branch, which would be unpredictable: the next path overwrites one that has stopped
  // before.
  std::size_t count = first;
  const std::uint32_t mark = filling.mark;
  for (const Member& member : links_[link].members) {
    filling.stopped[count] = member.path;
    count += stop_marks_[member.path] == mark ? 0 : 1;
  }
  for (std::size_t i = first; i < count; ++i) {
    stop_marks_[filling.stopped[i]] = mark;
    take_from_route(filling.stopped[i], level, link);
  }
  // The link takes them in one go: path after path, each would wait for the one before.
  left_[link] = {left_[link].capacity - level * left_[link].growing, 0.0};
  filling.stops.push_back({link, level, count});
}

void FlowNetwork::stop_at_cap(Filling& filling, PathIndex path, double level) {
  const std::size_t at = filling.stopped_count();
  stop_marks_[path] = filling.mark;
  take_from_route(path, level, kOwnCap);
  filling.stopped[at] = path;
  filling.stops.push_back({kOwnCap, level, at + 1});
}

// Takes the path's share from the links of its route, other than its bottleneck.
void FlowNetwork::take_from_route(PathIndex index, double level, LinkIndex bottleneck) {
  const Path& path = paths_[index];
  const double flows = path.flows;
  const double load = level * flows;
  for (const LinkIndex link : route(path)) {
    if (link == bottleneck) continue;
    left_[link].capacity -= load;
    left_[link].growing -= flows;
  }
}

// Commits the stops that the filling made anew.
void FlowNetwork::commit_component(const Filling& filling, std::size_t first_stop) {
  for (const LinkIndex link : growing_links_)
    links_[link].load = links_[link].capacity - left_[link].capacity;
  std::size_t first = first_stop == 0 ? 0 : filling.stops[first_stop - 1].end;
  for (std::size_t i = first_stop; i < filling.stops.size(); ++i) {
    const Stop& stop = filling.stops[i];
    if (stop.bottleneck != kOwnCap) set_level(stop.bottleneck, stop.level);
    for (; first < stop.end; ++first) set_rate(filling.stopped[first], stop.level, stop.bottleneck);
  }
}

}  // namespace shardwright::sim
