// Rows of published trainings: what is accepted either has a scenario whose plan obeys the rules,
// or a reason why there is none.
#include <sstream>

#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/row_scenario.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

namespace {

void check(sim::TrainingRow row) {
  // The choice of the least recomputation that fits lowers the plan, whatever its size.
  if (row.plan.recompute.empty()) row.plan.recompute = "none";
  const sim::RowScenario made = sim::scenario_of(row);
  SHARDWRIGHT_CHECK(made.scenario.has_value() == made.reason.empty(),
                    "neither a scenario nor a reason, or both");
  if (!made.scenario) return;
  const Scenario& scenario = *made.scenario;
  SHARDWRIGHT_CHECK(scenario.plan.world_size() == row.cluster.gpus,
                    "a plan for another number of accelerators");
  SHARDWRIGHT_CHECK(!first_broken_rule(scenario.model, scenario.cluster, scenario.plan),
                    "a plan that breaks a rule");
}

}  // namespace

// What is shipped is read here, which is no input's time.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  shipped_cluster_specs();
  shipped_model_specs();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  try {
    for (const sim::TrainingRow& row : sim::read_training_rows(lines, fuzz::kSource)) check(row);
  } catch (const InputError&) {
    return 0;
  }
  return 0;
}
