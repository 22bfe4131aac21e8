#include "sim/step/interference.hpp"

#include <algorithm>
#include <limits>

namespace shardwright::sim {

void RunningCollectives::add(Stream stream, double start, double finish) {
  if (finish > start)
    queues_[static_cast<std::size_t>(stream)].intervals.push_back({start, finish});
}

void RunningCollectives::forget(double time) {
  for (Queue& queue : queues_) {
    while (queue.first < queue.intervals.size() && queue.intervals[queue.first].finish <= time)
      ++queue.first;
    if (queue.first < queue.intervals.size() || queue.first == 0) continue;
    queue.intervals.clear();
    queue.first = 0;
  }
}

double RunningCollectives::finish_of_kernel(double start, double duration, double slowdown) {
  forget(start);
  double time = start, left = duration;
  while (true) {
    // The state at `time`, and until when it lasts at least.
    bool beside = false;
    double change = std::numeric_limits<double>::infinity();
    for (const Queue& queue : queues_) {
      for (std::size_t i = queue.first; i < queue.intervals.size(); ++i) {
        const Interval& interval = queue.intervals[i];
        if (interval.finish <= time) continue;
        const bool runs = interval.start <= time;
        if (runs && !beside) change = interval.finish;
        if (runs) change = std::max(change, interval.finish);
        if (!runs && !beside) change = std::min(change, interval.start);
        beside = beside || runs;
        break;
      }
    }
    const double stretch = beside ? 1.0 + slowdown : 1.0;
    if (time + left * stretch <= change) return time + left * stretch;
    left -= (change - time) / stretch;
    time = change;
  }
}

}  // namespace shardwright::sim
