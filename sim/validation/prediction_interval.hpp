// How far measurements lie from predictions.
#pragma once

#include <utility>

namespace shardwright::sim {

// Limits between which 80 % of measurements lie for a prediction of the event rung: the 10 % and
// 90 % quantiles of measured over predicted step time on the published measurements of grade A,
// each source predicted by a fit that has not seen it (`shardwright fit training`,
// docs/validation.md). For a rate the limits are turned round.
std::pair<double, double> prediction_interval(double predicted, bool is_rate);

}  // namespace shardwright::sim
