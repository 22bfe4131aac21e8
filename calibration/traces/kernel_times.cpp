#include "calibration/traces/kernel_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

std::string identity_of(const Trace& trace, const DeviceActivity& activity) {
  return fmt::format("{} {} {}", trace.names[activity.name], activity.size,
                     activity.shapes == kNoIndex ? "" : trace.names[activity.shapes]);
}

}  // namespace

template <class Visit>
void KernelTimes::for_each_context(const Trace& trace, const Activities& activities, Visit visit) {
  std::string before, second_before;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    const DeviceActivity& each = *activities[i];
    if (each.category == KernelCategory::Collective) continue;
    std::string identity = identity_of(trace, each);
    visit(i, Context{identity, before, second_before});
    second_before = std::move(before);
    before = std::move(identity);
  }
}

KernelTimes::KernelTimes(const std::vector<Trace>& traces) {
  for (const Trace& trace : traces) {
    const Activities activities = activities_of_busiest(trace);
    for_each_context(trace, activities, [&](std::size_t i, Context context) {
      for (; !context.empty(); context.pop_back())
        times_[context].push_back(from_ns(activities[i]->duration));
    });
  }
  for (auto& [context, times] : times_) {
    Seconds sum;
    for (const Seconds time : times) sum += time;
    const Seconds mean = sum / static_cast<double>(times.size());
    summaries_[context] = {median_of(std::move(times)), mean};
  }
  times_.clear();
}

std::vector<std::optional<KernelTimes::Time>> KernelTimes::of(const Trace& trace,
                                                              const Activities& activities) const {
  std::vector<std::optional<Time>> times(activities.size());
  for_each_context(trace, activities, [&](std::size_t i, Context context) {
    for (; !context.empty() && !times[i]; context.pop_back()) {
      const auto known = summaries_.find(context);
      if (known != summaries_.end()) times[i] = known->second;
    }
  });
  return times;
}

KernelErrors errors_on(const Trace& trace, const KernelTimes& times) {
  const Activities activities = activities_of_busiest(trace);
  const auto predicted = times.of(trace, activities);
  KernelErrors errors;
  errors.file = trace.file;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    if (activities[i]->kind != ActivityKind::Kernel ||
        activities[i]->category == KernelCategory::Collective || activities[i]->duration <= 0)
      continue;
    ++errors.kernels;
    if (!predicted[i]) {
      ++errors.unknown;
      continue;
    }
    const Seconds measured = from_ns(activities[i]->duration);
    ratios.push_back(std::abs(predicted[i]->median / measured - 1.0));
    errors.predicted += predicted[i]->mean;
    errors.measured += measured;
  }
  if (ratios.empty()) return errors;
  std::sort(ratios.begin(), ratios.end());
  errors.median = ratios[ratios.size() / 2];
  errors.p90 = ratios[ratios.size() * 9 / 10];
  return errors;
}

}  // namespace shardwright::calibration
