#include "cli/tuning/tune_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/output/output_file.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/forecast.hpp"
#include "planner/objective.hpp"
#include "planner/run_wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;
using planner::Study;
using planner::Trial;

constexpr double kHour = 3600.0;

// At the scale of the values that trials have.
std::string value_text_of(double value) {
  return fmt::format("{:.4g}", value);
}

std::int64_t steps_of(const TuningSetup& setup, const Trial& trial) {
  return trial.losses.empty() ? 0 : setup.steps_at(trial.values, trial.losses.size() - 1);
}

// The plan file of a trial's batch, if it is varied, and the options of `shardwright run` that set
// its values.
std::string options_of(const TuningSetup& setup, const Trial& trial) {
  std::vector<std::string> options = {fmt::format("--steps {}", setup.all_steps(trial.values))};
  const std::int64_t batch = setup.plan_of(trial.values).global_batch;
  if (batch != setup.scenario.plan.global_batch)
    options.insert(options.begin(), fmt::format("plans/batch-{}.json", batch));
  for (std::size_t i = 0; i < trial.values.size(); ++i) {
    const planner::TunedName name = setup.rules.parameters[i].name;
    if (name != planner::TunedName::GlobalBatch)
      options.push_back(fmt::format("--{} {}", name_of(name), trial.values[i]));
  }
  return fmt::format("{}", fmt::join(options, " "));
}

// The ranks of all trials at once.
std::int64_t busy_ranks(const TuningSetup& setup) {
  return static_cast<std::int64_t>(setup.workers) * setup.scenario.plan.world_size();
}

// The hours of the ranks that a study holds from its first job to its last.
double gpu_hours(const TuningSetup& setup, double wall_s) {
  return static_cast<double>(busy_ranks(setup)) * wall_s / kHour;
}

// On several pools their mean over the plan's nodes, because there are spares of each pool.
double accelerators_of_spare(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (!names_pools(plan)) return static_cast<double>(scenario.cluster.node.accelerators);
  double nodes = 0.0;
  for (const ClusterSpec& pool : pool_clusters(scenario.cluster, plan))
    nodes += static_cast<double>(ranks_on_pool(plan, pool.name)) /
             static_cast<double>(pool.accelerators_per_node());
  return static_cast<double>(plan.world_size()) / nodes;
}

// Those of its spare nodes.
double spare_gpu_hours(const TuningSetup& setup, double wall_s) {
  return static_cast<double>(setup.spare_nodes()) * accelerators_of_spare(setup.scenario) * wall_s /
         kHour;
}

DollarsPerSecond price_of(const TuningSetup& setup) {
  const PriceSpec& price = setup.run.price;
  return planner::contract_prices(
      price,
      planner::accelerator_price(setup.scenario.cluster, setup.scenario.plan))[price.contract];
}

Dollars cost_of(const TuningSetup& setup, double wall_s) {
  return price_of(setup) *
         Seconds((gpu_hours(setup, wall_s) + spare_gpu_hours(setup, wall_s)) * kHour);
}

std::string tuning_cost_text(const TuningSetup& setup, double wall_s) {
  if (price_of(setup) <= DollarsPerSecond()) return "unknown: no profile has a price";
  std::string text = planner::money_text(cost_of(setup, wall_s));
  if (setup.spare_nodes() > 0)
    text += fmt::format(" with {}", format_plural(setup.spare_nodes(), "spare node"));
  return text;
}

std::string trials_at_once(const TuningSetup& setup, double use) {
  std::string text = fmt::format("{} on {}{}, busy for {} % of the time",
                                 format_plural(static_cast<std::int64_t>(setup.workers), "trial"),
                                 format_plural(setup.scenario.plan.world_size(), "GPU"),
                                 setup.workers > 1 ? " each" : "", format_percent(use));
  const std::int64_t idle = setup.ranks - busy_ranks(setup);
  if (idle > 0)
    text += fmt::format("; {} of {} ranks are left over and not paid for", format_count(idle),
                        format_count(setup.ranks));
  return text;
}

// The time of all trials, each trained to its end; where batches are varied, that of their mean.
Seconds exhaustive_time(const TuningSetup& setup) {
  Seconds all;
  for (const auto& [batch, step] : setup.step_times) {
    const std::int64_t steps = setup.steps_of_batch(batch, setup.rules.rungs.size() - 1);
    all += static_cast<double>(steps) * step;
  }
  const double rounds =
      std::ceil(static_cast<double>(setup.rules.trials) / static_cast<double>(setup.workers));
  return rounds * (setup.startup + all / static_cast<double>(setup.step_times.size()));
}

}  // namespace

std::string trial_state(const Study& study, const Trial& trial, bool interrupted) {
  if (trial.diverged()) return "diverged";
  if (trial.losses.size() == study.rules.rungs.size()) return "complete";
  return trial.running || interrupted ? "unfinished" : "stopped";
}

void add_trials(Page& page, const TuningSetup& setup, const Study& study, bool interrupted) {
  std::vector<Column> columns = {{"trial", kNumber}};
  for (const planner::TunedParameter& parameter : setup.rules.parameters)
    columns.push_back({name_of(parameter.name), kNumber});
  columns.push_back({"steps", kNumber});
  columns.push_back({"loss", kNumber, "nats"});
  columns.push_back({"state", ColumnKind::Text});
  Table table(std::move(columns));
  const std::vector<std::size_t> order = planner::ranking(study);
  for (const std::size_t i : order) {
    const Trial& trial = study.trials[i];
    std::vector<std::string> cells = {std::to_string(i)};
    for (const double value : trial.values) cells.push_back(value_text_of(value));
    cells.push_back(format_count(steps_of(setup, trial)));
    const bool has = !trial.losses.empty() && std::isfinite(trial.losses.back());
    cells.push_back(has ? format_fixed(trial.losses.back(), 4) : "");
    cells.push_back(trial_state(study, trial, interrupted));
    table.add_row(std::move(cells));
  }
  page.table(table);
  if (order.empty()) return;
  const Trial& best = study.trials[order.front()];
  if (!best.diverged() && !best.losses.empty())
    page.paragraph(fmt::format("Best: trial {}: {}", order.front(), options_of(setup, best)));
  if (best.diverged())
    page.warning("all trials have diverged: their ranges hold no value that trains");
}

ordered_json trials_json(const TuningSetup& setup, const Study& study, bool interrupted) {
  ordered_json list = ordered_json::array();
  for (const std::size_t i : planner::ranking(study)) {
    const Trial& trial = study.trials[i];
    ordered_json values = ordered_json::object();
    for (std::size_t p = 0; p < trial.values.size(); ++p)
      values[name_of(setup.rules.parameters[p].name)] = trial.values[p];
    ordered_json losses = ordered_json::array();
    for (std::size_t rung = 0; rung < trial.losses.size(); ++rung) {
      const double loss = trial.losses[rung];
      losses.push_back(
          {{"steps", setup.steps_at(trial.values, rung)}, {"loss", finite_or_null(loss)}});
    }
    list.push_back({{"trial", i},
                    {"values", values},
                    {"state", trial_state(study, trial, interrupted)},
                    {"losses", losses}});
  }
  return list;
}

std::string trials_csv(const TuningSetup& setup, const Study& study, bool interrupted) {
  std::string text = "trial";
  for (const planner::TunedParameter& parameter : setup.rules.parameters)
    text += fmt::format(",{}", name_of(parameter.name));
  text += ",steps,loss,state\n";
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    text += std::to_string(i);
    for (const double value : trial.values) text += fmt::format(",{}", value);
    const bool has = !trial.losses.empty() && std::isfinite(trial.losses.back());
    text += fmt::format(",{},{},{}\n", steps_of(setup, trial),
                        has ? fmt::format("{}", trial.losses.back()) : "",
                        trial_state(study, trial, interrupted));
  }
  return text;
}

void add_tuning_forecast(Page& page, const TuningSetup& setup,
                         const planner::StudyForecast& forecast, Seconds undisturbed) {
  const auto days = [](double seconds) { return format_number(seconds / kSecondsPerDay); };
  const double wall = forecast.wall.p50;
  std::vector<std::string> jobs;
  for (std::size_t rung = 0; rung < forecast.jobs.size(); ++rung)
    jobs.push_back(fmt::format("{} to {:.3g} %", format_number(forecast.jobs[rung]),
                               100.0 * setup.rules.rungs[rung]));
  if (!std::isfinite(wall)) {
    page.warning("failures leave the trials no progress, so that the tuning does not end");
    return;
  }
  const double use =
      forecast.busy.value() / (static_cast<double>(setup.workers) * std::max(wall, 1e-9));
  page.facts({{"time", fmt::format("{} days; 80 % of studies take {} to {}", days(wall),
                                   days(forecast.wall.p10), days(forecast.wall.p90))},
              {"GPU-hours", format_number(gpu_hours(setup, wall))},
              {"cost", tuning_cost_text(setup, wall)},
              {"jobs", fmt::format("{} of the budget", fmt::join(jobs, ", "))},
              {"at once", trials_at_once(setup, use)},
              {"undisturbed", fmt::format("{} days without failures, checkpoints and stragglers",
                                          days(undisturbed.value()))},
              {"in full", fmt::format("{} days if every trial were trained to its end",
                                      days(exhaustive_time(setup).value()))}});
}

ordered_json tuning_forecast_json(const TuningSetup& setup, const planner::StudyForecast& forecast,
                                  Seconds undisturbed) {
  const auto days = [](double seconds) { return finite_or_null(seconds / kSecondsPerDay); };
  const double wall = forecast.wall.p50;
  return {{"days",
           {{"p10", days(forecast.wall.p10)},
            {"p50", days(forecast.wall.p50)},
            {"p90", days(forecast.wall.p90)}}},
          {"gpu_hours", finite_or_null(gpu_hours(setup, wall))},
          {"spare_gpu_hours", finite_or_null(spare_gpu_hours(setup, wall))},
          {"cost_usd", price_of(setup) > DollarsPerSecond()
                           ? finite_or_null(cost_of(setup, wall).value())
                           : ordered_json()},
          {"busy_gpu_hours",
           finite_or_null(forecast.busy.value() *
                          static_cast<double>(setup.scenario.plan.world_size()) / kHour)},
          {"workers", setup.workers},
          {"spare_nodes", setup.spare_nodes()},
          {"undisturbed_days", days(undisturbed.value())},
          {"jobs", forecast.jobs},
          {"rungs", setup.rules.rungs},
          {"days_in_full", days(exhaustive_time(setup).value())}};
}

}  // namespace shardwright::cli
