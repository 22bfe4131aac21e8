#include "calibration/traces/intervals.hpp"

#include <algorithm>

namespace shardwright::calibration {

IntervalUnion union_of(std::vector<Interval> intervals) {
  const auto is_before = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  // Those of a trace's activities are in order.
  if (!std::is_sorted(intervals.begin(), intervals.end(), is_before))
    std::sort(intervals.begin(), intervals.end(), is_before);
  IntervalUnion merged;
  for (const Interval& each : intervals) {
    if (each.begin == each.end) continue;
    if (merged.empty() || each.begin > merged.back().end)
      merged.push_back(each);
    else
      merged.back().end = std::max(merged.back().end, each.end);
  }
  return merged;
}

double seconds_of(const IntervalUnion& intervals) {
  double sum = 0.0;
  for (const Interval& each : intervals) sum += static_cast<double>(each.end - each.begin) * 1e-9;
  return sum;
}

IntervalUnion difference(const IntervalUnion& from, const IntervalUnion& without) {
  IntervalUnion rest;
  auto hole = without.begin();
  for (const Interval& each : from) {
    std::int64_t begin = each.begin;
    while (hole != without.end() && hole->end <= begin) ++hole;
    for (auto next = hole; next != without.end() && next->begin < each.end; ++next) {
      if (next->begin > begin) rest.push_back({begin, next->begin});
      begin = std::max(begin, next->end);
    }
    if (begin < each.end) rest.push_back({begin, each.end});
  }
  return rest;
}

}  // namespace shardwright::calibration
