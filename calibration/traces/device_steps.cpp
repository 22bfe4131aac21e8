#include "calibration/traces/device_steps.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "calibration/traces/trace_report.hpp"

namespace shardwright::calibration {
namespace {

// A step with fewer of the usual activities was cut by the end of the recording.
constexpr double kWholeStep = 0.8;

// Activities are in the order of their starts. A stream runs them in the order of their launches:
// one without a launch was launched before the next of its stream.
void order_by_launch(Activities& activities) {
  std::map<std::int32_t, std::int64_t> next_of_stream;
  std::vector<std::pair<std::int64_t, const DeviceActivity*>> launches;
  for (auto each = activities.rbegin(); each != activities.rend(); ++each) {
    const DeviceActivity& activity = **each;
    const auto next = next_of_stream.try_emplace(activity.stream, activity.start).first;
    next->second = activity.launched.value_or(std::min(activity.start, next->second));
    launches.emplace_back(next->second, &activity);
  }
  std::ranges::reverse(launches);
  std::ranges::stable_sort(launches, {}, &std::pair<std::int64_t, const DeviceActivity*>::first);
  std::ranges::transform(launches, activities.begin(),
                         &std::pair<std::int64_t, const DeviceActivity*>::second);
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

// No next step ends the last one, and its activities may end before or, where copies run ahead,
// after its time: it takes the mean of the others. Alone it is at least as long as its mark.
void end_last(std::vector<DeviceStep>& steps, std::int64_t mark) {
  DeviceStep& last = steps.back();
  if (steps.size() == 1) {
    last.end = std::max(last.end, last.begin + mark);
    return;
  }
  const auto others = static_cast<std::int64_t>(steps.size()) - 1;
  last.end = last.begin + (last.begin - steps.front().begin) / others;
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
  auto last = std::prev(by_step.end());
  if (steps.size() > 1 && breaks_off(steps.back(), steps)) {
    steps.pop_back();
    --last;
  }
  end_last(steps, trace.steps[static_cast<std::size_t>(last->first)].duration);
  return steps;
}

std::optional<UsualStep> usual_step(const Trace& trace) {
  const bool in_steps =
      std::any_of(trace.activities.begin(), trace.activities.end(),
                  [](const DeviceActivity& each) { return each.step != kNoIndex; });
  if (!in_steps) return std::nullopt;
  const std::vector<DeviceStep> steps = device_steps(trace);
  std::int64_t sum = 0;
  for (const DeviceStep& step : steps) sum += step.end - step.begin;
  const auto count = static_cast<std::int64_t>(steps.size());
  return UsualStep{from_ns(sum) / static_cast<double>(count), count};
}

}  // namespace shardwright::calibration
