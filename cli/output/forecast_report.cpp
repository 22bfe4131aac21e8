#include "cli/output/forecast_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/output/figures.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/run_json.hpp"
#include "planner/run_wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;
using planner::contract_text;
using planner::kLeastGain;
using planner::money_text;
using planner::tokens_text;
using sim::RunPart;

constexpr double kJoulesPerKilowattHour = 3.6e6;

std::string days(double seconds) {
  return format_number(seconds / kSecondsPerDay);
}

// Runs that do not end have infinite figures.
std::string spread_text(const sim::Percentiles& of, const char* unit, const char* verb) {
  if (!std::isfinite(of.p50)) return "unknown: most runs do not end";
  const std::string median = format_number(of.p50) + unit;
  if (!std::isfinite(of.p90))
    return fmt::format("{}; 10 % of runs {} less than {}, and some do not end", median, verb,
                       format_number(of.p10));
  return fmt::format("{}; 80 % of runs {} {} to {}", median, verb, format_number(of.p10),
                     format_number(of.p90));
}

std::string time_text(const planner::Forecast& forecast) {
  const sim::Percentiles& wall = forecast.statistics.wall;
  return spread_text(
      {wall.p10 / kSecondsPerDay, wall.p50 / kSecondsPerDay, wall.p90 / kSecondsPerDay}, " days",
      "take");
}

std::string cost_text(const planner::ForecastRequest& request, const planner::Forecast& forecast) {
  const PriceSpec& price = request.run.price;
  const bool has_price = forecast.costs[Contract::OnDemand] > Dollars();
  if (has_price && forecast.costs[price.contract] <= Dollars())
    return fmt::format(
        "unknown: the run profile has no {} price; give one by --set run.price.{}_ratio=0.4",
        contract_text(price.contract), name_of(price.contract));
  if (!has_price)
    return "unknown: no profile has a price; give one by --set run.price.dollars_per_gpu_hour=2";
  std::string text = fmt::format("{} {}", money_text(forecast.costs[price.contract]),
                                 contract_text(price.contract));
  std::vector<std::string> others;
  for (const Contract contract : enumerators<Contract>()) {
    if (contract != price.contract && forecast.costs[contract] > Dollars())
      others.push_back(
          fmt::format("{} {}", money_text(forecast.costs[contract]), contract_text(contract)));
  }
  if (!others.empty()) text += fmt::format(" ({})", fmt::join(others, ", "));
  if (forecast.model.spare_nodes() > 0)
    text += fmt::format(", of it {} for {}", money_text(forecast.spares.cost),
                        format_plural(forecast.model.spare_nodes(), "spare node"));
  return text;
}

std::string checkpoint_text(const planner::ForecastRequest& request,
                            const planner::Forecast& forecast) {
  const sim::CheckpointCost& cost = forecast.model.checkpoint;
  std::string text = fmt::format("{} every {}, {}; each stalls the run for {}",
                                 format_bytes(cost.bytes), format_time(forecast.model.interval),
                                 name_of(request.run.checkpoint.kind), format_time(cost.stall));
  if (cost.stored > cost.stall)
    text += fmt::format(" and is stored {} later", format_time(cost.stored - cost.stall));
  if (!std::isfinite(forecast.young_interval.value())) return text;
  return text +
         fmt::format(". Best interval: {} (Young {}, Daly {})", format_time(forecast.best_interval),
                     format_time(forecast.young_interval), format_time(forecast.daly_interval));
}

std::string energy_text(const planner::Forecast& forecast) {
  const Joules energy = forecast.total().energy + forecast.spares.energy;
  return fmt::format("{} MWh, with a power usage effectiveness of {}",
                     format_number(energy.value() / kJoulesPerKilowattHour / 1000.0),
                     format_number(forecast.power_usage_effectiveness));
}

Table part_table(const planner::Forecast& forecast) {
  const bool priced = forecast.total().cost > Dollars();
  std::vector<Column> columns = {
      {"time of the run", ColumnKind::Prose}, {"time", kNumber, "days"}, {"share", kNumber, "%"}};
  if (priced) columns.push_back({"cost", kNumber});
  Table table(std::move(columns));
  const Seconds wall = forecast.statistics.mean_wall();
  const auto row = [&](const std::string& name, Seconds time, Dollars cost) {
    std::vector<std::string> cells = {name, format_fixed(time.value() / kSecondsPerDay, 2),
                                      format_percent(time / wall, 2)};
    if (priced) cells.push_back(money_text(cost));
    table.add_row(std::move(cells));
  };
  std::vector<RunPart> parts;
  for (const RunPart part : enumerators<RunPart>())
    if (forecast.statistics.mean[part] > Seconds()) parts.push_back(part);
  std::ranges::stable_sort(parts, std::greater<>(),
                           [&](RunPart part) { return forecast.statistics.mean[part]; });
  for (const RunPart part : parts)
    row(planner::part_text(part), forecast.statistics.mean[part], forecast.expenses[part].cost);
  row("all, mean of the simulated runs", wall, forecast.total().cost);
  return table;
}

void add_interruptions(Page& page, const planner::Forecast& forecast) {
  std::vector<std::pair<double, FailureCause>> causes;
  double all = 0.0;
  for (const FailureCause cause : enumerators<FailureCause>()) {
    const double count = forecast.statistics.by_cause[cause];
    all += count;
    if (count > 0.0) causes.emplace_back(count, cause);
  }
  if (causes.empty()) return;
  std::ranges::stable_sort(causes, std::greater<>(), &std::pair<double, FailureCause>::first);
  Table table({{"interruptions", ColumnKind::Prose}, {"mean", kNumber}, {"share", kNumber, "%"}});
  for (const auto& [count, cause] : causes)
    table.add_row({planner::cause_text(cause), format_number(count), format_percent(count / all)});
  page.table(table);
}

void add_gains(Page& page, const planner::Forecast& forecast) {
  std::vector<std::string> lines;
  for (const planner::RunGain& gain : forecast.gains) {
    if (gain.share < kLeastGain) continue;
    lines.push_back(fmt::format("{}: {} % shorter", planner::gain_text(gain.name),
                                format_percent(gain.share, 2)));
  }
  if (lines.empty()) return;
  page.heading("With 10 % less of each, the run would be");
  page.bullets(lines);
}

// Only the page that --html writes has drawings.
void add_figures(Page& page, const planner::Forecast& forecast) {
  std::vector<Bar> lost, gains;
  const Seconds wall = forecast.statistics.mean_wall();
  for (const RunPart part : enumerators<RunPart>()) {
    const Seconds time = forecast.statistics.mean[part];
    if (part != RunPart::Step && time > Seconds())
      lost.push_back({planner::part_text(part), time.value(),
                      fmt::format("{} % of the run", format_percent(time / wall, 2))});
  }
  for (const planner::RunGain& gain : forecast.gains) {
    if (gain.share >= kLeastGain)
      gains.push_back({planner::gain_text(gain.name), gain.share,
                       fmt::format("{} % shorter", format_percent(gain.share, 2))});
  }
  page.figure("Time that does not go into steps", bars_figure(lost));
  page.figure("With 10 % less of each", bars_figure(gains));
}

void add_stage_table(Page& page, const planner::Forecast& forecast) {
  if (forecast.stages.size() < 2) return;
  Table table({{"stage"},
               {"tokens", kNumber},
               {"steps", kNumber},
               {"step", kNumber, "s"},
               {"MFU", kNumber, "%"},
               {"plan", ColumnKind::Prose}});
  for (const planner::ForecastStage& stage : forecast.stages) {
    table.add_row({stage.name, tokens_text(stage.tokens), format_count(stage.steps),
                   format_number(stage.step.step.value(), 4),
                   format_percent(stage.step.throughput.mfu),
                   fmt::format("{}, {} of {}", plan_text(stage.plan),
                               format_plural(stage.plan.global_batch, "sequence"),
                               format_count(stage.plan.seq_len))});
  }
  page.table(table);
}

// The step of the stage that trains most tokens.
std::string step_text(const planner::Forecast& forecast) {
  const planner::ForecastStage& stage =
      *std::ranges::max_element(forecast.stages, {}, &planner::ForecastStage::tokens);
  std::string text = fmt::format("{}, MFU {} %", format_time(stage.step.step),
                                 format_percent(stage.step.throughput.mfu));
  if (forecast.stages.size() > 1) text += fmt::format(" in stage {}", stage.name);
  return text;
}

ordered_json percentiles_json(const sim::Percentiles& of, double unit) {
  return {{"p10", finite_or_null(of.p10 / unit)},
          {"p50", finite_or_null(of.p50 / unit)},
          {"p90", finite_or_null(of.p90 / unit)}};
}

ordered_json parts_json(const planner::Forecast& forecast) {
  ordered_json parts = ordered_json::object();
  for (const RunPart part : enumerators<RunPart>()) {
    const planner::RunExpense& expense = forecast.expenses[part];
    parts[name_of(part)] = {{"time_s", forecast.statistics.mean[part].value()},
                            {"gpu_hours", expense.gpu_hours},
                            {"cost_usd", expense.cost.value()},
                            {"energy_kwh", expense.energy.value() / kJoulesPerKilowattHour}};
  }
  return parts;
}

ordered_json checkpoint_json(const planner::ForecastRequest& request,
                             const planner::Forecast& forecast) {
  const sim::CheckpointCost& cost = forecast.model.checkpoint;
  return {{"interval_s", forecast.model.interval.value()},
          {"bytes", cost.bytes.value()},
          {"stall_s", cost.stall.value()},
          {"stored_s", cost.stored.value()},
          {"load_s", cost.load.value()},
          {"kind", name_of(request.run.checkpoint.kind)},
          {"best_interval_s", forecast.best_interval.value()},
          {"young_interval_s", finite_or_null(forecast.young_interval.value())},
          {"daly_interval_s", finite_or_null(forecast.daly_interval.value())}};
}

ordered_json stages_json(const planner::Forecast& forecast) {
  ordered_json stages = ordered_json::array();
  for (const planner::ForecastStage& stage : forecast.stages) {
    stages.push_back({{"name", stage.name},
                      {"tokens", stage.tokens},
                      {"steps", stage.steps},
                      {"step_s", stage.step.step.value()},
                      {"mfu", stage.step.throughput.mfu},
                      {"plan", to_json(stage.plan)}});
  }
  return stages;
}

ordered_json dollars_json(Dollars dollars) {
  return dollars > Dollars() ? ordered_json(dollars.value()) : ordered_json();
}

}  // namespace

void add_forecast(Page& page, const planner::ForecastRequest& request,
                  const planner::Forecast& forecast) {
  const Scenario& scenario = request.scenario;
  const sim::RunStatistics& statistics = forecast.statistics;
  page.heading(cluster_text(scenario));
  std::vector<std::pair<std::string, std::string>> facts = {
      {"run", fmt::format("{} tokens in {}, run profile {}", tokens_text(request.tokens),
                          format_plural(forecast.steps, "step"), request.run.name)},
      {"plan", plan_text(scenario.plan)},
      {"step", step_text(forecast)}};
  if (!statistics.most_end()) {
    page.facts(facts);
    page.warning(fmt::format(
        "{} of {} simulated runs do not end, because failures leave them no progress or "
        "no nodes",
        format_count(statistics.unfinished), format_count(statistics.runs)));
    return;
  }
  facts.insert(facts.end(),
               {{"time", time_text(forecast)},
                {"GPU-hours", format_number(forecast.total().gpu_hours)},
                {"cost", cost_text(request, forecast)},
                {"energy", energy_text(forecast)},
                {"goodput",
                 fmt::format("{} % of the time goes into steps that are kept; MFU of the run {} %",
                             format_percent(forecast.goodput), format_percent(forecast.mfu))},
                {"interruptions", spread_text(statistics.interruptions, "", "have")},
                {"checkpoint", checkpoint_text(request, forecast)}});
  page.facts(facts);
  if (statistics.unfinished > 0) {
    page.warning(
        fmt::format("{} of {} simulated runs do not end, because failures leave them no "
                    "progress; means are those of the others, and what would help most is left out",
                    format_count(statistics.unfinished), format_count(statistics.runs)));
  }
  add_stage_table(page, forecast);
  page.table(part_table(forecast));
  add_interruptions(page, forecast);
  add_gains(page, forecast);
  add_figures(page, forecast);
}

void add_trajectory(Page& page, const planner::Forecast& forecast,
                    const sim::RunTrajectory& trajectory) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < trajectory.times.size(); ++i) {
    const double tokens = forecast.tokens_at(trajectory.progress[i].p50);
    points.push_back({trajectory.times[i].value(), tokens, days(trajectory.times[i].value()),
                      tokens_text(tokens)});
  }
  page.figure("Tokens that half of the simulated runs have trained",
              curve_figure(points, "days", "tokens", CurveAxes::Linear));
}

ordered_json forecast_json(const planner::ForecastRequest& request,
                           const planner::Forecast& forecast) {
  const sim::RunStatistics& statistics = forecast.statistics;
  const planner::RunExpense total = forecast.total();
  const Seconds wall = statistics.mean_wall();
  const bool ends = statistics.most_end();
  ordered_json by_cause = ordered_json::object(), lost = ordered_json::object(),
               gains = ordered_json::object(), costs = ordered_json::object();
  for (const FailureCause cause : enumerators<FailureCause>())
    by_cause[name_of(cause)] = ends ? ordered_json(statistics.by_cause[cause]) : ordered_json();
  for (const RunPart part : enumerators<RunPart>()) {
    if (part != RunPart::Step)
      lost[name_of(part)] = ends ? finite_or_null(statistics.mean[part] / wall) : ordered_json();
  }
  for (const planner::RunGain& gain : forecast.gains) gains[gain.name] = gain.share;
  for (const Contract contract : enumerators<Contract>())
    costs[name_of(contract)] = dollars_json(forecast.costs[contract]);
  ordered_json interruptions = percentiles_json(statistics.interruptions, 1.0);
  interruptions["by_cause"] = std::move(by_cause);
  const Joules energy = total.energy + forecast.spares.energy;
  return {{"plan", to_json(request.scenario.plan)},
          {"run", to_json(request.run)},
          {"steps", forecast.steps},
          {"tokens", request.tokens},
          {"gpus", forecast.gpus},
          {"days", percentiles_json(statistics.wall, kSecondsPerDay)},
          {"gpu_hours", ends ? finite_or_null(total.gpu_hours) : ordered_json()},
          {"cost_usd", dollars_json(forecast.costs[request.run.price.contract])},
          {"cost_by_contract_usd", std::move(costs)},
          {"energy_kwh",
           ends ? finite_or_null(energy.value() / kJoulesPerKilowattHour) : ordered_json()},
          {"power_usage_effectiveness_ratio", forecast.power_usage_effectiveness},
          {"goodput", ends ? ordered_json(forecast.goodput) : ordered_json()},
          {"mfu_of_run", ends ? ordered_json(forecast.mfu) : ordered_json()},
          {"interruptions", std::move(interruptions)},
          {"checkpoint", checkpoint_json(request, forecast)},
          {"lost", std::move(lost)},
          {"gains", std::move(gains)},
          {"mean_wall_s", ends ? finite_or_null(wall.value()) : ordered_json()},
          {"parts", ends ? parts_json(forecast) : ordered_json()},
          {"spares",
           {{"nodes", forecast.model.spare_nodes()},
            {"gpu_hours", forecast.spares.gpu_hours},
            {"cost_usd", forecast.spares.cost.value()},
            {"energy_kwh", forecast.spares.energy.value() / kJoulesPerKilowattHour}}},
          {"stages", stages_json(forecast)},
          {"simulated_runs", statistics.runs},
          {"unfinished_runs", statistics.unfinished}};
}

void add_runs(Page& page, const planner::ForecastRequest& request,
              const std::vector<std::optional<planner::Forecast>>& forecasts) {
  const Contract contract = request.run.price.contract;
  Table table({{"#", kNumber},
               {"run", kNumber, "days"},
               {"80 % of runs", ColumnKind::Text, "days"},
               {"GPU-hours", kNumber},
               {"cost", kNumber, name_of(contract)},
               {"energy", kNumber, "MWh"},
               {"goodput", kNumber, "%"},
               {"interruptions", kNumber}});
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    if (!forecasts[i]) {
      table.add_row({std::to_string(i + 1), "does not take the stages", "", "", "", "", "", ""});
      continue;
    }
    const planner::Forecast& forecast = *forecasts[i];
    const sim::RunStatistics& statistics = forecast.statistics;
    if (!statistics.most_end()) {
      table.add_row({std::to_string(i + 1), "most runs do not end", "", "", "", "", "", ""});
      continue;
    }
    const Joules energy = forecast.total().energy + forecast.spares.energy;
    const auto ends_after = [](double seconds) {
      return std::isfinite(seconds) ? days(seconds) : "no end";
    };
    table.add_row(
        {std::to_string(i + 1), ends_after(statistics.wall.p50),
         fmt::format("{} to {}", ends_after(statistics.wall.p10), ends_after(statistics.wall.p90)),
         format_count(std::llround(forecast.total().gpu_hours)),
         forecast.costs[contract] > Dollars() ? money_text(forecast.costs[contract]) : "",
         format_number(energy.value() / kJoulesPerKilowattHour / 1000.0),
         format_percent(forecast.goodput),
         std::isfinite(statistics.interruptions.p50) ? format_number(statistics.interruptions.p50)
                                                     : ""});
  }
  page.heading(fmt::format("The whole run of {} tokens, run profile {}",
                           tokens_text(request.tokens), request.run.name));
  page.table(table);
}

void add_laws(Page& page, const std::vector<std::string>& laws) {
  if (laws.empty()) return;
  page.heading(planner::kLawsTitle);
  page.bullets(laws);
}

}  // namespace shardwright::cli
