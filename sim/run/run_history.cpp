#include "sim/run/run_history.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace shardwright::sim {
namespace {

std::vector<Seconds> evenly_spaced(Seconds until, std::size_t points) {
  std::vector<Seconds> times;
  for (std::size_t i = 0; i < points; ++i)
    times.push_back(until * (static_cast<double>(i) / static_cast<double>(points - 1)));
  return times;
}

std::int64_t median_index(const std::vector<double>& walls) {
  std::vector<std::int64_t> order(walls.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
  std::ranges::nth_element(order, middle, {}, [&](std::int64_t run) {
    return std::pair(walls[static_cast<std::size_t>(run)], run);
  });
  return *middle;
}

// Calls all work beyond this share lost. Splits the span that contains it.
void take_back(std::vector<RunSpan>& spans, double share) {
  for (std::size_t i = spans.size(); i-- > 0;) {
    RunSpan& span = spans[i];
    if (span.part != RunPart::Step) continue;
    if (span.to <= share) return;
    if (span.from >= share) {
      span.part = RunPart::LostWork;
      continue;
    }
    RunSpan lost = span;
    lost.part = RunPart::LostWork;
    lost.from = span.to = share;
    const double kept = (share - span.from) / (lost.to - span.from);
    lost.begin = span.end = span.begin + (span.end - span.begin) * kept;
    spans.insert(spans.begin() + static_cast<std::ptrdiff_t>(i) + 1, lost);
    return;
  }
}

// The spans, in which work that was done in vain is lost.
std::vector<RunSpan> spans_by_use(const std::vector<RunSpan>& all) {
  std::vector<RunSpan> spans;
  for (const RunSpan& span : all) {
    take_back(spans, span.from);
    spans.push_back(span);
  }
  return spans;
}

// Adds the uses of a share of a span.
void add_uses(RunTimes& times, const RunHistory& history, const RunSpan& span, double share) {
  const Seconds time = share * (span.end - span.begin);
  if (span.from == span.to) {
    times[span.part] += time;
    return;
  }
  // With fewer replicas the run makes less progress, and waits for the others meanwhile.
  const double done = share * (span.to - span.from);
  const Seconds ran = done * history.running_time;
  times[RunPart::Waiting] += std::max(Seconds(), time - ran);
  if (span.part == RunPart::LostWork) {
    times[RunPart::LostWork] += ran;
    return;
  }
  for (const RunPart part : enumerators<RunPart>()) times[part] += done * history.running[part];
}

}  // namespace

double RunHistory::progress_at(Seconds time) const {
  const auto after = std::ranges::upper_bound(spans, time, {}, &RunSpan::begin);
  if (after == spans.begin()) return 0.0;
  const RunSpan& span = *(after - 1);
  if (time >= span.end) return span.to;
  return span.from + (span.to - span.from) * ((time - span.begin) / (span.end - span.begin));
}

std::vector<RunTimes> RunHistory::times_between(Seconds begin, Seconds end,
                                                std::size_t parts) const {
  std::vector<RunTimes> times(parts);
  const Seconds length = (end - begin) / static_cast<double>(parts);
  for (const RunSpan& span : spans_by_use(spans)) {
    if (span.end <= begin || span.begin >= end) continue;
    const auto part_at = [&](Seconds time) {
      return std::min(parts - 1, static_cast<std::size_t>(std::max(0.0, (time - begin) / length)));
    };
    const std::size_t last = part_at(span.end);
    for (std::size_t i = part_at(span.begin); i <= last; ++i) {
      const Seconds from = begin + static_cast<double>(i) * length;
      const Seconds overlap = std::min(span.end, from + length) - std::max(span.begin, from);
      if (overlap > Seconds()) add_uses(times[i], *this, span, overlap / (span.end - span.begin));
    }
  }
  return times;
}

RunTrajectory run_trajectory(const RunModel& model, const RunOptions& options, Seconds until,
                             std::size_t points) {
  RunTrajectory trajectory;
  trajectory.times = evenly_spaced(until, points);
  const auto runs = static_cast<std::size_t>(options.runs);
  std::vector<double> walls(runs), progress(runs * points);
  tbb::task_arena arena(options.threads > 0 ? options.threads : tbb::task_arena::automatic);
  arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, runs, [&](std::size_t run) {
      if (options.stop.stop_requested()) return;
      const RunHistory history = simulate_history(model, options, static_cast<std::int64_t>(run));
      walls[run] = history.outcome.finished ? history.outcome.wall.value()
                                            : std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < points; ++i)
        progress[i * runs + run] = history.progress_at(trajectory.times[i]);
    });
  });
  for (auto at = progress.begin(); at != progress.end(); at += options.runs)
    trajectory.progress.push_back(percentiles(std::vector<double>(at, at + options.runs)));
  trajectory.median = simulate_history(model, options, median_index(walls));
  return trajectory;
}

}  // namespace shardwright::sim
