// The whole run: days, GPU-hours, dollars and energy until a plan has trained a number of tokens,
// with the failures, checkpoints and pauses of a run profile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/scenario.hpp"
#include "sim/run/run_history.hpp"
#include "sim/run/run_simulation.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

struct ForecastRequest {
  // A plan that breaks no rule.
  Scenario scenario;
  RunSpec run;
  // The file of the run profile, which errors name; empty: they say the name of the profile.
  std::string run_file{};
  double tokens = 0.0;
  sim::RunOptions options;
  // Also say what would help most, which simulates the run once more for each thing.
  bool gains = true;
  // Receives the share of the work that is done. Without effect on the result.
  std::function<void(double share)> progress;
};

// A stage of the run: consecutive steps of one plan.
struct ForecastStage {
  std::string name;
  Plan plan;
  double tokens = 0.0;
  std::int64_t steps = 0;
  sim::StepResult step;
};

struct RunExpense {
  double gpu_hours = 0.0;
  // Zero if no profile has a price.
  Dollars cost;
  Joules energy;
};

// What a tenth less of one thing saves of the wall time.
struct RunGain {
  std::string name;
  double share = 0.0;
};

struct Forecast {
  std::vector<ForecastStage> stages;
  std::int64_t steps = 0;
  // The GPUs of the plan, and their mean over the time of all stages, whose data-parallel degrees
  // may differ from the plan's.
  std::int64_t gpus = 0;
  double mean_gpus = 0.0;
  // Seconds of the model are those without errors of the step time.
  sim::RunModel model;
  sim::RunStatistics statistics;
  // The interval of the shortest run, and the formulas of Young and Daly; infinite without
  // failures.
  Seconds best_interval, young_interval, daly_interval;
  // Means over the runs, by the use of the wall time; the job's accelerators alone.
  EnumArray<sim::RunPart, RunExpense> expenses{};
  // The hot spares, which wait at idle power.
  RunExpense spares;
  // Jobs and spares, by contract; zero if it is not offered.
  EnumArray<Contract, Dollars> costs{};
  double power_usage_effectiveness = 1.0;
  // Kept steps over wall time.
  double goodput = 0.0;
  double mfu = 0.0;
  // Largest first.
  std::vector<RunGain> gains;

  RunExpense total() const;
  // The tokens that are trained when this share of the run's work is done.
  double tokens_at(double share) const;
};

// The stages of the run and their simulated steps. Throws InputError, which names the profile, if
// the plan of a stage breaks a rule, the stages have more tokens than the run, or the profile asks
// for what does not go with a plan on several pools.
std::vector<ForecastStage> run_stages(const ForecastRequest& request);

// The stage that needs most beyond the memory of its accelerators if one does not fit, otherwise
// null.
const ForecastStage* stage_beyond_memory(const std::vector<ForecastStage>& stages,
                                         const ClusterSpec& cluster);

// Throws InputError, which names the profile, if a stage does not fit.
void require_memory(const ForecastRequest& request, const std::vector<ForecastStage>& stages);

// The run of these stages as the simulation of weeks sees it; its interval is zero if the profile
// states none.
sim::RunModel run_model(const ForecastRequest& request, const std::vector<ForecastStage>& stages);

// The price of an accelerator by contract; zero where it is not offered, or no profile has one.
// `of_cluster`: the price on demand where the profile of the run states none.
EnumArray<Contract, DollarsPerSecond> contract_prices(const PriceSpec& price,
                                                      DollarsPerSecond of_cluster);

// The 80 % interval of the step time over the predicted one, from which runs draw theirs.
struct StepSpread {
  double low = 1.0, high = 1.0;
};

// Ends early once a stop is requested (`options.stop`); the forecast then means nothing.
Forecast forecast(const ForecastRequest& request, std::vector<ForecastStage> stages,
                  StepSpread step_interval);

// The runs behind a forecast over time, until nearly all have ended. Without times if the median of
// them does not end.
sim::RunTrajectory trajectory(const ForecastRequest& request, const Forecast& forecast,
                              StepSpread step_interval, std::size_t points);

}  // namespace shardwright::planner
