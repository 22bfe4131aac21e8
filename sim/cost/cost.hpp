// The price of one kernel.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"

namespace shardwright::sim {

// What a kernel's price rests on.
enum class CostBasis : std::uint8_t {
  Measured,      // a timing of this shape on this device, or between two such
  Formula,       // a formula fitted on this device, within the shapes that it was fitted on
  Extrapolated,  // the formula outside of these shapes, or on a device without a fit
};

// "measured", "formula", "extrapolated".
const char* name_of(CostBasis basis);

// Kernel time by what its price rests on.
struct BasisTimes {
  Seconds measured, formula, extrapolated;

  void add(CostBasis basis, Seconds time);
  BasisTimes& operator+=(const BasisTimes& other);
  Seconds total() const { return measured + formula + extrapolated; }
};

struct KernelCost {
  Seconds time{};           // on the device, from start to end; the host's launch is not in it
  double efficiency = 0.0;  // of the peak that bounds it: matrix FLOP/s if `compute_bound`, else
                            // bytes/s; at most 1 for anything that has to come from memory
  bool compute_bound = false;
  CostBasis basis = CostBasis::Formula;
};

}  // namespace shardwright::sim
