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

// True if several times are longer than the usual ones, at equal distances, and the device works in
// them: marks of microbatches, say, of which each fourth has the optimizer. Those are no pauses.
bool is_regular(const std::vector<DeviceStep>& steps, const std::vector<std::int64_t>& times,
                double longest) {
  constexpr double kMostly = 0.5;
  std::vector<std::size_t> longer;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto time = static_cast<double>(times[i]);
    if (time <= longest) continue;
    if (static_cast<double>(steps[i].end - steps[i].begin) < kMostly * time) return false;
    longer.push_back(i);
  }
  if (longer.size() < 2) return false;
  for (std::size_t i = 1; i < longer.size(); ++i)
    if (longer[i] - longer[i - 1] != longer[1] - longer[0]) return false;
  return true;
}

// The lower one of two in the middle.
std::int64_t lower_median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// True for each time from a step to the next one that has a pause in it: steps between them that
// were not recorded, by the numbers of the marks, or else another thing than a step, by its length.
std::vector<bool> find_pauses(const std::vector<DeviceStep>& steps,
                              const std::vector<std::int64_t>& times) {
  std::vector<std::int64_t> differences, recorded;
  for (std::size_t i = 0; i < times.size(); ++i)
    differences.push_back(steps[i + 1].number - steps[i].number);
  const std::int64_t usual = lower_median(differences);
  for (std::size_t i = 0; i < times.size(); ++i)
    if (differences[i] <= usual) recorded.push_back(times[i]);
  const double longest = kPause * static_cast<double>(lower_median(recorded));
  // Of two times none is the usual one.
  const bool judges_times = recorded.size() > 2 && !is_regular(steps, times, longest);
  std::vector<bool> pauses;
  for (std::size_t i = 0; i < times.size(); ++i)
    pauses.push_back(differences[i] > usual ||
                     (judges_times && static_cast<double>(times[i]) > longest));
  return pauses;
}

// Ends each step where the next one begins, unless a pause lies between them. No next step ends the
// last one, and its activities may end before or, where copies run ahead, after its time: it takes
// the mean of the others. Alone it is at least as long as its mark.
void end_steps(std::vector<DeviceStep>& steps, std::int64_t mark) {
  if (steps.size() == 1) {
    steps.back().end = std::max(steps.back().end, steps.back().begin + mark);
    return;
  }
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i)
    times.push_back(std::max<std::int64_t>(0, steps[i + 1].begin - steps[i].begin));
  const std::vector<bool> pauses = find_pauses(steps, times);
  std::int64_t all = 0, usual = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (pauses[i]) continue;
    all += times[i];
    ++usual;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_ended = i < times.size() && !pauses[i];
    steps[i].end = steps[i].begin + (is_ended ? times[i] : all / usual);
  }
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
  for (auto& [mark, activities] : by_step) {
    steps.push_back(step_of(std::move(activities)));
    steps.back().number = trace.steps[static_cast<std::size_t>(mark)].number;
  }
  if (steps.size() > 1) steps.erase(steps.begin());
  auto last = std::prev(by_step.end());
  if (steps.size() > 1 && breaks_off(steps.back(), steps)) {
    steps.pop_back();
    --last;
  }
  end_steps(steps, trace.steps[static_cast<std::size_t>(last->first)].duration);
  return steps;
}

std::optional<UsualStep> usual_step(const Trace& trace) {
  const bool in_steps =
      std::any_of(trace.activities.begin(), trace.activities.end(),
                  [](const DeviceActivity& each) { return each.step != kNoIndex; });
  if (!in_steps) return std::nullopt;
  const std::vector<DeviceStep> steps = device_steps(trace);
  const auto count = static_cast<std::int64_t>(steps.size());
  std::int64_t all = 0, pauses = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all += steps[i].end - steps[i].begin;
    pauses += i + 1 < steps.size() && steps[i].end < steps[i + 1].begin;
  }
  return UsualStep{from_ns(all) / static_cast<double>(count), count, pauses};
}

}  // namespace shardwright::calibration
