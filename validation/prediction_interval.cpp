#include "validation/prediction_interval.hpp"

#include <algorithm>
#include <array>

namespace shardwright::validation {
namespace {

// The limits of measured over predicted step time, and the number of published runs behind them.
struct MeasuredRatios {
  double low, high;
  std::int64_t runs;
};

// The column "interval" of the table "Intervals" in docs/validation.md. The first two grounds have
// the quantiles of that table, rounded. The third, 0.79 to 1.26, differs from what the
// table measures, 0.80 to 1.30; its runs are those of grade A, each of which
// the table counts twice: by the generic stack of its family, and by that of no family.
MeasuredRatios ratios(PredictionGround ground) {
  switch (ground) {
    case PredictionGround::StatedPlan:
      return {0.93, 1.20, 690};
    case PredictionGround::InferredPlan:
      return {0.91, 1.22, 1369};
    case PredictionGround::GenericStack:
      break;
  }
  return {0.79, 1.26, 690};
}

}  // namespace

std::pair<double, double> prediction_interval(double predicted, bool is_rate,
                                              PredictionGround ground) {
  const MeasuredRatios measured = ratios(ground);
  if (is_rate) return {predicted / measured.high, predicted / measured.low};
  return {predicted * measured.low, predicted * measured.high};
}

std::optional<PredictionGround> ground_of(const AcceleratorSpec& accelerator,
                                          const StackSpec& stack) {
  if (stack.family == "shardwright") return std::nullopt;
  constexpr std::array kWellMeasured = {"volta", "ampere", "hopper", "blackwell"};
  const bool well_measured = std::find(kWellMeasured.begin(), kWellMeasured.end(),
                                       accelerator.architecture) != kWellMeasured.end();
  return stack.generic || !well_measured ? PredictionGround::GenericStack
                                         : PredictionGround::StatedPlan;
}

std::optional<StepInterval> step_interval(Seconds predicted,
                                          std::optional<PredictionGround> ground) {
  if (!ground) return std::nullopt;
  const auto [low, high] = prediction_interval(predicted.value(), false, *ground);
  return StepInterval{Seconds(low), Seconds(high), ratios(*ground).runs};
}

}  // namespace shardwright::validation
