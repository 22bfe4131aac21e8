#include "calibration/traces/trace_report.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/intervals.hpp"
#include "calibration/traces/kernel_calls.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::calibration {
namespace {

using nlohmann::ordered_json;

// Chooses the activities of a union.
using Choice = bool (*)(const DeviceActivity&);
bool is_any(const DeviceActivity&) {
  return true;
}
bool is_collective(const DeviceActivity& activity) {
  return activity.category == KernelCategory::Collective;
}
bool is_compute(const DeviceActivity& activity) {
  return activity.kind == ActivityKind::Kernel && !is_collective(activity);
}

IntervalUnion union_of_chosen(const Activities& activities, Choice choice) {
  std::vector<Interval> intervals;
  for (const DeviceActivity* each : activities)
    if (choice(*each)) intervals.push_back({each->start, each->end()});
  return union_of(std::move(intervals));
}

std::map<std::int32_t, Activities> by_device(const Trace& trace) {
  std::map<std::int32_t, Activities> devices;
  for (const DeviceActivity& each : trace.activities) devices[each.device].push_back(&each);
  return devices;
}

// Idle times of a device, in the order of its activities' starts.
void add_gaps(BusyTimes& times, const Activities& activities) {
  std::int64_t busy_until = activities.front()->start;
  for (const DeviceActivity* next : activities) {
    if (next->start > busy_until) {
      const Seconds gap = from_ns(next->start - busy_until);
      ++times.gaps;
      times.longest_gap = std::max(times.longest_gap, gap);
      if (next->launched && *next->launched > busy_until) times.host_bound_gaps += gap;
    }
    busy_until = std::max(busy_until, next->end());
  }
  times.window += from_ns(busy_until - activities.front()->start);
}

void add_busy_times(BusyTimes& times, const Activities& activities) {
  const IntervalUnion compute = union_of_chosen(activities, is_compute);
  const IntervalUnion collective = union_of_chosen(activities, is_collective);
  times.busy += Seconds(seconds_of(union_of_chosen(activities, is_any)));
  times.compute += Seconds(seconds_of(compute));
  times.collective += Seconds(seconds_of(collective));
  times.exposed_collective += Seconds(seconds_of(difference(collective, compute)));
  add_gaps(times, activities);
}

std::vector<StepReport> step_reports(const Trace& trace) {
  std::vector<StepReport> steps;
  std::vector<std::map<std::int32_t, std::vector<Interval>>> busy(trace.steps.size());
  for (const TraceStep& each : trace.steps)
    steps.push_back({each.number, from_ns(each.start - trace.begin), from_ns(each.duration)});
  for (const DeviceActivity& each : trace.activities) {
    if (each.step == kNoIndex) continue;
    const auto step = static_cast<std::size_t>(each.step);
    if (each.kind == ActivityKind::Kernel) ++steps[step].kernels;
    busy[step][each.device].push_back({each.start, each.end()});
  }
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (auto& [device, intervals] : busy[i])
      steps[i].busy += Seconds(seconds_of(union_of(std::move(intervals))));
  return steps;
}

std::vector<KernelReport> kernel_reports(const Trace& trace) {
  struct Sum {
    std::vector<Seconds> times;
    std::map<TraceIndex, std::int64_t> ops;
    KernelCategory category = KernelCategory::Other;
  };
  // In the order of names' first occurrence, which is that of the file.
  std::map<TraceIndex, Sum> sums;
  for (const DeviceActivity& each : trace.activities) {
    if (each.kind != ActivityKind::Kernel) continue;
    Sum& sum = sums[each.name];
    sum.times.push_back(from_ns(each.duration));
    sum.category = each.category;
    if (each.op != kNoIndex) ++sum.ops[each.op];
  }
  std::vector<KernelReport> kernels;
  for (auto& [name, sum] : sums) {
    KernelReport kernel{trace.names[name], "", sum.category,
                        static_cast<std::int64_t>(sum.times.size())};
    const auto op =
        std::max_element(sum.ops.begin(), sum.ops.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (op != sum.ops.end()) kernel.op = trace.names[op->first];
    for (const Seconds time : sum.times) kernel.total += time;
    kernel.times = std::move(sum.times);
    set_median(kernel);
    kernels.push_back(std::move(kernel));
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelReport& a, const KernelReport& b) { return a.total > b.total; });
  return kernels;
}

// Names are many times fewer than activities.
class OptimizerKernels {
 public:
  explicit OptimizerKernels(const Trace& trace) : trace_(trace) {}

  bool has(const DeviceActivity& activity) {
    if (activity.kind != ActivityKind::Kernel || is_collective(activity)) return false;
    if (trace_.marks_optimizer && activity.launched) return activity.optimizes;
    if (is_product(activity.category)) return false;
    const auto [known, is_new] = by_name_.try_emplace({activity.name, activity.op}, false);
    if (is_new)
      known->second = memory_bound_kind(trace_.names[activity.name],
                                        activity.op == kNoIndex ? "" : trace_.names[activity.op]) ==
                      OpKind::Optimizer;
    return known->second;
  }

 private:
  static bool is_product(KernelCategory category) {
    return category == KernelCategory::Gemm || category == KernelCategory::Attention;
  }

  const Trace& trace_;
  std::map<std::pair<TraceIndex, TraceIndex>, bool> by_name_;
};

const CollectiveCall& call_of(const Trace& trace, const DeviceActivity& activity) {
  static const CollectiveCall kUnknown;
  return activity.collective == kNoIndex
             ? kUnknown
             : trace.collectives[static_cast<std::size_t>(activity.collective)];
}

const std::string& group_of(const CollectiveCall& call) {
  return call.description.empty() ? call.group : call.description;
}

std::optional<BytesPerSecond> bus_bandwidth(const CollectiveReport& collective) {
  if (!collective.bytes || !collective.group_size || collective.median <= Seconds(0.0))
    return std::nullopt;
  const double factor = bus_factor(collective.kind, static_cast<double>(*collective.group_size));
  return Bytes(static_cast<double>(*collective.bytes) * factor) / collective.median;
}

std::vector<CollectiveReport> collective_reports(const Trace& trace) {
  using Key = std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>,
                         std::string>;
  std::map<Key, std::vector<Seconds>> times;
  for (const DeviceActivity& each : trace.activities) {
    if (!is_collective(each)) continue;
    const CollectiveCall& call = call_of(trace, each);
    times[{kind_of_collective(trace, each), call.bytes, call.group_size, group_of(call)}].push_back(
        from_ns(each.duration));
  }
  std::vector<CollectiveReport> reports;
  for (auto& [key, durations] : times) {
    CollectiveReport report;
    std::tie(report.kind, report.bytes, report.group_size, report.group) = key;
    report.count = static_cast<std::int64_t>(durations.size());
    for (const Seconds time : durations) report.total += time;
    report.times = std::move(durations);
    set_median(report);
    reports.push_back(std::move(report));
  }
  std::stable_sort(
      reports.begin(), reports.end(),
      [](const CollectiveReport& a, const CollectiveReport& b) { return a.total > b.total; });
  return reports;
}

std::vector<GroupReport> group_reports(const Trace& trace,
                                       const std::map<std::int32_t, Activities>& devices) {
  using Key = std::pair<std::string, std::optional<std::int64_t>>;
  std::map<Key, GroupReport> groups;
  for (const auto& [device, activities] : devices) {
    const IntervalUnion compute = union_of_chosen(activities, is_compute);
    std::map<Key, std::vector<Interval>> intervals;
    for (const DeviceActivity* each : activities) {
      if (!is_collective(*each)) continue;
      const CollectiveCall& call = call_of(trace, *each);
      intervals[{group_of(call), call.group_size}].push_back({each->start, each->end()});
    }
    for (auto& [key, times] : intervals) {
      const IntervalUnion busy = union_of(std::move(times));
      GroupReport& group = groups[key];
      std::tie(group.group, group.group_size) = key;
      group.busy += Seconds(seconds_of(busy));
      group.exposed += Seconds(seconds_of(difference(busy, compute)));
    }
  }
  std::vector<GroupReport> reports;
  for (auto& [key, group] : groups) reports.push_back(std::move(group));
  return reports;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(printable(text));
}

ordered_json to_json(const StepReport& step) {
  return {{"number", step.number},
          {"start_s", step.start.value()},
          {"duration_s", step.duration.value()},
          {"kernels", step.kernels},
          {"busy_s", step.busy.value()}};
}

ordered_json to_json(const KernelReport& kernel) {
  return {{"name", printable(kernel.name)},  {"category", name_of(kernel.category)},
          {"op", or_null(kernel.op)},        {"count", kernel.count},
          {"total_s", kernel.total.value()}, {"median_s", kernel.median.value()}};
}

ordered_json to_json(const CollectiveReport& collective) {
  return {{"kind", collective.kind},
          {"bytes", or_null(collective.bytes)},
          {"group_size", or_null(collective.group_size)},
          {"group", or_null(collective.group)},
          {"count", collective.count},
          {"total_s", collective.total.value()},
          {"median_s", collective.median.value()},
          {"bus_bandwidth_bytes_per_s",
           collective.bus_bandwidth ? ordered_json(collective.bus_bandwidth->value()) : nullptr}};
}

ordered_json to_json(const GroupReport& group) {
  return {{"group", or_null(group.group)},
          {"group_size", or_null(group.group_size)},
          {"busy_s", group.busy.value()},
          {"exposed_s", group.exposed.value()}};
}

template <class Reports>
ordered_json array_of(const Reports& reports) {
  ordered_json array = ordered_json::array();
  for (const auto& each : reports) array.push_back(to_json(each));
  return array;
}

}  // namespace

Seconds from_ns(std::int64_t nanoseconds) {
  return Seconds(static_cast<double>(nanoseconds) * 1e-9);
}

Seconds median_of(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2.0;
}

void set_median(KernelReport& kernel) {
  kernel.median = median_of(kernel.times);
}

void set_median(CollectiveReport& collective) {
  collective.median = median_of(collective.times);
  collective.bus_bandwidth = bus_bandwidth(collective);
}

std::string kind_of_collective(const Trace& trace, const DeviceActivity& activity) {
  std::string kind = call_of(trace, activity).kind;
  if (kind.empty()) kind = collective_kind(trace.names[activity.name]);
  return kind.empty() ? "unknown" : kind;
}

BusyTimes busy_times_of(Activities activities) {
  std::stable_sort(
      activities.begin(), activities.end(),
      [](const DeviceActivity* a, const DeviceActivity* b) { return a->start < b->start; });
  BusyTimes times;
  if (!activities.empty()) add_busy_times(times, activities);
  return times;
}

TraceReport report_of(const Trace& trace) {
  const std::map<std::int32_t, Activities> devices = by_device(trace);
  TraceReport report;
  report.file = trace.file;
  report.gpu = trace.gpu;
  report.rank = trace.rank;
  report.world_size = trace.world_size;
  report.devices = static_cast<std::int64_t>(devices.size());
  report.unusable_events = trace.unusable_events;
  report.gaps = trace.gaps;
  OptimizerKernels optimizer(trace);
  for (const DeviceActivity& each : trace.activities) {
    report.by_category[each.category] += from_ns(each.duration);
    if (optimizer.has(each)) report.optimizer += from_ns(each.duration);
    if (each.kind != ActivityKind::Kernel) continue;
    ++report.kernels;
    if (each.op == kNoIndex) ++report.kernels_without_op;
  }
  report.steps = step_reports(trace);
  if (const auto step = usual_step(trace)) {
    report.step = step->time;
    report.timed_steps = step->steps;
    report.pauses = step->pauses;
  }
  for (const auto& [device, activities] : devices) add_busy_times(report.times, activities);
  report.by_kernel = kernel_reports(trace);
  report.collectives = collective_reports(trace);
  report.groups = group_reports(trace, devices);
  return report;
}

ordered_json to_json(const TraceReport& report) {
  ordered_json time;
  for (const KernelCategory category : enumerators<KernelCategory>())
    time[std::string(name_of(category)) + "_s"] = report.by_category[category].value();
  time["optimizer_s"] = report.optimizer.value();
  return {{"path", printable(report.file)},
          {"gpu", or_null(report.gpu)},
          {"rank", or_null(report.rank)},
          {"world_size", or_null(report.world_size)},
          {"devices", report.devices},
          {"kernels", report.kernels},
          {"kernels_without_op", report.kernels_without_op},
          {"unusable_events", report.unusable_events},
          {"gaps", report.gaps},
          {"step_s", report.step ? ordered_json(report.step->value()) : nullptr},
          {"steps", array_of(report.steps)},
          {"window_s", report.times.window.value()},
          {"busy_s", report.times.busy.value()},
          {"compute_busy_s", report.times.compute.value()},
          {"collective_busy_s", report.times.collective.value()},
          {"exposed_collective_s", report.times.exposed_collective.value()},
          {"host_bound_gap_s", report.times.host_bound_gaps.value()},
          {"longest_gap_s", report.times.longest_gap.value()},
          {"time", std::move(time)},
          {"collectives", array_of(report.collectives)},
          {"groups", array_of(report.groups)},
          {"by_kernel", array_of(report.by_kernel)}};
}

}  // namespace shardwright::calibration
