#include "calibration/traces/trace_change.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

// Counts of kernels that differ by less are those of the same calls.
constexpr double kSameCount = 1.2;

bool is_of_operator(const DeviceActivity& activity) {
  return activity.op != kNoIndex && (activity.category == KernelCategory::Gemm ||
                                     activity.category == KernelCategory::Attention);
}

std::string change_name(const Trace& trace, const DeviceActivity& activity) {
  if (!is_of_operator(activity)) return trace.names[activity.name];
  const std::string& op = trace.names[activity.op];
  if (activity.shapes == kNoIndex) return op;
  // The sizes without the types behind them: "[[[64, 32], [32, 16]], ["c10::Half", …]]".
  const std::string& shapes = trace.names[activity.shapes];
  const std::size_t end = shapes.find_last_of(']', shapes.find('"'));
  return op + " " + shapes.substr(1, end);
}

struct StepSums {
  TracedStepTimes times;
  struct Kernel {
    KernelCategory category = KernelCategory::Other;
    double count = 0.0;
    Seconds time;
  };
  std::map<std::string, Kernel> kernels;
};

StepSums sums_of(const Trace& trace) {
  StepSums sums;
  // Names are made once for each kernel and operator.
  struct Key {
    TraceIndex name, op, shapes;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, StepSums::Kernel*> known;
  for (const DeviceStep& step : device_steps(trace)) {
    ++sums.times.steps;
    const Seconds length = from_ns(step.end - step.begin);
    const BusyTimes busy = busy_times_of(step.activities);
    sums.times.step += length;
    sums.times.exposed += busy.exposed_collective;
    sums.times.host_gaps += busy.host_bound_gaps;
    sums.times.other_gaps += std::max(Seconds(), length - busy.busy - busy.host_bound_gaps);
    for (const DeviceActivity* each : step.activities) {
      const bool of_op = is_of_operator(*each);
      StepSums::Kernel*& kernel = known[{of_op ? kNoIndex : each->name, of_op ? each->op : kNoIndex,
                                         of_op ? each->shapes : kNoIndex}];
      if (kernel == nullptr) kernel = &sums.kernels[change_name(trace, *each)];
      kernel->category = each->category;
      kernel->count += 1.0;
      kernel->time += from_ns(each->duration);
    }
  }
  const double share = 1.0 / std::max<double>(1.0, static_cast<double>(sums.times.steps));
  for (Seconds* each :
       {&sums.times.step, &sums.times.exposed, &sums.times.host_gaps, &sums.times.other_gaps})
    *each = *each * share;
  for (auto& [name, kernel] : sums.kernels) {
    kernel.count *= share;
    kernel.time = kernel.time * share;
  }
  return sums;
}

std::vector<KernelChange> changes_between(const StepSums& first, const StepSums& second) {
  std::map<std::string, KernelChange> changes;
  for (const auto& [name, kernel] : first.kernels) {
    KernelChange& change = changes[name];
    change = {name, kernel.category, kernel.count, 0.0, kernel.time, Seconds()};
  }
  for (const auto& [name, kernel] : second.kernels) {
    KernelChange& change = changes[name];
    change.name = name;
    change.category = kernel.category;
    change.second_count = kernel.count;
    change.second = kernel.time;
  }
  std::vector<KernelChange> list;
  for (auto& [name, change] : changes) list.push_back(std::move(change));
  std::stable_sort(list.begin(), list.end(), [](const KernelChange& a, const KernelChange& b) {
    return a.first + a.second > b.first + b.second;
  });
  return list;
}

DifferenceCause cause_of_change(const KernelChange& change) {
  if (change.first_count <= 0.0) return DifferenceCause::NotInPlan;
  if (change.second_count <= 0.0) return DifferenceCause::NotInTrace;
  if (change.second_count > kSameCount * change.first_count) return DifferenceCause::MissingFusion;
  if (change.first_count > kSameCount * change.second_count) return DifferenceCause::MoreFusion;
  return change.second > change.first ? DifferenceCause::SlowerKernel
                                      : DifferenceCause::FasterKernel;
}

std::vector<StepDifference> largest_changes(const TraceChange& change) {
  std::vector<StepDifference> differences;
  // Collectives count by what they make the step longer.
  for (const KernelChange& each : change.kernels)
    if (each.category != KernelCategory::Collective)
      differences.push_back({each.name, cause_of_change(each), each.first, each.second});
  const bool is_exposed = change.second.exposed > change.first.exposed;
  differences.push_back(
      {"communication",
       is_exposed ? DifferenceCause::ExposedCollective : DifferenceCause::HiddenCollective,
       change.first.exposed, change.second.exposed});
  differences.push_back({"waits for the host", DifferenceCause::HostBoundGap,
                         change.first.host_gaps, change.second.host_gaps});
  differences.push_back({"other idle times", DifferenceCause::OtherGap, change.first.other_gaps,
                         change.second.other_gaps});
  return largest_differences(std::move(differences),
                             std::max(change.first.step, change.second.step));
}

}  // namespace

std::optional<TraceChange> change_between(const Trace& first, const Trace& second) {
  const StepSums before = sums_of(first), after = sums_of(second);
  if (before.times.steps == 0 || after.times.steps == 0) return std::nullopt;
  TraceChange change{before.times, after.times, changes_between(before, after), {}};
  change.differences = largest_changes(change);
  return change;
}

}  // namespace shardwright::calibration
