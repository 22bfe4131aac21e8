#include "calibration/traces/device_steps.hpp"

#include <algorithm>
#include <map>

namespace shardwright::calibration {
namespace {

// A step with fewer of the usual activities was cut by the end of the recording.
constexpr double kWholeStep = 0.8;

void order_by_launch(Activities& activities) {
  std::stable_sort(activities.begin(), activities.end(),
                   [](const DeviceActivity* a, const DeviceActivity* b) {
                     return a->launched.value_or(a->start) < b->launched.value_or(b->start);
                   });
}

DeviceStep step_of(Activities activities) {
  DeviceStep step;
  step.begin = activities.front()->start;
  for (const DeviceActivity* each : activities) {
    step.begin = std::min(step.begin, each->start);
    step.end = std::max(step.end, each->end());
  }
  order_by_launch(activities);
  step.activities = std::move(activities);
  return step;
}

bool breaks_off(const DeviceStep& last, const std::vector<DeviceStep>& steps) {
  std::vector<std::size_t> sizes;
  for (const DeviceStep& each : steps) sizes.push_back(each.activities.size());
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  return static_cast<double>(last.activities.size()) <
         kWholeStep * static_cast<double>(sizes[sizes.size() / 2]);
}

}  // namespace

Activities activities_of_busiest(const Trace& trace) {
  std::map<std::int32_t, Activities> devices;
  for (const DeviceActivity& each : trace.activities) devices[each.device].push_back(&each);
  const auto busiest = std::max_element(
      devices.begin(), devices.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return busiest == devices.end() ? Activities() : busiest->second;
}

std::vector<DeviceStep> device_steps(const Trace& trace) {
  const Activities all = activities_of_busiest(trace);
  std::map<TraceIndex, Activities> by_step;
  for (const DeviceActivity* each : all)
    if (each->step != kNoIndex) by_step[each->step].push_back(each);
  if (by_step.empty()) {
    if (all.empty()) return {};
    return {step_of(all)};
  }
  std::vector<DeviceStep> steps;
  for (auto& [number, activities] : by_step) steps.push_back(step_of(std::move(activities)));
  for (std::size_t i = 0; i + 1 < steps.size(); ++i)
    steps[i].end = std::max(steps[i].begin, steps[i + 1].begin);
  if (steps.size() > 1) steps.erase(steps.begin());
  if (steps.size() > 1 && breaks_off(steps.back(), steps)) steps.pop_back();
  return steps;
}

}  // namespace shardwright::calibration
