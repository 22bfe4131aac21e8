// Tolerances within which levels of a progressive filling count as equal.
#pragma once

#include <limits>

namespace shardwright::sim {

// Shares that differ by less than this, relatively, are one level: symmetric flows get one rate
// exactly, and so end together.
inline constexpr double kTie = 1e-12;
// A path that is held fixed is left alone while its rate is right within this, relatively.
inline constexpr double kAccept = 1e-11;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace shardwright::sim
