// How far measurements lie from predictions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::validation {

// The knowledge that a prediction rests on.
enum class PredictionGround : std::uint8_t {
  // The software has a profile and the source states the plan.
  StatedPlan,
  // The software has a profile, but a part of the plan is inferred, or was chosen as tuned.
  InferredPlan,
  // The software has no profile of its own.
  GenericStack,
};

// Returns the limits between which about 80 % of measurements lie for a prediction of the event
// level. They come from the 10 % and 90 % quantiles of measured over predicted step time. The
// quantiles of stated plans are those of the published measurements of grade A, each source
// predicted by a fit that has not seen it (`shardwright fit training`); those of inferred plans come
// from the other grades; those of generic stacks from the rows of grade A with their software taken
// for unknown. `tools/write_validation_page` prints the quantiles beside the limits
// (docs/validation.md). The limits of a rate are the inverse ones.
std::pair<double, double> prediction_interval(double predicted, bool is_rate,
                                              PredictionGround ground);

// The ground of a prediction for a stated plan. It is that of a generic stack where the accelerator
// is none of those of which most steps were published (NVIDIA's data-centre GPUs from V100 on), and
// there is none where no measurement of the stack was published, as for Shardwright's own executor,
// which is calibrated on its runs.
std::optional<PredictionGround> ground_of(const AcceleratorSpec& accelerator,
                                          const StackSpec& stack);

// The interval of a step time.
struct StepInterval {
  Seconds low, high;
  // The number of published runs whose errors the interval comes from.
  std::int64_t runs = 0;
};
// None without a ground.
std::optional<StepInterval> step_interval(Seconds predicted,
                                          std::optional<PredictionGround> ground);

}  // namespace shardwright::validation
