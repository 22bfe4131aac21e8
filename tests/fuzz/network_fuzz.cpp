// Flow scenarios: what is accepted can be simulated, and every flow ends after it started.
#include "sim/network/flow_simulation.hpp"
#include "sim/network/scenario_json.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    const sim::FlowScenario scenario = sim::read_flow_scenario(document, fuzz::kSource);
    const sim::FlowResult result = sim::simulate_flows(scenario);
    SHARDWRIGHT_CHECK(result.flows.size() == scenario.flow_count(), "a flow without times");
    for (const sim::FlowTimes& times : result.flows) {
      SHARDWRIGHT_CHECK(times.finish >= times.start, "a flow that ends too early");
    }
  });
}
