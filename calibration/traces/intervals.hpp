// Times during which something ran.
#pragma once

#include <cstdint>
#include <vector>

namespace shardwright::calibration {

struct Interval {
  // In nanoseconds.
  std::int64_t begin = 0, end = 0;

  bool operator==(const Interval&) const = default;
};

// Intervals that are disjoint, do not touch and are sorted.
using IntervalUnion = std::vector<Interval>;

// Intervals in any order, which may overlap.
IntervalUnion union_of(std::vector<Interval> intervals);

// The sum of the lengths in seconds.
double seconds_of(const IntervalUnion& intervals);

// What lies in the first one alone.
IntervalUnion difference(const IntervalUnion& from, const IntervalUnion& without);

}  // namespace shardwright::calibration
