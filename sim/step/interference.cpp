#include "sim/step/interference.hpp"

#include <algorithm>
#include <limits>

namespace shardwright::sim {

void RunningCollectives::add(Stream stream, double start, double finish) {
  if (finish <= start) return;
  Queue& queue = queues_[static_cast<std::size_t>(stream)];
  if (queue.intervals.empty()) busy_.push_back(static_cast<std::size_t>(stream));
  queue.intervals.push_back({start, finish});
}

void RunningCollectives::forget(double time) {
  std::erase_if(busy_, [this, time](std::size_t stream) {
    Queue& queue = queues_[stream];
    while (queue.first < queue.intervals.size() && queue.intervals[queue.first].finish <= time)
      ++queue.first;
    if (queue.first < queue.intervals.size()) return false;
    queue.intervals.clear();
    queue.first = 0;
    return true;
  });
}

double RunningCollectives::finish_of_kernel(double start, double duration, double slowdown) {
  if (!busy_.empty()) forget(start);
  if (busy_.empty()) return start + duration;
  double time = start, left = duration;
  while (true) {
    // The state at `time`, and until when it lasts at least.
    bool beside = false;
    double change = std::numeric_limits<double>::infinity();
    for (const std::size_t stream : busy_) {
      const Queue& queue = queues_[stream];
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
