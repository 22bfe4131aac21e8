#include "sim/network/flow_network.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace shardwright::sim {
namespace {

// A region is tried again only now and then after fillings in a row: at first soon, at last once in
// this many changes.
constexpr std::uint32_t kMostFillsAhead = 63;

}  // namespace

FlowNetwork::FlowNetwork(std::vector<BytesPerSecond> capacities)
    : links_(capacities.size()),
      component_of_(capacities.size(), kNone),
      place_of_(capacities.size(), 0),
      left_(capacities.size()),
      region_links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    SHARDWRIGHT_CHECK(capacities[i].value() > 0.0, "a link has no capacity");
    links_[i].capacity = capacities[i].value();
  }
}

PathIndex FlowNetwork::add_path(std::span<const LinkIndex> route, BytesPerSecond rate_cap) {
  SHARDWRIGHT_CHECK(!route.empty() || rate_cap < infinite<BytesPerSecond>(),
                    "a path has neither links nor a cap");
  for (const LinkIndex link : route)
    SHARDWRIGHT_CHECK(link < links_.size(), "a route names a link that is not there");
  Path path;
  path.first_hop = static_cast<std::uint32_t>(hop_links_.size());
  path.hops = static_cast<std::uint32_t>(route.size());
  hop_links_.insert(hop_links_.end(), route.begin(), route.end());
  hop_positions_.resize(hop_links_.size(), 0);
  paths_.push_back(path);
  caps_.push_back(rate_cap.value());
  has_caps_ = has_caps_ || rate_cap < infinite<BytesPerSecond>();
  is_changed_.push_back(false);
  region_paths_.emplace_back();
  stop_marks_.push_back(0);
  connect(route);
  return static_cast<PathIndex>(paths_.size() - 1);
}

// Makes one component of those that the route passes: the smaller ones go into the largest.
void FlowNetwork::connect(std::span<const LinkIndex> route) {
  std::uint32_t into = kNone;
  for (const LinkIndex link : route) {
    if (component_of_[link] == kNone) {
      component_of_[link] = static_cast<std::uint32_t>(components_.size());
      components_.emplace_back().links.push_back(link);
    }
    const std::uint32_t component = component_of_[link];
    if (into == kNone || components_[component].links.size() > components_[into].links.size())
      into = component;
  }
  for (const LinkIndex link : route) {
    if (component_of_[link] == into) continue;
    Component& from = components_[component_of_[link]];
    Component& to = components_[into];
    for (const LinkIndex moved : from.links) {
      component_of_[moved] = into;
      place_of_[moved] = static_cast<std::uint32_t>(to.links.size());
      to.links.push_back(moved);
    }
    to.paths += from.paths;
    to.hops += from.hops;
    to.filling.kept = 0;
    from = Component{};
  }
}

void FlowNetwork::add_flows(PathIndex path, std::uint32_t flows) {
  paths_[path].flows_asked += flows;
  note_change(path);
}

void FlowNetwork::remove_flows(PathIndex path, std::uint32_t flows) {
  SHARDWRIGHT_CHECK(flows <= paths_[path].flows_asked, "more flows leave a path than it has");
  paths_[path].flows_asked -= flows;
  note_change(path);
}

void FlowNetwork::note_change(PathIndex path) {
  if (is_changed_[path]) return;
  is_changed_[path] = true;
  changed_.push_back(path);
}

std::span<const PathIndex> FlowNetwork::resolve() {
  changed_rates_.clear();
  moved_paths_.clear();
  changed_levels_.clear();
  settle_changes();
  for (const std::uint32_t index : waiting_) {
    Component& component = components_[index];
    solve(component);
    component.changed.clear();
    component.relieved.clear();
    component.waits = false;
  }
  waiting_.clear();
  return changed_rates_;
}

// Brings membership, flow counts and loads up to date at the old rates, and hands what is to be
// solved to the components.
void FlowNetwork::settle_changes() {
  for (const PathIndex index : changed_) {
    is_changed_[index] = false;
    if (paths_[index].flows_asked != paths_[index].flows) settle_flows(index);
  }
  for (const PathIndex index : changed_) {
    const Path& path = paths_[index];
    if (path.flows > 0.0 && !settle_alone(index))
      waiting_component(route(path).front()).changed.push_back(index);
  }
  changed_.clear();
}

void FlowNetwork::settle_flows(PathIndex index) {
  Path& path = paths_[index];
  if (path.flows == 0.0) join_links(index);
  const double more = path.flows_asked - path.flows;
  if (has_checkpoints_) keep_checkpoints(index, more);
  const double more_load = more * path.rate;
  for (const LinkIndex hop : route(path)) {
    Link& link = links_[hop];
    link.flows += more;
    link.load = link.flows == 0.0 ? 0.0 : link.load + more_load;
    if (more > 0.0) link.expected_level = 0.0;
    if (more_load < 0.0 && link.flows > 0.0) waiting_component(hop).relieved.push_back(hop);
  }
  path.flows = path.flows_asked;
  if (path.flows == 0.0) leave_links(index);
}

FlowNetwork::Component& FlowNetwork::waiting_component(LinkIndex link) {
  const std::uint32_t index = component_of_[link];
  Component& component = components_[index];
  if (!component.waits) waiting_.push_back(index);
  component.waits = true;
  return component;
}

void FlowNetwork::join_links(PathIndex index) {
  const Path& path = paths_[index];
  for (std::uint32_t hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    auto& members = links_[hop_links_[hop]].members;
    hop_positions_[hop] = static_cast<std::uint32_t>(members.size());
    members.push_back({index, hop});
  }
  if (path.hops == 0) return;
  Component& component = components_[component_of_[route(path).front()]];
  ++component.paths;
  component.hops += path.hops;
}

void FlowNetwork::leave_links(PathIndex index) {
  Path& path = paths_[index];
  for (std::uint32_t hop = path.first_hop; hop < path.first_hop + path.hops; ++hop) {
    auto& members = links_[hop_links_[hop]].members;
    hop_positions_[members.back().hop] = hop_positions_[hop];
    members[hop_positions_[hop]] = members.back();
    members.pop_back();
  }
  path.rate = 0.0;
  path.bottleneck = kNone;
  if (path.hops == 0) return;
  Component& component = components_[component_of_[route(path).front()]];
  --component.paths;
  component.hops -= path.hops;
}

// A path that shares no link needs no solving. False if it shares one.
bool FlowNetwork::settle_alone(PathIndex index) {
  const Path& path = paths_[index];
  double rate = caps_[index];
  LinkIndex bottleneck = kOwnCap;
  for (const LinkIndex hop : route(path)) {
    const Link& link = links_[hop];
    if (link.members.size() > 1) return false;
    const double most = link.capacity / path.flows;
    if (most < rate) {
      rate = most;
      bottleneck = hop;
    }
  }
  for (const LinkIndex hop : route(path)) links_[hop].load = rate * path.flows;
  if (bottleneck != kOwnCap) set_level(bottleneck, rate);
  set_rate(index, rate, bottleneck);
  return true;
}

void FlowNetwork::solve(Component& component) {
  if (component.fills_ahead > 0) {
    --component.fills_ahead;
    fill_component(component);
  } else if (solve_region(component)) {
    component.last_fills_ahead /= 2;
    component.filling.kept = 0;
  } else {
    component.last_fills_ahead = std::min(2 * component.last_fills_ahead + 1, kMostFillsAhead);
    component.fills_ahead = component.last_fills_ahead;
    fill_component(component);
  }
}

}  // namespace shardwright::sim
