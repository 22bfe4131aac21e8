// shardwright forecast
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/request_options.hpp"
#include "cli/options/run_options.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/options/settings.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/forecast_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/forecast.hpp"
#include "planner/run_search.hpp"
#include "planner/run_wording.hpp"
#include "planner/search.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kCommand = "shardwright forecast";

struct ForecastOptions {
  CommonOptions common;
  ScenarioOptions scenario;
  WholeRunOptions run;
  std::string threads;
};

// True if the options state a plan; without any degree the best one is searched.
bool states_plan(const ScenarioOptions& options) {
  if (!options.plan_file.empty() || !options.row.empty()) return true;
  ProblemList unused(kCommand);
  const nlohmann::json settings = plan_settings(options.settings, unused);
  const auto given = [&](const char* key) {
    const auto field = options.fields.find(key);
    return settings.contains(key) || (field != options.fields.end() && !field->second.empty());
  };
  return !unused.empty() || given("dp") || given("tp") || given("pp") || given("cp") || given("ep");
}

// True if the batch is left to the search.
bool asks_for_batch(const ScenarioOptions& options) {
  const auto batch = options.fields.find("global_batch");
  return batch != options.fields.end() && batch->second == "auto";
}

// The request for a plan of the scenario whose degrees are open. Its other fields become
// constraints.
RequestOptions request_of(const ScenarioOptions& options) {
  RequestOptions request;
  request.model = options.model;
  request.cluster = options.cluster;
  request.stack = options.stack;
  request.gpus = options.gpus;
  for (const auto& [key, value] : options.fields) {
    if (value.empty()) continue;
    if (key == "global_batch") {
      request.global_batch = value;
    } else if (key == "seq_len") {
      request.seq_len = value;
    } else if (key == "precision") {
      request.precision = value;
    } else if (key == kLoraField) {
      request.lora = value;
    } else {
      request.fix.push_back(key + "=" + value);
    }
  }
  ProblemList unused(kCommand);
  const nlohmann::json settings = plan_settings(options.settings, unused);
  for (const auto& [key, value] : settings.items())
    request.fix.push_back(key + "=" +
                          (value.is_string() ? value.get<std::string>() : value.dump()));
  for (const std::string& setting : options.settings) {
    for (const SpecKind kind : kPlanFileParts) {
      if (setting.starts_with(std::string(name_of(kind)) + "."))
        request.settings.push_back(setting);
    }
  }
  return request;
}

// The problems of the command line and of files, each with its file.
template <class Choose>
auto collect_problems(ProblemList& problems, const Choose& choose) -> decltype(choose()) {
  try {
    return choose();
  } catch (const InputError& error) {
    if (error.source() == kCommand) {
      problems.add_all("", error);
      return {};
    }
    return read_part("", problems, [&]() -> decltype(choose()) { throw error; });
  }
}

struct ChosenForecast {
  ChosenRun run;
  planner::ForecastRequest request;
  ChosenScenario scenario;
  // Behind the number of tokens.
  std::vector<std::string> laws;
  // What the command ends with because a search found no plan and reported it.
  std::optional<ExitCode> without_plan;
};

// Searches the best plan, which becomes that of the scenario; if the batch is open, the plan of the
// batch with the shortest run.
void search_plan(ChosenRequest& chosen, ChosenForecast& forecast) {
  planner::PlanRequest& request = chosen.request;
  const InterruptWatch interrupt;
  request.stop = interrupt.token();
  std::optional<planner::PlanCandidate> best;
  std::string searched = "the plan: the fastest one";
  if (request.global_batch == 0) {
    const planner::TokenNeed need = forecast.run.need_of(request.model);
    planner::RunSearch runs =
        planner::search_runs({request, {request.gpus}, forecast.run.request, need, step_spread_of});
    if (runs.choices.empty() && !runs.partial) {
      const std::vector<std::string> left_out = planner::left_out(runs, need);
      print_notes(kCommand, left_out.empty()
                                ? std::vector<std::string>{"no plan fits with any batch"}
                                : left_out);
    }
    if (!runs.choices.empty()) best = std::move(runs.choices[runs.fastest].plan);
    searched = fmt::format("plan and batch: those of the shortest run among {}",
                           format_plural(std::ssize(runs.choices), "batch"));
  } else {
    request.front = false;
    request.top = 1;
    planner::SearchResult result = planner::search(request);
    if (!result.plans.empty()) best = std::move(result.plans.front());
    if (result.infeasible) report_infeasible(request, *result.infeasible);
  }
  if (interrupt.interrupted()) {
    forecast.without_plan = ExitCode::Interrupted;
  } else if (!best) {
    forecast.without_plan = ExitCode::NoFeasiblePlan;
  }
  if (forecast.without_plan) return;
  ChosenScenario& scenario = forecast.scenario;
  scenario.scenario = planner::scenario_of(request, best->plan);
  scenario.prediction_class = validation::class_of(scenario.scenario);
  scenario.filled_in = chosen.filled_in;
  scenario.filled_in.push_back(searched);
}

ChosenForecast read_options(const ForecastOptions& options) {
  constexpr std::int64_t kMostThreads = 1024;
  ProblemList problems(kCommand);
  ChosenForecast chosen;
  ScenarioOptions scenario = options.scenario;
  const std::vector<std::string> run_settings = take_run_settings(scenario.settings);
  std::optional<validation::PublishedRun> published;
  if (!scenario.row.empty()) {
    published = collect_problems(problems, [&] { return read_published_run_option(scenario.row); });
    problems.throw_if_any();
  }
  chosen.run =
      read_whole_run(options.run, run_settings, published ? &*published : nullptr, problems);
  planner::ForecastRequest& request = chosen.run.request;
  if (!options.threads.empty()) {
    request.options.threads =
        static_cast<int>(read_count("--threads", options.threads, kMostThreads, problems));
  }
  // This machine is not measured for minutes before other mistakes are told.
  if (!problems.empty() && needs_probe(scenario.cluster)) problems.throw_if_any();
  if (states_plan(scenario) && asks_for_batch(scenario)) {
    problems.add("--global-batch", "auto beside degrees or a plan file",
                 "a number, or neither of them: a search then finds batch and plan");
    problems.throw_if_any();
  }
  if (states_plan(scenario)) {
    chosen.scenario =
        collect_problems(problems, [&] { return choose_scenario(scenario, kCommand); });
    problems.throw_if_any();
  } else {
    ChosenRequest plan =
        collect_problems(problems, [&] { return choose_request(request_of(scenario), kCommand); });
    if (problems.empty() && plan.gpus.first != plan.gpus.second)
      problems.add("--gpus", "\"" + scenario.gpus + "\"", "one number of accelerators");
    problems.throw_if_any();
    search_plan(plan, chosen);
  }
  request.scenario = chosen.scenario.scenario;
  if (!chosen.without_plan) {
    chosen.laws = chosen.run.laws_of(request.scenario.model, asks_for_batch(scenario));
    request.tokens = chosen.run.tokens_of(request.scenario, asks_for_batch(scenario));
  }
  chosen.request = request;
  return chosen;
}

// Reports the stage that needs most memory, unless it fits.
bool report_fullest(const planner::Forecast& forecast, const ClusterSpec& cluster) {
  const planner::ForecastStage* stage = planner::stage_beyond_memory(forecast.stages, cluster);
  if (stage == nullptr) return true;
  const bool several = forecast.stages.size() > 1;
  return report_fit(several ? fmt::format("{}: stage {}", kCommand, stage->name) : kCommand,
                    stage->step, stage_cluster(cluster, stage->plan, stage->step.fullest));
}

ExitCode forecast(const ForecastOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const ChosenForecast chosen = read_options(options);
  if (chosen.without_plan) return *chosen.without_plan;
  const InterruptWatch interrupt;
  ProgressLine line(show_progress(options.common));
  planner::ForecastRequest request = chosen.request;
  request.options.stop = interrupt.token();
  request.progress = [&](double share) { line.show(share, "simulating runs"); };
  std::vector<planner::ForecastStage> stages = planner::run_stages(request);
  const planner::StepSpread spread = step_spread(chosen.scenario.prediction_class);
  const planner::Forecast result = planner::forecast(request, std::move(stages), spread);
  if (interrupt.interrupted()) return ExitCode::Interrupted;
  line.finish();
  print_notes(kCommand, chosen.scenario.notes);
  Page page = new_page(options.common, request.scenario.cluster);
  std::vector<std::string> notes =
      planner::recovery_without_effect(request.run.recovery, request.scenario.plan, result.model);
  if (chosen.run.critical_batch && chosen.laws.empty())
    notes.push_back("--critical-batch has no effect: tokens and batch are stated");
  print_notes(kCommand, notes);
  notes.insert(notes.begin(), chosen.scenario.notes.begin(), chosen.scenario.notes.end());
  add_forecast(page, request, result);
  const Scenario& scenario = request.scenario;
  // Stages of a run have plans, and so errors, of their own.
  if (result.stages.size() == 1) {
    const sim::StepResult& step = result.stages.back().step;
    const validation::Confidence confidence = validation::confidence_of(
        scenario, chosen.scenario.prediction_class, step.step, step.memory().peak);
    if (confidence.step) add_confidence(page, "The plan", step.step, confidence);
    if (names_pools(scenario.plan))
      page.paragraph(
          "Too few published runs used several pools: the interval of the time has no error of the "
          "step in it.");
  }
  // Only the page that --html writes has drawings.
  if (!options.common.html.empty()) {
    constexpr std::size_t kPoints = 49;
    add_trajectory(page, result, planner::trajectory(request, result, spread, kPoints));
    add_grounds(page, scenario, result.stages.back().step);
    add_simulated_figures(page, scenario, "");
  }
  add_filled_in(page, chosen.scenario.filled_in);
  add_laws(page, chosen.laws);
  nlohmann::ordered_json document = new_document("forecast");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.scenario.filled_in;
  document["notes"] = notes;
  document["laws"] = chosen.laws;
  document.update(forecast_json(request, result));
  deliver(options.common, page, document);
  const bool fits = report_fullest(result, scenario.cluster);
  const bool ends = result.statistics.most_end();
  return fits && ends ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace

void add_forecast_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "forecast", "Forecast a whole run: days, GPU-hours, dollars, energy, interruptions");
  command->footer(R"(Examples:
  shardwright forecast --plan plan.json --tokens 15T
  shardwright forecast --model llama3-70b --cluster dgx-h100 --gpus 512 \
      --tp 8 --pp 4 --global-batch 1024 --seq-len 8192 --tokens 2T \
      --run rented-fleet
  shardwright forecast --plan plan.json --tokens 15T \
      --set run.checkpoint.interval_s=1800 \
      --set run.failures.gpu.per_1000_node_days=2
Without degrees, of the fastest plan; with --global-batch auto also of the batch with the shortest run:
  shardwright forecast --model llama3-70b --cluster dgx-h100 --gpus 512 \
      --global-batch 1024 --seq-len 8192 --tokens 2T)");
  const auto options = std::make_shared<ForecastOptions>();
  add_whole_run_options(*command, options->run);
  add_option(*command, "--threads", options->threads, "N", "Threads (default: all cores)", "Run");
  add_scenario_options(*command, options->scenario);
  options->scenario.takes_pools = true;
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return forecast(*options); }; });
}

}  // namespace shardwright::cli
