// The input of a flow simulation: links, and flows over them that start at a time or after others.
//
// It is held in flat arrays, so that scenarios of millions of flows stay cheap to build and to
// walk.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "sim/network/link.hpp"

namespace shardwright::sim {

// Flows are numbered from zero in the order in which they were added.
using FlowIndex = std::uint32_t;

// One direction of a cable.
struct ScenarioLink {
  std::string id;
  BytesPerSecond bandwidth;
  Seconds latency;
};

class FlowScenario {
 public:
  // Bandwidth above zero, latency not below it.
  LinkIndex add_link(std::string id, BytesPerSecond bandwidth, Seconds latency);
  // A flow that starts at a time. The links of a route are known already and differ.
  FlowIndex add_flow(std::string id, Bytes bytes, std::span<const LinkIndex> route, Seconds start);
  // A flow that starts as soon as all flows of `after` have finished; at zero if there is none.
  // `after` may name flows that are added later.
  FlowIndex add_flow_after(std::string id, Bytes bytes, std::span<const LinkIndex> route,
                           std::span<const FlowIndex> after);

  const std::vector<ScenarioLink>& links() const { return links_; }
  std::size_t flow_count() const { return bytes_.size(); }
  const std::string& id(FlowIndex flow) const { return ids_[flow]; }
  Bytes bytes(FlowIndex flow) const { return bytes_[flow]; }
  Seconds start(FlowIndex flow) const { return starts_[flow]; }
  std::span<const LinkIndex> route(FlowIndex flow) const {
    return slice(routes_, route_ends_, flow);
  }
  std::span<const FlowIndex> after(FlowIndex flow) const {
    return slice(after_, after_ends_, flow);
  }

 private:
  static std::span<const std::uint32_t> slice(const std::vector<std::uint32_t>& values,
                                              const std::vector<std::size_t>& ends,
                                              FlowIndex flow) {
    const std::size_t begin = flow == 0 ? 0 : ends[flow - 1];
    return {values.data() + begin, ends[flow] - begin};
  }

  std::vector<ScenarioLink> links_;
  std::vector<std::string> ids_;
  std::vector<Bytes> bytes_;
  std::vector<Seconds> starts_;
  std::vector<LinkIndex> routes_;
  std::vector<std::size_t> route_ends_;
  std::vector<FlowIndex> after_;
  std::vector<std::size_t> after_ends_;
};

// Flows that wait for each other in a circle, each for the one that follows it and the last for the
// first; empty if there is no such circle.
std::vector<FlowIndex> find_dependency_cycle(const FlowScenario& scenario);

}  // namespace shardwright::sim
