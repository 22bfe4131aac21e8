// The options of `forecast` and `plan` that describe a whole run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/batch_spec.hpp"
#include "planner/forecast.hpp"
#include "planner/run_search.hpp"
#include "validation/prediction_errors.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct WholeRunOptions {
  // Empty where the user gave none.
  std::string tokens, target_loss, batch_law, critical_batch, run, runs, seed;

  // True if the user asks for a run.
  bool given() const;
};

void add_whole_run_options(CLI::App& command, WholeRunOptions& options);

// A critical batch that the user gave, in tokens.
struct ChosenCriticalBatch {
  double tokens = 0.0;
  // The folder of the run that measured it, and that run's model; empty where the user stated the
  // tokens.
  std::string folder, model;
};

// A run whose scenario is still to be chosen.
struct ChosenRun {
  planner::ForecastRequest request;
  BatchSpec batch;
  // In place of the tokens.
  std::optional<double> target_loss;
  // In place of the profile's law.
  std::optional<ChosenCriticalBatch> critical_batch;
  // Which errors name.
  std::string command;

  // What the model needs. Throws InputError if no number of tokens reaches the loss.
  planner::TokenNeed need_of(const ModelSpec& model) const;
  // The tokens of a run with the batch of the plan: as stated, or those that the loss takes. Stated
  // tokens are those of small batches if the batch was chosen. Throws InputError if they are too
  // many.
  double tokens_of(const Scenario& scenario, bool batch_chosen) const;
  // The laws by which these tokens follow from a loss or a batch, and those of them that the run
  // lies outside of, a line each; none where the tokens are those that were stated.
  std::vector<std::string> laws_of(const ModelSpec& model, bool batch_chosen) const;
};

// `settings` are those of the run profile, "run.startup_s=60". Adds problems.
// Tokens and profile are those of `published`, unless that is null or options state others.
ChosenRun read_whole_run(const WholeRunOptions& options, const std::vector<std::string>& settings,
                         const validation::PublishedRun* published, ProblemList& problems);

// The spread of step times whose prediction is of this class; none without a class.
planner::StepSpread step_spread(const std::optional<validation::PredictionClass>& of);
planner::StepSpread step_spread_of(const Scenario& scenario);

}  // namespace shardwright::cli
