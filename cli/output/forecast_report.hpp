// The forecast of a run as a page and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "cli/output/page.hpp"
#include "planner/forecast.hpp"

namespace shardwright::cli {

void add_forecast(Page& page, const planner::ForecastRequest& request,
                  const planner::Forecast& forecast);

// Adds a drawing of the tokens over the days of the run, which may be empty. Only HTML has it.
void add_trajectory(Page& page, const planner::Forecast& forecast,
                    const sim::RunTrajectory& trajectory);

// The members of the document after its inputs; docs/formats/results.md lists them.
nlohmann::ordered_json forecast_json(const planner::ForecastRequest& request,
                                     const planner::Forecast& forecast);

// Adds a table of the whole runs of plans, which are numbered from 1. Of a plan that does not take
// the stages of the run profile there is none.
void add_runs(Page& page, const planner::ForecastRequest& request,
              const std::vector<std::optional<planner::Forecast>>& forecasts);

// Adds the laws that the tokens of a run rest on (ChosenRun::laws_of), if there are any.
void add_laws(Page& page, const std::vector<std::string>& laws);

}  // namespace shardwright::cli
