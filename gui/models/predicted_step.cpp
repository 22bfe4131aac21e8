#include "gui/models/predicted_step.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "sim/step/predicted_timeline.hpp"

namespace shardwright::gui {

PredictedStep predict_step(const Scenario& scenario, const sim::StepResult& result,
                           const std::stop_token& stop) {
  auto program =
      std::make_shared<const Program>(lower(scenario.model, scenario.plan, scenario.stack));
  const std::uint64_t ops = sim::count_spans(*program);
  if (ops > sim::kMostSpans)
    throw RuntimeFailure(
        fmt::format("The step has {} million ops: too many for a timeline.", ops / 1'000'000));
  const sim::Prices prices = sim::price(*program, scenario.cluster, scenario.stack);
  const sim::FoldedReplay replay =
      sim::replay_folded(*program, prices, {.keep_finish_times = true, .stop = stop});
  if (replay.cancelled) return {scenario, result, std::move(program), nullptr};
  auto timeline =
      std::make_shared<const Timeline>(sim::predicted_timeline(*program, prices, replay));
  return {scenario, result, std::move(program), std::move(timeline)};
}

}  // namespace shardwright::gui
