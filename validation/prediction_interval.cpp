#include "validation/prediction_interval.hpp"

#include <algorithm>
#include <array>

namespace shardwright::validation {
namespace {

// Measured over predicted step time: the table "Intervals" of docs/validation.md, rounded.
std::pair<double, double> ratios(PredictionGround ground) {
  switch (ground) {
    case PredictionGround::StatedPlan:
      return {0.93, 1.20};
    case PredictionGround::InferredPlan:
      return {0.91, 1.22};
    case PredictionGround::GenericStack:
      return {0.79, 1.26};
  }
  return {0.79, 1.26};
}

}  // namespace

bool is_generic(const std::string& stack) {
  return stack.starts_with("generic");
}

std::pair<double, double> prediction_interval(double predicted, bool is_rate,
                                              PredictionGround ground) {
  const auto [low, high] = ratios(ground);
  if (is_rate) return {predicted / high, predicted / low};
  return {predicted * low, predicted * high};
}

std::optional<PredictionGround> ground_of(const AcceleratorSpec& accelerator,
                                          const StackSpec& stack) {
  if (stack.family == "shardwright") return std::nullopt;
  constexpr std::array kWellMeasured = {"volta", "ampere", "hopper", "blackwell"};
  const bool well_measured = std::find(kWellMeasured.begin(), kWellMeasured.end(),
                                       accelerator.architecture) != kWellMeasured.end();
  return is_generic(stack.name) || !well_measured ? PredictionGround::GenericStack
                                                  : PredictionGround::StatedPlan;
}

std::optional<StepInterval> step_interval(Seconds predicted, const AcceleratorSpec& accelerator,
                                          const StackSpec& stack) {
  const auto ground = ground_of(accelerator, stack);
  if (!ground) return std::nullopt;
  const auto [low, high] = prediction_interval(predicted.value(), false, *ground);
  return StepInterval{Seconds(low), Seconds(high)};
}

}  // namespace shardwright::validation
