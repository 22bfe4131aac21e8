// Plans that were found for one request: what the views show.
#pragma once

#include <QString>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "planner/search.hpp"

namespace shardwright::gui {

struct PlanSet {
  planner::PlanRequest request;  // without its callbacks
  // Best first, then those of the front alone, then those of other layouts.
  std::vector<planner::PlanCandidate> plans;
  std::vector<bool> on_front;  // by plan: no other has both a shorter step and less memory
  planner::SearchCounts counts;
  double wall_s = 0.0;
  bool complete = true;  // false: more may come, or the search was stopped
  std::optional<planner::NoFeasiblePlan> infeasible;
  QString origin;  // "search", or the file that it was read from

  Scenario scenario(std::size_t plan) const;
};

// Shared between threads and views; never changed once it is made.
using PlanSetPointer = std::shared_ptr<const PlanSet>;

PlanSet plan_set_of(const planner::PlanRequest& request, const planner::SearchResult& result);

// What a search has found so far, and what an earlier one of the same request had: best first.
PlanSet plan_set_so_far(const planner::PlanRequest& request,
                        const std::vector<planner::PlanCandidate>& best,
                        const std::vector<planner::PlanCandidate>& earlier);

// Adds plans of the same request that an earlier or a stopped search had found, best first.
void keep_plans(PlanSet& set, const std::vector<planner::PlanCandidate>& plans);

// Finds `on_front` anew.
void mark_front(PlanSet& set);

// One plan as a set: simulated here. Throws InputError.
PlanSet plan_set_of(const Scenario& scenario, const QString& origin);

// What `shardwright plan --json` and `scale --json` write. Throws InputError with every problem.
PlanSet read_plan_set(const nlohmann::json& document, const std::string& source);

}  // namespace shardwright::gui
