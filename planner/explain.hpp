// What limits a plan, and what more of each resource would bring.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

enum class Resource : std::uint8_t {
  PeakFlops,
  MemoryBandwidth,
  MemoryCapacity,
  ScaleUpBandwidth,   // NVLink
  ScaleOutBandwidth,  // between nodes
  Latency,            // of every link
  HostSpeed,
  HostLinkBandwidth,  // between an accelerator and its host
  HostMemoryBandwidth,
  DiskBandwidth,  // of a node's NVMe disks
};

// "peak FLOP/s", "HBM bandwidth", …
const char* name_of(Resource resource);

// The same cluster with `gain` (0.1: 10 %) more of a resource; latencies are divided by 1 + gain.
// So are the parts of measured curves (core/spec/cost_curve.hpp) that the resource stands for: a
// host's speed sets the overhead of kernels, and how late members come to an exchange stays.
ClusterSpec improved(const ClusterSpec& cluster, Resource resource, double gain);

struct Sensitivity {
  Resource resource = Resource::PeakFlops;
  Seconds step;         // with more of the resource
  double gain = 0.0;    // of throughput: old step / new step - 1
  std::string through;  // for capacity: the variant of the plan that then fits, else empty
};

// What the bottleneck stage spends its step on, by what would shorten it: arithmetic, memory
// bandwidth, the network (all axes together), the link to the host, a better schedule, a faster
// host.
struct TimeShare {
  std::string what;           // "exposed communication", …
  double share = 0.0;         // of the step
  std::string mainly;         // its largest part ("dp"), empty where it has but one
  double mainly_share = 0.0;  // of the step
};

// Largest first.
std::vector<TimeShare> time_shares(const sim::StepResult& result);

struct Explanation {
  sim::StepResult result;
  std::vector<TimeShare> shares;
  std::vector<Sensitivity> sensitivities;  // in the order of `Resource`
  std::string limit;                       // one line: what limits this plan
  bool partial = false;                    // stopped: sensitivities are missing
};

inline constexpr double kSensitivityStep = 0.1;

// By re-simulation; the link to the host only for plans that copy over it. More memory lets the
// plan recompute less or take larger microbatches; those variants that did not fit before are
// tried. Once `stop` is requested no simulation goes on but that of the scenario itself.
Explanation explain(const Scenario& scenario, double gain = kSensitivityStep,
                    const std::stop_token& stop = {});

// The same of a scenario that is simulated already, with `result`.
Explanation explain(const Scenario& scenario, const sim::StepResult& result, double gain,
                    const std::stop_token& stop);

}  // namespace shardwright::planner
