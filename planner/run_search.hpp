// The best number of GPUs, batch and plan for a whole run, by time, by money, or their Pareto
// front.
//
// A larger batch runs faster up to the throughput knee of the machine, and needs more tokens beyond
// the critical batch of the training (docs/models/batch.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/spec/batch_spec.hpp"
#include "planner/forecast.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// The tokens that a run needs, and the critical batch, in tokens both.
struct TokenNeed {
  // With small batches.
  double least = 0.0;
  // Zero: a larger batch needs no more tokens.
  double critical = 0.0;
  // The critical batch was measured or stated, and is not the law's.
  bool critical_stated = false;
  // Where the critical batch comes from, in words: "by batch profile hoffmann-corrected", "as
  // stated".
  std::string critical_source{};
  // What the loss law says of the run.
  double parameters = 0.0, loss = 0.0;

  double at_batch(double batch_tokens) const {
    return critical > 0.0 ? tokens_at_batch(least, batch_tokens, critical) : least;
  }
};

// The need of a run of so many tokens with small batches.
TokenNeed need_of_tokens(const BatchSpec& batch, const ModelSpec& model, double tokens);

// No run trains more tokens than this.
inline constexpr double kMostRunTokens = 1e15;

// The need of a run to a loss. Throws InputError if the model does not reach it with
// kMostRunTokens.
TokenNeed need_of_loss(const BatchSpec& batch, const ModelSpec& model, double loss);

// The laws of the profile that the run lies outside of, in words: "critical batch: 15 T tokens,
// fitted to 20 to 100 B".
std::vector<std::string> outside_of_laws(const BatchSpec& batch, const ModelSpec& model,
                                         const TokenNeed& need);

// The laws by which the tokens of the run follow from a loss (`to_loss`) or from a batch, and those
// of them that the run lies outside of, in words: "outside of the critical batch: …".
std::vector<std::string> laws_behind_tokens(const BatchSpec& batch, const ModelSpec& model,
                                            const TokenNeed& need, bool to_loss);

struct RunSearchRequest {
  // Its GPUs and its batch are those of each choice; with a batch of 0 the batches are the powers
  // of two, and those times the odd part of the GPUs.
  PlanRequest plan;
  std::vector<std::int64_t> gpus;
  // Profile and options; its scenario and its tokens are those of each choice.
  ForecastRequest run;
  TokenNeed need;
  // Returns the error of a plan's predicted step; empty: the steps are taken to be exact.
  std::function<StepSpread(const Scenario&)> step_error{};
};

// A number of GPUs and a batch with its best plan.
struct RunChoice {
  PlanCandidate plan;
  std::int64_t gpus = 0;
  double tokens = 0.0;
  Forecast forecast;

  double tokens_per_s() const { return plan.tokens() / plan.result.step.value(); }
  Seconds time() const { return Seconds(forecast.statistics.wall.p50); }
  // Zero without a price.
  Dollars cost;
};

// What limits the batch of a choice.
enum class BatchLimit : std::uint8_t {
  // The machine gains little from a larger one.
  ThroughputKnee,
  // The machine would run faster with a larger one, which needs too many tokens.
  CriticalBatch,
  // The largest batch that was tried.
  Largest,
};
constexpr auto enum_names(BatchLimit) {
  return std::array{"throughput knee", "critical batch", "largest batch"};
}

struct RunSearch {
  // By GPUs and batch.
  std::vector<RunChoice> choices;
  // Indices of choices that no other beats in both time and money (in GPU-hours without a price),
  // fastest first.
  std::vector<std::size_t> front;
  std::size_t fastest = 0, cheapest = 0;
  bool partial = false;
  // Choices that were left out because their plan does not take a stage of the run profile, and why
  // the first of them does not.
  std::int64_t without_stages = 0;
  std::string stage_problem;
  // Choices that were left out because their batch needs more than kMostRunTokens, and because
  // failures leave their runs no progress.
  std::int64_t too_many_tokens = 0, without_end = 0;

  // The smallest batch, in sequences, with nearly the best throughput of the choice's GPUs.
  std::int64_t knee_of(const RunChoice& choice) const;
  // True if no larger batch than the knee was tried on the choice's GPUs: the knee may lie beyond
  // it.
  bool is_knee_open(const RunChoice& choice) const;
  BatchLimit limit_of(const RunChoice& choice) const;

 private:
  bool has_larger_batch(std::int64_t gpus, std::int64_t batch) const;
};

// The choices that were left out although their plans fit, and why, a line for each reason.
std::vector<std::string> left_out(const RunSearch& search, const TokenNeed& need);

// Searches the best plan of each number of GPUs and batch, and forecasts the run of each: those of
// the front with all runs of the request, the others with fewer. `found` receives the choices one
// by one. Without any feasible plan there are no choices.
RunSearch search_runs(const RunSearchRequest& request,
                      const std::function<void(const RunChoice&)>& found = nullptr);

}  // namespace shardwright::planner
