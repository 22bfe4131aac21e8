// The plans that the views show, found for one request.
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
  // The request without its callbacks.
  planner::PlanRequest request;
  // Best first, then those of the front alone, those of other layouts, and the best plans of pools
  // that are not among the best.
  std::vector<planner::PlanCandidate> plans;
  // True for each plan if no other has both a shorter step and less memory; false for all on a
  // cluster of several pools, where the search lists the best plans alone.
  std::vector<bool> on_front;
  planner::SearchCounts counts;
  double wall_s = 0.0;
  // False if more plans may come, or the search was stopped.
  bool complete = true;
  std::optional<planner::NoFeasiblePlan> infeasible;
  // "search", or the name of the file that holds the plans.
  QString origin;

  // A plan whose stages all lie on one of several pools is a scenario of that pool alone.
  Scenario scenario(std::size_t plan) const;
};

// The place of a plan in the set, if the set has it.
std::optional<std::size_t> find_plan(const PlanSet& set, const Plan& plan);

// The best of the plans that lie on one of several pools alone; none if the set has no such plan.
std::optional<std::size_t> best_on_pool(const PlanSet& set, const std::string& pool);

// Shared between threads and views; never changed once it is made.
using PlanSetPointer = std::shared_ptr<const PlanSet>;

PlanSet plan_set_of(const planner::PlanRequest& request, const planner::SearchResult& result);

// Returns the plans that a search has found so far and those of an earlier search of the same
// request, best first.
PlanSet plan_set_so_far(const planner::PlanRequest& request,
                        const std::vector<planner::PlanCandidate>& best,
                        const std::vector<planner::PlanCandidate>& earlier);

// Adds plans that an earlier or a stopped search of the same request had found, best first.
void keep_plans(PlanSet& set, const std::vector<planner::PlanCandidate>& plans);

void mark_front(PlanSet& set);

// Simulates one plan and returns it as a set. Throws InputError.
PlanSet plan_set_of(const Scenario& scenario, const QString& origin);

// Reads the output of `shardwright plan --json` or `scale --json`. Throws InputError with every
// problem.
PlanSet read_plan_set(const nlohmann::json& document, const std::string& source);

}  // namespace shardwright::gui
