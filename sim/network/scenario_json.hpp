// Flow scenarios and their results as JSON.
//
// Scenario: {"links":[{"id","bandwidth_bytes_per_s","latency_s"}…],
//            "flows":[{"id","bytes","route":[link ids],"start_s" | "after":[flow ids]}…]}
// Ids are texts or integers, which are the same as their decimal text.
// Result:   {"makespan_s","flows":[{"id","start_s","finish_s"}…],"wall_s"}
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/network/flow_scenario.hpp"
#include "sim/network/flow_simulation.hpp"

namespace shardwright::sim {

// Strict: throws InputError that names `source` and all problems with their JSON pointers (unknown
// keys and ids, ids used twice, a link twice in a route, both or neither of start_s and after,
// values out of range, flows that wait for each other in a circle).
FlowScenario read_flow_scenario(const nlohmann::json& document, const std::string& source);

// `scenario` is the document that was read: flows come in its order, with the ids as it has them.
// `wall` is how long the simulation took.
nlohmann::ordered_json write_flow_result(const nlohmann::json& scenario, const FlowResult& result,
                                         Seconds wall);

}  // namespace shardwright::sim
