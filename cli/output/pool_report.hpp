// The hardware of a cluster, of one pool or of several. The result of a search on several: what
// each pool alone is good for, and what was looked at of the plans on several of them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/page.hpp"
#include "planner/search.hpp"

namespace shardwright::cli {

// "8 × h100-sxm (h100) and 8 × a100-80gb (a100)".
std::string pools_text(const planner::PlanRequest& request, const planner::SearchResult& result);

// "h100-sxm (dgx-h100)", "h100-sxm (h100) and a100-80gb (a100)".
std::string hardware_text(const ClusterSpec& cluster);

// "64 × h100-sxm (dgx-h100)", "up to 16 × h100-sxm (h100) and a100-80gb (a100)".
std::string hardware_text(const ClusterSpec& cluster, std::int64_t gpus);

// The nodes of each pool: "h100 2, a100 1".
std::string nodes_text(const ClusterSpec& cluster);

// "accelerators compute for 93.1 % of the step on a100 and 94 % of the step on h100".
std::string balance_text(const planner::PlanCandidate& candidate);

// Adds the best plan of each pool alone, how the best plan compares with them, and which placements
// were looked at.
void add_pools(Page& page, const planner::SearchResult& result);

// Adds the members `pools` and `placed`.
void add_pools(nlohmann::ordered_json& document, const planner::PlanRequest& request,
               const planner::SearchResult& result);

}  // namespace shardwright::cli
