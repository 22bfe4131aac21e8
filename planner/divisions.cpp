#include "planner/divisions.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace shardwright::planner {
namespace {

// The units of a member that are tried.
struct UnitRange {
  std::int64_t least = 1, most = std::numeric_limits<std::int64_t>::max();
};

// Calls `visit` with `division`, of which the parts from `next` on still need their units.
void divide(const std::vector<std::int64_t>& members, std::size_t next, std::int64_t left,
            const std::vector<UnitRange>& ranges, Division& division,
            const std::function<void(const Division&)>& visit) {
  const std::int64_t own = members[next];
  if (next + 1 == members.size()) {
    if (left < own || left % own != 0) return;
    division[next] = left / own;
    return visit(division);
  }
  const std::int64_t most = std::min(ranges[next].most, (left - 1) / own);
  for (division[next] = ranges[next].least; division[next] <= most; ++division[next])
    divide(members, next + 1, left - division[next] * own, ranges, division, visit);
}

// Ranges around the numbers by which all parts would end at the same time. They are as wide as the
// units that a member more or less of another part makes up for.
std::vector<UnitRange> ranges_near(const std::vector<std::int64_t>& members, std::int64_t units,
                                   const std::vector<double>& times) {
  double rate = 0.0;
  std::int64_t width = 2;
  for (std::size_t part = 0; part < members.size(); ++part) {
    rate += static_cast<double>(members[part]) / times[part];
    width = std::max(width, members[part] + 2);
  }
  std::vector<UnitRange> ranges;
  for (const double time : times) {
    const std::int64_t ideal = std::llround(static_cast<double>(units) / (rate * time));
    ranges.push_back({std::max<std::int64_t>(1, ideal - width), ideal + width});
  }
  return ranges;
}

}  // namespace

void for_each_division(const std::vector<std::int64_t>& members, std::int64_t units,
                       const std::function<void(const Division&)>& visit) {
  Division division(members.size());
  divide(members, 0, units, std::vector<UnitRange>(members.size()), division, visit);
}

double most_divisions(const std::vector<std::int64_t>& members, std::int64_t units) {
  double ways = 1.0;
  for (std::size_t part = 0; part + 1 < members.size(); ++part)
    ways *= static_cast<double>(units) / static_cast<double>(members[part]);
  return ways;
}

std::vector<Division> balanced_divisions(const std::vector<std::int64_t>& members,
                                         std::int64_t units, const UnitTimes& times) {
  constexpr std::size_t kMost = 4;
  // The best first, of equals the first one.
  std::vector<std::pair<double, Division>> timed;
  Division division(members.size());
  divide(members, 0, units, ranges_near(members, units, times.times), division,
         [&](const Division& each) {
           double slowest = 0.0;
           for (std::size_t part = 0; part < each.size(); ++part)
             slowest = std::max(slowest,
                                times.times[part] * static_cast<double>(each[part] + times.idle));
           if (timed.size() == kMost && slowest >= timed.back().first) return;
           if (timed.size() == kMost) timed.pop_back();
           timed.insert(
               std::ranges::upper_bound(timed, slowest, {}, &std::pair<double, Division>::first),
               {slowest, each});
         });
  std::vector<Division> divisions;
  for (auto& [slowest, each] : timed) divisions.push_back(std::move(each));
  return divisions;
}

}  // namespace shardwright::planner
