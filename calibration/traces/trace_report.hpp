// A trace in figures: steps, where the time of the devices went, kernels, collectives, gaps.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calibration/traces/trace.hpp"
#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

struct StepReport {
  std::int64_t number = 0;
  // As the host marks it, from the beginning of the trace until the next one begins. The host runs
  // ahead of the device, so that this is not what a step takes.
  Seconds start, duration;
  // The kernels that were launched in it, and the time during which any of its activities ran.
  std::int64_t kernels = 0;
  Seconds busy{};
};

// Kernels of one name.
struct KernelReport {
  std::string name;
  // The operator that launched most of them; empty if it is not known.
  std::string op;
  KernelCategory category = KernelCategory::Other;
  std::int64_t count = 0;
  Seconds total{}, median{};
  // The durations of the calls, from which medians over several traces are taken.
  std::vector<Seconds> times{};
};

// Collectives of one kind and size in one group.
struct CollectiveReport {
  std::string kind;
  std::optional<std::int64_t> bytes, group_size;
  // The description of the process group, or else its name; empty if it is not known.
  std::string group;
  std::int64_t count = 0;
  Seconds total, median;
  // By the median time, which holds the wait for the last rank. None where bytes or group are not
  // known.
  std::optional<BytesPerSecond> bus_bandwidth;
  // The durations of the calls, from which medians over several traces are taken.
  std::vector<Seconds> times{};
};

// The collectives of one group.
struct GroupReport {
  std::string group;
  std::optional<std::int64_t> group_size;
  // During which any of them ran, and during which no other kernel did.
  Seconds busy, exposed;
};

// Sums over the devices of the trace; each term is the union over the streams of one device.
struct BusyTimes {
  // From the first activity to the last one's end.
  Seconds window;
  Seconds busy;
  // Kernels that are no collectives; copies and fills are neither.
  Seconds compute;
  Seconds collective;
  // Collectives while no other kernel runs.
  Seconds exposed_collective;
  // Idle times whose next activity the host had not launched when they began.
  Seconds host_bound_gaps;
  std::int64_t gaps = 0;
  // The longest gap of all kinds.
  Seconds longest_gap;
};

struct TraceReport {
  std::string file;
  // Empty if it is not known.
  std::string gpu;
  std::optional<std::int64_t> rank, world_size;
  std::int64_t devices = 0, kernels = 0, kernels_without_op = 0, unusable_events = 0;
  // What the recording lacks (Trace::gaps).
  std::vector<std::string> gaps{};
  std::vector<StepReport> steps;
  // The mean of the device's steps, whose number follows with that of the pauses between them
  // (usual_step of device_steps.hpp). None without steps.
  std::optional<Seconds> step;
  std::int64_t timed_steps = 0, pauses = 0;
  BusyTimes times;
  // Sums of durations.
  EnumArray<KernelCategory, Seconds> by_category;
  // The part of these sums that kernels of the optimizer's step took, without collectives. They are
  // the kernels that were launched within its annotation or, where the trace has no annotation or
  // no launches, those with its names.
  Seconds optimizer{};
  // By total time, longest first.
  std::vector<KernelReport> by_kernel;
  std::vector<CollectiveReport> collectives;
  std::vector<GroupReport> groups;
};

Seconds from_ns(std::int64_t nanoseconds);
// The middle one, or the mean of the middle two. At least one.
Seconds median_of(std::vector<Seconds> times);

// Sets the medians, and the bus bandwidth by that of a collective, from the times of the calls. At
// least one call.
void set_median(KernelReport& kernel);
void set_median(CollectiveReport& collective);

// The kind of a collective from its call or else from its kernel; "unknown" if neither tells.
std::string kind_of_collective(const Trace& trace, const DeviceActivity& activity);

// Of activities of one device, in any order.
BusyTimes busy_times_of(Activities activities);

TraceReport report_of(const Trace& trace);

nlohmann::ordered_json to_json(const TraceReport& report);

}  // namespace shardwright::calibration
