// The price of one kernel.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"

namespace shardwright::sim {

// The basis of a kernel's price.
enum class CostBasis : std::uint8_t {
  // A timing of this shape on this device, or between two such.
  Measured,
  // A formula fitted on this device, within the shapes that it was fitted on.
  Formula,
  // The formula outside of these shapes, or on a device without a fit.
  Extrapolated,
};
constexpr auto enum_names(CostBasis) {
  return std::array{"measured", "formula", "extrapolated"};
}

// Kernel time by what its price rests on.
struct BasisTimes {
  Seconds measured, formula, extrapolated;

  void add(CostBasis basis, Seconds time) {
    (basis == CostBasis::Measured  ? measured
     : basis == CostBasis::Formula ? formula
                                   : extrapolated) += time;
  }
  BasisTimes& operator+=(const BasisTimes& other) {
    measured += other.measured;
    formula += other.formula;
    extrapolated += other.extrapolated;
    return *this;
  }
  Seconds total() const { return measured + formula + extrapolated; }
};

struct KernelCost {
  // The time on the device, from start to end; the host's launch is not in it.
  Seconds time{};
  // The share of the peak that bounds it: matrix FLOP/s if `compute_bound`, else bytes/s. It is at
  // most 1 for anything that has to come from memory.
  double efficiency = 0.0;
  bool compute_bound = false;
  CostBasis basis = CostBasis::Formula;
};

}  // namespace shardwright::sim
