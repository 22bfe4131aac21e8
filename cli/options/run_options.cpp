#include "cli/options/run_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "calibration/measured_run.hpp"
#include "cli/options/common_options.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/options/settings.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/run_wording.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kGroup = "Run";
constexpr const char* kUsualRun = "settled-fleet";
constexpr const char* kUsualBatch = "hoffmann-corrected";

double read_loss(const std::string& text, ProblemList& problems) {
  if (const auto loss = planner::parse_loss(text)) return *loss;
  problems.add("--target-loss", "\"" + text + "\"", planner::kExpectedLoss);
  return 1.0;
}

void read_tokens(const WholeRunOptions& options, const validation::PublishedRun* published,
                 ChosenRun& run, ProblemList& problems) {
  if (!options.target_loss.empty()) run.target_loss = read_loss(options.target_loss, problems);
  if (!options.tokens.empty()) {
    if (run.target_loss) problems.add("--tokens", "also --target-loss", "one of the two");
    run.request.tokens = read_token_count("--tokens", options.tokens, problems);
  } else if (published != nullptr && !run.target_loss) {
    run.request.tokens = published->tokens;
  } else if (!run.target_loss) {
    problems.add("--tokens", "nothing",
                 "the tokens to train on, as in 15T, 300B or 500M (decimal), or --target-loss");
    run.request.tokens = 1.0;
  }
}

// A number of tokens, or the folder of a run whose gradients were measured.
std::optional<ChosenCriticalBatch> read_critical_batch(const std::string& text,
                                                       ProblemList& problems) {
  if (text.empty()) return std::nullopt;
  if (std::filesystem::is_directory(text)) {
    return read_part("--critical-batch", problems, [&] {
      const calibration::MeasuredNoise noise = calibration::gradient_noise_scale(text);
      return ChosenCriticalBatch{noise.tokens, text, noise.model};
    });
  }
  return ChosenCriticalBatch{
      read_token_count("--critical-batch", text, problems, "the folder of a run"), "", ""};
}

// Where the critical batch of a run of the model comes from, in words.
std::string source_of(const ChosenCriticalBatch& critical, const ModelSpec& model) {
  if (critical.folder.empty()) return "as stated";
  const std::string measured =
      fmt::format("as the run in {} measured of {}", critical.folder, critical.model);
  if (critical.model == model.name) return measured;
  return fmt::format("{}, which is another model than {}", measured, model.name);
}

}  // namespace

bool WholeRunOptions::given() const {
  return !(tokens.empty() && target_loss.empty() && batch_law.empty() && critical_batch.empty() &&
           run.empty() && runs.empty() && seed.empty());
}

void add_whole_run_options(CLI::App& command, WholeRunOptions& options) {
  add_option(command, "--tokens", options.tokens, "N",
             "Tokens to train on, as in 15T, 300B or 500M (decimal)", kGroup);
  add_option(command, "--target-loss", options.target_loss, "NATS",
             "In place of the tokens: the loss to reach, by the law of --batch-law", kGroup);
  add_option(command, "--batch-law", options.batch_law, "NAME|FILE",
             fmt::format("A shipped batch profile (hoffmann-corrected, hoffmann-2022, kaplan-2020) "
                         "or a JSON file: loss by tokens, critical batch (default {})",
                         kUsualBatch),
             kGroup);
  add_option(
      command, "--critical-batch", options.critical_batch, "TOKENS|FOLDER",
      "The batch that needs twice the tokens of a small one, in place of the law: as in 4M, or "
      "the gradient noise scale that a run measured",
      kGroup);
  add_option(
      command, "--run", options.run, "NAME|FILE",
      fmt::format("A shipped run profile (settled-fleet, rented-fleet, spot-fleet) or a JSON file: "
                  "failures, checkpoints, repair, prices (default {})",
                  kUsualRun),
      kGroup);
  add_option(command, "--runs", options.runs, "N", "Runs to simulate (default 1,000)", kGroup);
  add_option(command, "--seed", options.seed, "N", "Seed of their random numbers (default 1)",
             kGroup);
}

planner::TokenNeed ChosenRun::need_of(const ModelSpec& model) const {
  planner::TokenNeed need;
  try {
    need = target_loss ? planner::need_of_loss(batch, model, *target_loss)
                       : planner::need_of_tokens(batch, model, request.tokens);
  } catch (const InputError& error) {
    ProblemList problems(command);
    problems.add_all("--target-loss", error);
    problems.throw_if_any();
  }
  if (critical_batch) {
    need.critical = critical_batch->tokens;
    need.critical_stated = true;
    need.critical_source = source_of(*critical_batch, model);
  }
  return need;
}

double ChosenRun::tokens_of(const Scenario& scenario, bool batch_chosen) const {
  if (!target_loss && !batch_chosen) return request.tokens;
  const Plan& plan = scenario.plan;
  const double tokens =
      need_of(scenario.model)
          .at_batch(static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len));
  if (tokens > planner::kMostRunTokens)
    throw InputError(command, {{"--global-batch",
                                fmt::format("{} sequences, with which the run takes {} tokens",
                                            format_count(plan.global_batch), format_number(tokens)),
                                fmt::format("a smaller batch: at most {} tokens are simulated",
                                            format_number(planner::kMostRunTokens))}});
  return tokens;
}

std::vector<std::string> ChosenRun::laws_of(const ModelSpec& model, bool batch_chosen) const {
  const planner::TokenNeed need = need_of(model);
  if (!target_loss && (!batch_chosen || need.critical <= 0.0)) return {};
  return planner::laws_behind_tokens(batch, model, need, target_loss.has_value());
}

ChosenRun read_whole_run(const WholeRunOptions& options, const std::vector<std::string>& settings,
                         const validation::PublishedRun* published, ProblemList& problems) {
  constexpr std::int64_t kMostRuns = 1'000'000, kMostSeed = 1'000'000'000;
  ChosenRun run;
  run.command = problems.source();
  read_tokens(options, published, run, problems);
  const std::string law = options.batch_law.empty() ? kUsualBatch : options.batch_law;
  run.batch = read_part("--batch-law", problems, [&] { return load_batch(law); });
  run.critical_batch = read_critical_batch(options.critical_batch, problems);
  planner::ForecastRequest& request = run.request;
  if (published != nullptr && options.run.empty()) {
    request.run = published->run;
  } else {
    const std::string profile = options.run.empty() ? kUsualRun : options.run;
    request.run = read_part("--run", problems, [&] { return load_run(profile); });
    const std::vector<std::string> shipped = shipped_runs();
    if (std::ranges::find(shipped, profile) == shipped.end()) request.run_file = profile;
  }
  // The problems of settings do not depend on the profile.
  if (request.run.name.empty()) request.run = load_run(kUsualRun);
  apply_settings(settings, request.run, problems);
  if (!options.runs.empty())
    request.options.runs = read_count("--runs", options.runs, kMostRuns, problems);
  if (!options.seed.empty()) {
    request.options.seed =
        static_cast<std::uint64_t>(read_count("--seed", options.seed, kMostSeed, problems));
  }
  return run;
}

planner::StepSpread step_spread(const std::optional<validation::PredictionClass>& of) {
  if (!of) return {};
  const auto [low, high] = validation::prediction_interval(1.0, false, *of);
  return {low, high};
}

planner::StepSpread step_spread_of(const Scenario& scenario) {
  return step_spread(validation::class_of(scenario));
}

}  // namespace shardwright::cli
