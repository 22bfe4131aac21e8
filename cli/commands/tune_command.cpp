// shardwright tune
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/options/tune_options.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/tuning/trial_runs.hpp"
#include "cli/tuning/tune_report.hpp"
#include "cli/tuning/tuning_folder.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

// What the results depend on, and the step times by which jobs are ordered.
ordered_json study_json(const TuneOptions& options, const TuningSetup& setup) {
  const planner::StudyRules& rules = setup.rules;
  ordered_json step_times = ordered_json::object();
  for (const auto& [batch, time] : setup.step_times)
    step_times[std::to_string(batch)] = time.value();
  std::error_code error;
  return {{"plan", program_fingerprint(to_json(setup.scenario))},
          {"data", std::filesystem::weakly_canonical(options.data, error).string()},
          {"data_bytes", std::filesystem::file_size(options.data, error)},
          {"validation_ratio", setup.validation_ratio},
          {"device", options.device.empty() ? "auto" : options.device},
          {"steps", setup.steps},
          {"vary", options.vary},
          {"search", name_of(rules.search)},
          {"trials", rules.trials},
          {"reduction", rules.reduction},
          {"rungs", rules.rungs},
          {"seed", rules.seed},
          {"workers", setup.workers},
          {"step_s", step_times}};
}

// Jobs are ordered as when the study began.
void take_step_times(const ordered_json& study, TuningSetup& setup) {
  for (auto& [batch, time] : setup.step_times)
    time = Seconds(study.at("step_s").value(std::to_string(batch), time.value()));
}

// Runs the study until its end or a signal; returns false after a signal.
bool train(const TuneOptions& options, TuningSetup& setup, TuningFolder& folder,
           planner::Study& study) {
  const StopSignalsHeld held;
  TrialRuns runs(options, setup, folder, held);
  ProgressLine line(show_progress(options.common));
  double trained = 0.0;
  const planner::JobHooks hooks{
      [&](const planner::TrialJob& job, std::size_t worker) { runs.start(job, worker); },
      [&](const planner::TrialJob& job, std::size_t worker) {
        line.show(std::min(1.0, trained / static_cast<double>(setup.rules.trials)),
                  fmt::format("trial {} of {}, to step {}", job.trial + 1, setup.rules.trials,
                              setup.steps_at(job.values, job.rung)));
        const double loss = runs.finish(job, worker);
        if (job.rung == 0) trained += 1.0;
        return loss;
      }};
  try {
    planner::run_study(
        study, setup.workers, [&](const planner::TrialJob& job) { return setup.time_of(job); },
        hooks);
    return true;
  } catch (const TuningStopped&) {
    return false;
  }
}

void add_tuning_heading(Page& page, const TuningSetup& setup) {
  page.heading(fmt::format("{}: {} of up to {} by {} search", setup.scenario.model.name,
                           format_plural(setup.rules.trials, "trial"),
                           format_plural(setup.steps, "step"), name_of(setup.rules.search)));
}

ExitCode simulate_study(const TuneOptions& options, const TuningSetup& setup) {
  const planner::StudyForecast forecast = planner::forecast_study(
      setup.rules, setup.workers,
      [&](const planner::TrialJob& job, std::int64_t study) {
        return setup.simulated_time(job, study);
      },
      kSimulatedStudies);
  const Seconds undisturbed(
      planner::forecast_study(
          setup.rules, setup.workers,
          [&](const planner::TrialJob& job, std::int64_t) { return setup.time_of(job); },
          kSimulatedStudies)
          .wall.p50);
  Page page = new_page(options.common, setup.scenario.cluster);
  add_tuning_heading(page, setup);
  add_tuning_forecast(page, setup, forecast, undisturbed);
  ordered_json document = new_document("tuning_forecast");
  document.update(tuning_forecast_json(setup, forecast, undisturbed));
  deliver(options.common, page, document);
  return setup.fits && std::isfinite(forecast.wall.p50) ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

ExitCode tune(const TuneOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  TuningSetup setup = read_tuning(options);
  if (options.simulate) return simulate_study(options, setup);
  using Earlier = TuningFolder::Earlier;
  const Earlier earlier = options.resume         ? Earlier::Resume
                          : options.common.force ? Earlier::Remove
                                                 : Earlier::Refuse;
  TuningFolder folder(options.out, study_json(options, setup), earlier);
  take_step_times(folder.study(), setup);
  planner::Study study{setup.rules, {}};
  const bool complete = train(options, setup, folder, study);
  write_file(folder.path() / "trials.csv", trials_csv(setup, study, !complete), true);
  Page page = new_page(options.common, setup.scenario.cluster);
  add_tuning_heading(page, setup);
  if (!complete) page.warning("interrupted: --resume continues it");
  add_trials(page, setup, study, !complete);
  ordered_json document = new_document("tuning");
  document["partial"] = !complete;
  document["trials"] = trials_json(setup, study, !complete);
  deliver(options.common, page, document);
  return complete ? ExitCode::Ok : ExitCode::Interrupted;
}

}  // namespace

void add_tune_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "tune", "Search hyper-parameters: train trials under a plan and stop the worse ones early");
  command->footer(R"(Examples:
  shardwright tune plan.json --data corpus.txt --steps 400 \
      --vary lr=1e-4..1e-2 --vary weight-decay=0,0.1 --out tune
  shardwright tune plan.json --data corpus.txt --steps 400 \
      --vary lr=1e-4..1e-2 --search population --trials 8 --out tune
  shardwright tune plan.json --steps 20000 --trials 27 \
      --vary lr=1e-4..1e-3 --simulate --ranks 512)");
  const auto options = std::make_shared<TuneOptions>();
  add_tune_options(*command, *options);
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return tune(*options); }; });
}

}  // namespace shardwright::cli
