// A search of this scenario takes a fraction of a second; wait_for() waits for the background.
#pragma once

#include <QTest>
#include <memory>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"
#include "tests/gui/says.hpp"

namespace shardwright::gui {

inline ScenarioChoice small_choice() {
  ScenarioChoice choice;
  choice.model = "llama3.2-1b";
  choice.gpus = 8;
  choice.global_batch = 32;
  choice.seq_len = 2048;
  choice.constraints = "schedule=1f1b; zero=1,3";
  return choice;
}

inline planner::PlanRequest small_request() {
  planner::PlanRequest request = load_request(small_choice());
  request.top = 20;
  return request;
}

inline PlanSetPointer small_set() {
  static const PlanSetPointer set = std::make_shared<const PlanSet>(
      plan_set_of(small_request(), planner::search(small_request())));
  return set;
}

// Runs events until `done`, at most two minutes: other programs may need the machine as well.
template <class Done>
bool wait_for(const Done& done) {
  return QTest::qWaitFor(done, 120'000);
}

}  // namespace shardwright::gui
