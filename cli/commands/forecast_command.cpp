// shardwright forecast
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/options/settings.hpp"
#include "cli/output/forecast_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/forecast.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kCommand = "shardwright forecast";
constexpr const char* kDefaultRun = "settled-fleet";

struct ForecastOptions {
  CommonOptions common;
  ScenarioOptions scenario;
  std::string tokens, run = kDefaultRun, runs, seed, threads;
};

std::int64_t count_or(const std::string& option, const std::string& text, std::int64_t fallback,
                      std::int64_t most, ProblemList& problems) {
  return text.empty() ? fallback : read_count(option, text, most, problems);
}

double read_tokens(const std::string& text, ProblemList& problems) {
  constexpr std::int64_t kMostTokens = 1'000'000'000'000'000;
  if (!text.empty())
    return static_cast<double>(read_count("--tokens", text, kMostTokens, problems));
  problems.add("--tokens", "nothing", "the tokens to train on, as in 15T (T = 1e12, B = 1e9)");
  return 1.0;
}

// The problems of the command line and of files, each with its file.
ChosenScenario read_scenario_options(const ScenarioOptions& options, ProblemList& problems) {
  try {
    return choose_scenario(options, kCommand);
  } catch (const InputError& error) {
    if (error.source() == kCommand) {
      problems.add_all("", error);
      return {};
    }
    return read_part("", problems, [&]() -> ChosenScenario { throw error; });
  }
}

struct ChosenForecast {
  planner::ForecastRequest request;
  ChosenScenario scenario;
};

ChosenForecast read_options(const ForecastOptions& options) {
  constexpr std::int64_t kMostRuns = 1'000'000, kMostSeed = 1'000'000'000, kMostThreads = 1024;
  ProblemList problems(kCommand);
  ChosenForecast chosen;
  planner::ForecastRequest& request = chosen.request;
  ScenarioOptions scenario = options.scenario;
  const std::vector<std::string> run_settings = take_run_settings(scenario.settings);
  request.tokens = read_tokens(options.tokens, problems);
  request.run = read_part("--run", problems, [&] { return load_run(options.run); });
  if (!request.run.name.empty()) apply_settings(run_settings, request.run, problems);
  request.options.runs =
      count_or("--runs", options.runs, request.options.runs, kMostRuns, problems);
  request.options.seed =
      static_cast<std::uint64_t>(count_or("--seed", options.seed, 1, kMostSeed, problems));
  request.options.threads =
      static_cast<int>(count_or("--threads", options.threads, 0, kMostThreads, problems));
  // This machine is not measured for minutes before other mistakes are told.
  if (!problems.empty() && needs_probe(scenario.cluster)) problems.throw_if_any();
  chosen.scenario = read_scenario_options(scenario, problems);
  problems.throw_if_any();
  request.scenario = chosen.scenario.scenario;
  return chosen;
}

// The 80 % interval of the step time, over it, by the errors on published runs.
planner::StepSpread step_spread(const ChosenScenario& chosen,
                                const std::vector<planner::ForecastStage>& stages) {
  const sim::StepResult& step = stages.back().step;
  const auto confidence = validation::confidence_of(chosen.scenario, chosen.prediction_class,
                                                    step.step, step.memory().peak);
  if (!confidence.step) return {};
  return {confidence.step->low / step.step, confidence.step->high / step.step};
}

// The step of the stage that needs most memory.
const sim::StepResult& fullest_step(const planner::Forecast& forecast) {
  return std::ranges::max_element(
             forecast.stages, {},
             [](const planner::ForecastStage& stage) { return stage.step.memory().peak; })
      ->step;
}

ExitCode forecast(const ForecastOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const ChosenForecast chosen = read_options(options);
  const planner::ForecastRequest& request = chosen.request;
  std::vector<planner::ForecastStage> stages = planner::run_stages(request);
  const planner::StepSpread spread = step_spread(chosen.scenario, stages);
  const planner::Forecast result = planner::forecast(request, std::move(stages), spread);
  print_notes(kCommand, chosen.scenario.notes);
  Page page = new_page(options.common);
  add_forecast(page, request, result);
  add_filled_in(page, chosen.scenario.filled_in);
  const Scenario& scenario = request.scenario;
  nlohmann::ordered_json document = new_document("forecast");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.scenario.filled_in;
  document["notes"] = chosen.scenario.notes;
  document.update(forecast_json(request, result));
  deliver(options.common, page, document);
  const bool fits = report_fit(kCommand, fullest_step(result), scenario.cluster);
  const bool ends = result.statistics.unfinished < result.statistics.runs;
  return fits && ends ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace

void add_forecast_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "forecast", "Forecast a whole run: days, GPU-hours, dollars, energy, interruptions");
  command->footer(R"(Examples:
  shardwright forecast --plan plan.json --tokens 15T
  shardwright forecast --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 8 --pp 4 --global-batch 1024 --seq-len 8192 --tokens 2T --run rented-fleet
  shardwright forecast --plan plan.json --tokens 15T --set run.checkpoint.interval_s=1800 --set run.failures.gpu.per_1000_node_days=2)");
  const auto options = std::make_shared<ForecastOptions>();
  add_option(*command, "--tokens", options->tokens, "N",
             "Tokens to train on, as in 15T or 300B (T = 1e12, B = 1e9)", "Run");
  add_option(*command, "--run", options->run, "NAME|FILE",
             fmt::format("A shipped run profile (settled-fleet, rented-fleet) or a JSON file: "
                         "failures, checkpoints, repair, prices (default {})",
                         kDefaultRun),
             "Run");
  add_option(*command, "--runs", options->runs, "N", "Runs to simulate (default 1,000)", "Run");
  add_option(*command, "--seed", options->seed, "N", "Seed of their random numbers (default 1)",
             "Run");
  add_option(*command, "--threads", options->threads, "N", "Threads (default: all cores)", "Run");
  add_scenario_options(*command, options->scenario);
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return forecast(*options); }; });
}

}  // namespace shardwright::cli
