// How far measurements lie from predictions.
#pragma once

#include <cstdint>
#include <utility>

namespace shardwright::sim {

// What a prediction rests on.
enum class PredictionGround : std::uint8_t {
  StatedPlan,    // the software has a profile and the source tells the plan
  InferredPlan,  // … but a part of the plan is inferred, or was chosen as tuned
  GenericStack,  // the software has no profile of its own
};

// Limits between which 80 % of measurements lie for a prediction of the event rung: about the 10 %
// and 90 % quantiles of measured over predicted step time, of the published measurements of grade
// A, each source predicted by a fit that has not seen it (`shardwright fit training`,
// docs/validation.md); of the other grades; and of rows whose software was taken for unknown, so
// that the generic stack of its family predicted them. For a rate the limits are turned round.
std::pair<double, double> prediction_interval(double predicted, bool is_rate,
                                              PredictionGround ground);

}  // namespace shardwright::sim
