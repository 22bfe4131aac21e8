// The recorded step of a run, with the plan that it was trained under.
#pragma once

#include <memory>

#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::gui {

struct MeasuredStep {
  ModelSpec model;
  Plan plan;
  std::shared_ptr<const Timeline> timeline;

  // Whatever the cluster's profile and its stack say: calibration replaces both, and the
  // measurement is what their predictions are compared with.
  bool is_of(const Scenario& scenario) const {
    return model == scenario.model && plan == scenario.plan;
  }
};

}  // namespace shardwright::gui
