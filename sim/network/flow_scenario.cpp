#include "sim/network/flow_scenario.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright::sim {

LinkIndex FlowScenario::add_link(std::string id, BytesPerSecond bandwidth, Seconds latency) {
  SHARDWRIGHT_CHECK(bandwidth.value() > 0.0 && std::isfinite(bandwidth.value()),
                    "a link has no finite bandwidth above zero");
  SHARDWRIGHT_CHECK(latency.value() >= 0.0 && std::isfinite(latency.value()),
                    "a link has no finite latency of zero or more");
  links_.push_back({std::move(id), bandwidth, latency});
  return static_cast<LinkIndex>(links_.size() - 1);
}

FlowIndex FlowScenario::add_flow(std::string id, Bytes bytes, std::span<const LinkIndex> route,
                                 Seconds start) {
  SHARDWRIGHT_CHECK(bytes.value() >= 0.0 && std::isfinite(bytes.value()),
                    "a flow has no finite size of zero or more");
  SHARDWRIGHT_CHECK(start.value() >= 0.0 && std::isfinite(start.value()),
                    "a flow has no finite start of zero or more");
  for (const LinkIndex link : route)
    SHARDWRIGHT_CHECK(link < links_.size(), "a route names a link that is not there");
  ids_.push_back(std::move(id));
  bytes_.push_back(bytes);
  starts_.push_back(start);
  routes_.insert(routes_.end(), route.begin(), route.end());
  route_ends_.push_back(routes_.size());
  after_ends_.push_back(after_.size());
  return static_cast<FlowIndex>(bytes_.size() - 1);
}

FlowIndex FlowScenario::add_flow_after(std::string id, Bytes bytes,
                                       std::span<const LinkIndex> route,
                                       std::span<const FlowIndex> after) {
  const FlowIndex flow = add_flow(std::move(id), bytes, route, Seconds(0.0));
  after_.insert(after_.end(), after.begin(), after.end());
  after_ends_.back() = after_.size();
  return flow;
}

// Depth-first with a stack of its own: chains of a million flows are ordinary.
std::vector<FlowIndex> find_dependency_cycle(const FlowScenario& scenario) {
  enum class Mark : std::uint8_t { New, OnStack, Done };
  std::vector<Mark> marks(scenario.flow_count(), Mark::New);
  // Flows with the part of their lists that was followed.
  std::vector<std::pair<FlowIndex, std::size_t>> stack;
  for (FlowIndex root = 0; root < marks.size(); ++root) {
    if (marks[root] != Mark::New) continue;
    stack.emplace_back(root, 0);
    marks[root] = Mark::OnStack;
    while (!stack.empty()) {
      auto& [flow, next] = stack.back();
      if (next == scenario.after(flow).size()) {
        marks[flow] = Mark::Done;
        stack.pop_back();
        continue;
      }
      const FlowIndex other = scenario.after(flow)[next++];
      if (marks[other] == Mark::New) {
        marks[other] = Mark::OnStack;
        stack.emplace_back(other, 0);
      } else if (marks[other] == Mark::OnStack) {
        std::vector<FlowIndex> cycle;
        for (const auto& entry : stack) cycle.push_back(entry.first);
        cycle.erase(cycle.begin(), std::find(cycle.begin(), cycle.end(), other));
        return cycle;
      }
    }
  }
  return {};
}

}  // namespace shardwright::sim
