// The result of a search, as tables and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/page.hpp"
#include "planner/search.hpp"

namespace shardwright::cli {

// "1,024 sequences of 8,192 tokens, bf16, optimized for time". `chosen` is the batch of the best
// plan, which the search picks if the user left it open.
std::string goal_text(const planner::PlanRequest& request, std::int64_t chosen);

// One row per plan: degrees and choices (except those that are trivial in every plan), step time,
// rates, memory, and the dollars or joules of a token where plans were compared by these.
Table candidate_table(const std::vector<planner::PlanCandidate>& candidates,
                      planner::Objective objective = planner::Objective::Time);

// The column of the figure that plans were compared by, if it is neither time nor memory, and its
// cells.
std::optional<Column> objective_column(planner::Objective objective);
std::string objective_cell(planner::Objective objective, const planner::PlanCandidate& candidate);

// Plans of a front from end to end: step time and memory.
Table front_table(const std::vector<planner::PlanCandidate>& front);

// The title of that table, which says how much of the front it shows.
std::string front_title(const planner::SearchResult& result);

// Returns an element of `plans`; `scenario` is that of the candidate.
nlohmann::ordered_json candidate_json(const planner::PlanCandidate& candidate,
                                      const Scenario& scenario);

// {"space", "rejected", "evaluated", "simulated"}.
nlohmann::ordered_json counts_json(const planner::SearchCounts& counts);

// Adds "Searched 10,000 plans in 0.8 s: …" and the rules that rejected them.
void add_counts(Page& page, const planner::SearchCounts& counts, double wall_s);

// Adds a sentence on the estimates among the figures of the profiles, and the assumed values.
// `cluster` is the name that the user gave.
void add_assumptions(Page& page, const planner::PlanRequest& request, const std::string& cluster,
                     const std::vector<std::string>& filled_in);

// {"reason", "shortfall_bytes", "needed_bytes", "available_bytes", "closes_it", "nearest"}.
nlohmann::ordered_json infeasible_json(const planner::PlanRequest& request,
                                       const planner::NoFeasiblePlan& infeasible);

// Prints the reason to standard error, so that a pipe does not read it as a result.
void report_infeasible(const planner::PlanRequest& request,
                       const planner::NoFeasiblePlan& infeasible);

}  // namespace shardwright::cli
