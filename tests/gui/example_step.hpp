#pragma once

#include <memory>
#include <utility>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/predicted_timeline.hpp"

namespace shardwright::gui::fixtures {

struct ExampleStep {
  Scenario scenario;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Timeline> timeline;
};

inline ExampleStep step_of(const Scenario& scenario) {
  sim::TracedStep step = *sim::trace_step(scenario);
  return {scenario, std::make_shared<const Program>(std::move(step.program)),
          std::make_shared<const Timeline>(std::move(step.timeline))};
}

// Llama 3 8B runs on 32 GPUs here, in two stages, on four nodes, with six microbatches.
inline const ExampleStep& small_step() {
  static const ExampleStep kStep = [] {
    Scenario scenario{
        load_model("llama3-8b"), load_cluster("dgx-h100"), load_stack("megatron-core"), {}};
    scenario.plan.dp = 4;
    scenario.plan.tp = 4;
    scenario.plan.pp = 2;
    scenario.plan.global_batch = 24;
    scenario.plan.seq_len = 4096;
    return step_of(scenario);
  }();
  return kStep;
}

// The same step as if it had been measured: everything takes this many times as long.
inline std::shared_ptr<const Timeline> measured(const Timeline& predicted, double slower) {
  Timeline timeline = predicted;
  timeline.origin = TimelineOrigin::Measured;
  for (Span& span : timeline.spans) {
    span.start *= slower;
    span.duration *= slower;
  }
  return std::make_shared<const Timeline>(std::move(timeline));
}

}  // namespace shardwright::gui::fixtures
