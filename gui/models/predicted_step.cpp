#include "gui/models/predicted_step.hpp"

#include <utility>

#include "sim/step/predicted_timeline.hpp"

namespace shardwright::gui {

PredictedStep predict_step(const Scenario& scenario, const std::stop_token& stop) {
  std::optional<sim::TracedStep> step = sim::trace_step(scenario, stop);
  if (!step) return {scenario, {}, nullptr, nullptr};
  return {scenario, std::move(step->result),
          std::make_shared<const Program>(std::move(step->program)),
          std::make_shared<const Timeline>(std::move(step->timeline))};
}

}  // namespace shardwright::gui
