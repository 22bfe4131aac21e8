// The hyper-parameters that trials of a tuning vary, and the values that each may take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/error.hpp"

namespace shardwright::planner {

// Named as the options of `shardwright run` are; the global batch is a field of the plan.
enum class TunedName : std::uint8_t {
  LearningRate,
  LeastRateRatio,
  WarmupSteps,
  Beta1,
  Beta2,
  WeightDecay,
  ClipNorm,
  GlobalBatch,
};
constexpr auto enum_names(TunedName) {
  return std::array{"lr",    "min-lr-ratio", "warmup-steps", "beta1",
                    "beta2", "weight-decay", "clip",         "global-batch"};
}
using shardwright::name_of;

// How values lie between the ends of a range.
enum class TunedScale : std::uint8_t {
  Linear,
  Logarithmic,
  // The distance from 1 is logarithmic, as that of the decay rate of a mean should be.
  LogarithmicFromOne,
};

// A range, or a list of values. A value has a place between 0 and 1, in which searches think.
struct TunedParameter {
  TunedName name = TunedName::LearningRate;
  TunedScale scale = TunedScale::Linear;
  double low = 0.0, high = 0.0;
  // Ascending; empty: the range.
  std::vector<double> listed;

  double value_at(double place) const;
  double place_of(double value) const;
  // The value a step away: 1.25 times as large or small in a range (0.8 in the scale's terms), the
  // neighbour in a list.
  double perturbed(double value, bool up) const;
  bool is_fixed() const { return listed.size() == 1; }
  double most() const { return listed.empty() ? high : listed.back(); }
};

// Reads "lr=1e-4..1e-2", "weight-decay=0,0.01,0.1" or "clip=1". Adds problems at `where`.
TunedParameter read_tuned_parameter(const std::string& where, const std::string& text,
                                    ProblemList& problems);

}  // namespace shardwright::planner
