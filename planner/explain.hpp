// The bottleneck of a plan, and the gain from more of each resource.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/scenario.hpp"
#include "core/spec/stack_spec.hpp"
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

constexpr auto enum_names(Resource) {
  return std::array{"peak FLOP/s",           "HBM bandwidth", "HBM capacity", "scale-up bandwidth",
                    "inter-node bandwidth",  "latency",       "host speed",   "host link bandwidth",
                    "host memory bandwidth", "disk bandwidth"};
}
using shardwright::name_of;

// Returns the cluster with `gain` (0.1: 10 %) more of a resource; latencies are divided by 1 +
// gain. The parts of measured curves (core/spec/cost_curve.hpp) that depend on the resource change
// with it: the speed of the host sets the overhead of kernels. The lateness of the members of a
// collective stays.
ClusterSpec improved(const ClusterSpec& cluster, Resource resource, double gain);

struct Sensitivity {
  Resource resource = Resource::PeakFlops;
  // The step time with more of the resource.
  Seconds step;
  // The gain of throughput: old step / new step - 1.
  double gain = 0.0;
  // For memory capacity the variant of the plan that then fits; otherwise empty.
  std::string through;
};

// The uses of a step's time, by what would shorten them.
enum class TimeUse : std::uint8_t {
  Compute,        // GEMMs and attention: more FLOP/s
  MemoryBound,    // other kernels and the optimizer: more memory bandwidth
  Interference,   // slowdown of kernels by concurrent collectives: less communication
  Communication,  // exposed communication of all axes: a faster network
  Offload,        // copies to the host: a faster link to it
  Bubble,         // waiting for other stages: a better schedule
  Host,           // waiting for the host: a faster one
  Stall,          // waiting for slower ranks: repairing them
};

constexpr auto enum_names(TimeUse) {
  return std::array{"GEMMs and attention",
                    "memory-bound kernels",
                    "slowdown of kernels by concurrent collectives",
                    "exposed communication",
                    "copies to the host",
                    "the pipeline bubble",
                    "waiting for the host",
                    "waiting for slower ranks"};
}

TimeUse use_of(sim::StepPart part);

// A use of the step's time on the bottleneck stage.
struct TimeShare {
  TimeUse use = TimeUse::Compute;
  // The part of the step that it takes.
  double share = 0.0;
  // The largest of several parts of the use; none if only one takes time.
  std::optional<sim::StepPart> mainly;
  // The share of that part in the step.
  double mainly_share = 0.0;
};

// Largest first.
std::vector<TimeShare> time_shares(const sim::StepResult& result);

struct Explanation {
  sim::StepResult result;
  std::vector<TimeShare> shares;
  // In the order of `Resource`.
  std::vector<Sensitivity> sensitivities;
  // The gain of each resource that was tried: 0.1 is 10 %.
  double gain = 0.0;
  // True if the explanation was stopped, so that sensitivities are missing.
  bool partial = false;
};

inline constexpr double kSensitivityStep = 0.1;

// Simulates the scenario again with more of each resource; the link to the host is varied only for
// plans that copy over it. More memory lets the plan recompute less or take larger microbatches:
// the variants that did not fit before are tried. Once `stop` is requested, no simulation continues
// but that of the scenario itself.
Explanation explain(const Scenario& scenario, double gain = kSensitivityStep,
                    const std::stop_token& stop = {});

// Explains a scenario that was simulated already, with `result`.
Explanation explain(const Scenario& scenario, const sim::StepResult& result, double gain,
                    const std::stop_token& stop);

struct PeakMoment {
  // "attention.qkv"
  std::string op;
  Phase phase = Phase::Forward;
  // -1 if the op belongs to no layer, or to no microbatch.
  std::int64_t layer = -1, microbatch = -1;
};

// Lowers the plan once more. `result` is that of the scenario; the moment is one of its fullest
// stage. None if no op runs at the peak.
std::optional<PeakMoment> peak_moment(const Scenario& scenario, const sim::StepResult& result);

// A peak above this share of the memory is worth a warning.
inline constexpr double kTightMemory = 0.95;

// The peak of the fullest stage, as a share of the accelerator's memory.
double memory_share(const sim::StepResult& result, const ClusterSpec& cluster);

struct FigureCounts {
  std::int64_t all = 0;
  // Figures of confidence `Assumed`, without a measurement.
  std::int64_t estimates = 0;
};

// Counts the figures that name a source, of the cluster with its parts and of the stack.
FigureCounts figure_counts(const ClusterSpec& cluster, const StackSpec& stack);

}  // namespace shardwright::planner
