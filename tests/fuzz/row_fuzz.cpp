// Published measurements: what is accepted has a scenario whose plan obeys the rules, or says why
// it has none.
#include <sstream>

#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "validation/measurement.hpp"

using namespace shardwright;

// Reads shipped documents here, so that no input is charged with the time.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  shipped_cluster_specs();
  shipped_model_specs();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    std::istringstream lines(text);
    for (const validation::Measurement& each :
         validation::read_measurements(lines, fuzz::kSource)) {
      SHARDWRIGHT_CHECK(each.scenario.has_value() == each.unsupported.empty(),
                        "neither a scenario nor a reason, or both");
      // A plan with open fields is not yet one.
      if (!each.scenario || !each.open.empty()) continue;
      const Scenario& scenario = *each.scenario;
      SHARDWRIGHT_CHECK(!first_broken_rule(scenario.model, scenario.cluster, scenario.plan),
                        "a plan that breaks a rule");
    }
  });
}
