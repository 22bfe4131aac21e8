#include "validation/run_validation.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/spec/scenario.hpp"
#include "planner/forecast.hpp"
#include "sim/run/run_simulation.hpp"
#include "validation/prediction_errors.hpp"
#include "validation/validated_ground.hpp"
#include "validation/validation.hpp"

namespace shardwright::validation {
namespace {

using planner::Forecast;
using planner::ForecastStage;

constexpr double kHoursPerDay = 24.0;
// Each of many runs is forecast, and rows run in parallel.
constexpr std::int64_t kSimulatedRuns = 500;

RunRow described(const PublishedRun& run) {
  RunRow row;
  row.id = run.setup.id;
  row.source = run.setup.source.title;
  row.grade = run.setup.grade;
  row.tokens = run.tokens;
  row.counted = run.measured.counted;
  row.others = run.others;
  row.filled_in = run.setup.assumed;
  return row;
}

// Errors of the steps and of the rest, as far as the source tells them apart.
void split_error(const PublishedRun& run, const Forecast& forecast, RunRow& row) {
  const MeasuredRun& measured = run.measured;
  const sim::StepResult& step = forecast.stages.back().step;
  double steps = 0.0;
  if (measured.counted == CountedHours::Steps) {
    steps = 1.0 + row.error();
  } else if (measured.tokens_per_s_per_gpu > 0.0) {
    steps = measured.tokens_per_s_per_gpu / step.throughput.tokens_per_s_per_gpu;
  } else if (measured.step_s > 0.0) {
    steps = step.step.value() / measured.step_s;
  } else if (measured.goodput > 0.0) {
    steps = (1.0 + row.error()) * forecast.goodput / measured.goodput;
  } else {
    return;
  }
  row.step_error = steps - 1.0;
  row.run_error = (1.0 + row.error()) / steps - 1.0;
}

// Simulates as much of the run as takes the days in which interruptions were counted, on all nodes
// of the plan: sources count in stages of that size.
void compare_interruptions(const PublishedRun& run, const Forecast& forecast, RunRow& row) {
  const MeasuredRun& measured = run.measured;
  if (measured.interruptions <= 0.0) return;
  sim::RunModel model = forecast.model;
  const Seconds window(measured.interruption_days * kSecondsPerDay);
  const double share = window / forecast.statistics.mean_wall();
  for (Seconds& work : model.work) work *= share;
  model.interval = std::min(model.interval, model.total_work());
  for (sim::FailureProcess& process : model.failures)
    process.rate *= static_cast<double>(forecast.gpus) / forecast.mean_gpus;
  const auto add = [&](double count, bool unexpected) {
    if (count <= 0.0) return;
    const sim::RunStatistics statistics =
        sim::simulate_runs(model, {.runs = kSimulatedRuns, .threads = 1});
    row.interruptions.push_back(
        {count, measured.interruption_days, unexpected, statistics.interruptions});
  };
  add(measured.interruptions, false);
  for (sim::FailureProcess& process : model.failures)
    if (process.planned) process.kept = 0.0;
  add(measured.unexpected, true);
}

// The same runs with both intervals.
void compare_intervals(const PublishedRun& run, const Forecast& forecast, RunRow& row) {
  if (run.measured.checkpoint_interval_s <= 0.0) return;
  const auto mean_wall = [&](Seconds interval) {
    sim::RunModel model = forecast.model;
    model.interval = interval;
    return sim::simulate_runs(model, {.runs = kSimulatedRuns, .threads = 1}).mean_wall();
  };
  const Seconds published(run.measured.checkpoint_interval_s);
  const double extra = mean_wall(published) / mean_wall(forecast.best_interval) - 1.0;
  row.interval = {published, forecast.best_interval, forecast.young_interval,
                  forecast.daly_interval, extra};
}

void compare_hours(const PublishedRun& run, const Forecast& forecast, RunRow& row) {
  const bool steps = run.measured.counted == CountedHours::Steps;
  const double hours_per_day = forecast.mean_gpus * kHoursPerDay;
  row.measured_gpu_hours = run.gpu_hours();
  row.predicted_gpu_hours =
      steps ? forecast.expenses[sim::RunPart::Step].gpu_hours : forecast.total().gpu_hours;
  const sim::Percentiles& wall = forecast.statistics.wall;
  row.predicted_days = {wall.p10 / kSecondsPerDay, wall.p50 / kSecondsPerDay,
                        wall.p90 / kSecondsPerDay};
  const double counted = steps ? forecast.goodput : 1.0;
  row.low_gpu_hours = row.predicted_days.p10 * hours_per_day * counted;
  row.high_gpu_hours = row.predicted_days.p90 * hours_per_day * counted;
  row.measured_days = run.measured.wall_days;
  row.goodput = forecast.goodput;
  row.published_goodput = run.measured.goodput;
  row.step_mfu = forecast.mfu / forecast.goodput;
}

void compare_scenario(const PublishedRun& run, const Scenario& scenario, RunRow& row) {
  planner::ForecastRequest request;
  request.scenario = scenario;
  request.run = run.run;
  request.tokens = run.tokens;
  request.options = {.runs = kSimulatedRuns, .threads = 1};
  request.gains = false;
  row.model = scenario.model.name;
  row.cluster = scenario.cluster.name;
  row.stack = scenario.stack.name;
  row.parallelism = parallelism_text(scenario.plan);
  row.gpus = scenario.plan.world_size();
  const auto [low, high] = prediction_interval(1.0, false, class_of(run.setup, scenario));
  const Forecast forecast = planner::forecast(request, planner::run_stages(request), {low, high});
  if (!forecast.statistics.most_end()) {
    row.skipped = "failures leave the predicted run no progress";
    return;
  }
  compare_hours(run, forecast, row);
  split_error(run, forecast, row);
  compare_interruptions(run, forecast, row);
  compare_intervals(run, forecast, row);
}

// The rules that the row's plan or the plan of a stage breaks, in words.
std::string reason_of(const InputError& error) {
  return to_string(error.problems().front());
}

RunReport report_on(std::vector<RunRow> rows) {
  RunReport report;
  std::vector<calibration::ErrorSample> known, whole, inferred, all, steps, overheads;
  for (const RunRow& row : rows) {
    if (!row.skipped.empty()) {
      ++report.skipped;
      continue;
    }
    const calibration::ErrorSample sample{row.error(), row.covered()};
    all.push_back(sample);
    (row.plan_known ? known : inferred).push_back(sample);
    if (row.plan_known && row.counted == CountedHours::Run) whole.push_back(sample);
    if (!row.step_error) continue;
    steps.push_back({*row.step_error, false});
    if (row.counted == CountedHours::Run) overheads.push_back({*row.run_error, false});
  }
  report.known = calibration::summarise(known);
  report.whole = calibration::summarise(whole);
  report.inferred = calibration::summarise(inferred);
  report.all = calibration::summarise(all);
  report.steps = calibration::summarise(steps);
  report.overheads = calibration::summarise(overheads);
  report.rows = std::move(rows);
  return report;
}

using Json = nlohmann::ordered_json;

Json row_json(const RunRow& row) {
  Json json = {{"id", row.id}, {"source", row.source}, {"grade", row.grade}};
  json["status"] = row.skipped.empty() ? "ok" : "skipped";
  json["reason"] = row.skipped;
  Json others = Json::array();
  for (const OtherFigure& other : row.others)
    others.push_back({{"gpu_hours", other.gpu_hours}, {"where", other.where}});
  json["also_published"] = std::move(others);
  json["filled_in"] = row.filled_in;
  if (!row.skipped.empty()) return json;
  json.update(Json{
      {"profiles", {{"model", row.model}, {"cluster", row.cluster}, {"stack", row.stack}}},
      {"parallelism", row.parallelism},
      {"gpus", row.gpus},
      {"tokens", row.tokens},
      {"plan_known", row.plan_known},
      {"counted", name_of(row.counted)},
      {"gpu_hours",
       {{"measured", row.measured_gpu_hours},
        {"predicted", row.predicted_gpu_hours},
        {"interval", {row.low_gpu_hours, row.high_gpu_hours}}}},
      {"days",
       {{"measured", row.measured_days > 0.0 ? Json(row.measured_days) : Json()},
        {"p10", row.predicted_days.p10},
        {"p50", row.predicted_days.p50},
        {"p90", row.predicted_days.p90}}},
      {"error_pct", 100.0 * row.error()},
      {"step_error_pct", row.step_error ? Json(100.0 * *row.step_error) : Json()},
      {"run_error_pct", row.run_error ? Json(100.0 * *row.run_error) : Json()},
      {"mfu_of_steps", row.step_mfu},
      {"goodput", row.goodput},
      {"published_goodput", row.published_goodput > 0.0 ? Json(row.published_goodput) : Json()}});
  Json interruptions = Json::array();
  for (const ComparedInterruptions& stops : row.interruptions) {
    interruptions.push_back({{"unexpected", stops.unexpected},
                             {"days", stops.days},
                             {"measured", stops.measured},
                             {"p10", stops.predicted.p10},
                             {"p50", stops.predicted.p50},
                             {"p90", stops.predicted.p90},
                             {"inside", stops.inside()}});
  }
  json["interruptions"] = std::move(interruptions);
  json["checkpoint_interval"] = nullptr;
  if (const auto& interval = row.interval) {
    json["checkpoint_interval"] = {{"published_s", interval->published.value()},
                                   {"best_s", interval->best.value()},
                                   {"young_s", interval->young.value()},
                                   {"daly_s", interval->daly.value()},
                                   {"extra_pct", 100.0 * interval->extra}};
  }
  return json;
}

}  // namespace

RunRow compare_run(const PublishedRun& run) {
  RunRow row = described(run);
  row.skipped = run.setup.unsupported;
  if (!run.setup.scenario) return row;
  row.plan_known = !leaves_plan_open(run.setup);
  try {
    const Scenario scenario = resolved_scenario(run.setup);
    if (!run.setup.open.empty()) row.filled_in.push_back(choice_text(run.setup, scenario.plan));
    compare_scenario(run, scenario, row);
  } catch (const InputError& error) {
    row.skipped = reason_of(error);
  }
  return row;
}

RunReport validate_runs(const std::string& file, const std::string& grades, std::stop_token stop,
                        const std::function<void(double)>& progress) {
  std::vector<PublishedRun> runs;
  std::size_t other_grades = 0;
  for (PublishedRun& run : read_published_runs(file)) {
    if (run.setup.grade.empty() || grades.find(run.setup.grade) != std::string::npos) {
      runs.push_back(std::move(run));
    } else {
      ++other_grades;
    }
  }
  std::vector<std::optional<RunRow>> compared(runs.size());
  std::atomic<std::size_t> done = 0;
  tbb::parallel_for(std::size_t{0}, runs.size(), [&](std::size_t i) {
    if (stop.stop_requested()) return;
    compared[i] = compare_run(runs[i]);
    if (progress) progress(static_cast<double>(++done) / static_cast<double>(runs.size()));
  });
  std::vector<RunRow> rows;
  for (std::optional<RunRow>& row : compared)
    if (row) rows.push_back(std::move(*row));
  const bool partial = rows.size() < runs.size();
  RunReport report = report_on(std::move(rows));
  report.partial = partial;
  report.other_grades = other_grades;
  return report;
}

nlohmann::ordered_json to_json(const RunReport& report) {
  Json rows = Json::array();
  for (const RunRow& row : report.rows) rows.push_back(row_json(row));
  const auto summary = [](const calibration::ErrorSummary& of) {
    Json json = calibration::to_json(of);
    json["coverage"] = of.n > 0 ? Json(of.coverage) : Json();
    return json;
  };
  return {{"rows", std::move(rows)},
          {"summary",
           {{"plan_known", summary(report.known)},
            {"whole_runs", summary(report.whole)},
            {"plan_inferred", summary(report.inferred)},
            {"all", summary(report.all)},
            {"steps", calibration::to_json(report.steps)},
            {"overheads", calibration::to_json(report.overheads)},
            {"skipped", report.skipped},
            {"other_grades", report.other_grades}}}};
}

}  // namespace shardwright::validation
