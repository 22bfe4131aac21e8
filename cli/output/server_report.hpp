// The parameter servers of a plan, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "cli/output/page.hpp"
#include "sim/step/server_steps.hpp"
#include "sim/step/server_use.hpp"

namespace shardwright::cli {

// What they hold, what limits them, and how stale updates are where replicas do not agree in each
// step.
void add_servers(Page& page, const sim::ServerUse& use,
                 const std::optional<sim::ServedSteps>& served = std::nullopt);

// {"processes", "nodes", …, "staleness"}.
nlohmann::ordered_json servers_json(const sim::ServerUse& use,
                                    const std::optional<sim::ServedSteps>& served = std::nullopt);

}  // namespace shardwright::cli
