// The results of a tuning, and its forecast, as a page, as JSON and as CSV.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/tune_options.hpp"
#include "cli/output/page.hpp"
#include "planner/tuning/trial_schedule.hpp"

namespace shardwright::cli {

// "complete", "stopped", "diverged", or "unfinished" where the tuning was interrupted.
std::string trial_state(const planner::Study& study, const planner::Trial& trial, bool interrupted);

void add_trials(Page& page, const TuningSetup& setup, const planner::Study& study,
                bool interrupted);
nlohmann::ordered_json trials_json(const TuningSetup& setup, const planner::Study& study,
                                   bool interrupted);
// A line for each trial, in the order of their numbers.
std::string trials_csv(const TuningSetup& setup, const planner::Study& study, bool interrupted);

// `undisturbed` is the median time of the same studies without failures, checkpoints and
// stragglers.
void add_tuning_forecast(Page& page, const TuningSetup& setup,
                         const planner::StudyForecast& forecast, Seconds undisturbed);
nlohmann::ordered_json tuning_forecast_json(const TuningSetup& setup,
                                            const planner::StudyForecast& forecast,
                                            Seconds undisturbed);

}  // namespace shardwright::cli
