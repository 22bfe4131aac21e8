// Ways to divide equal units among the parts of a plan: the microbatches of a step among replicas,
// the experts of a layer among the ranks that hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace shardwright::planner {

// The units of each member of every part, at least one.
using Division = std::vector<std::int64_t>;

// Calls `visit` with every way to divide `units` among parts of so many members.
void for_each_division(const std::vector<std::int64_t>& members, std::int64_t units,
                       const std::function<void(const Division&)>& visit);

// No fewer than there are ways.
double most_divisions(const std::vector<std::int64_t>& members, std::int64_t units);

// What a member of each part takes for a unit, and the units' time that all of them stand still.
struct UnitTimes {
  std::vector<double> times;
  std::int64_t idle = 0;
};

// The few ways whose slowest part takes least.
std::vector<Division> balanced_divisions(const std::vector<std::int64_t>& members,
                                         std::int64_t units, const UnitTimes& times);

}  // namespace shardwright::planner
