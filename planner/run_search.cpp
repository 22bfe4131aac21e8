#include "planner/run_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "planner/batch_knee.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/objective.hpp"
#include "planner/run_wording.hpp"

namespace shardwright::planner {
namespace {

// A batch this many times as large as the critical one needs 17 times the tokens.
constexpr double kMostOfCritical = 16.0;
// Choices are compared by medians and means of fewer runs than a forecast simulates.
constexpr std::int64_t kRunsOfChoice = 200;

void add_outside(std::vector<std::string>& lines, const char* law, const char* what, double value,
                 const FittedRange& range) {
  if (range.holds(value)) return;
  lines.push_back(fmt::format("{}: {} {}, where it was fitted to {} to {}", law, tokens_text(value),
                              what, tokens_text(range.least), tokens_text(range.most)));
}

// Fewer sequences than a 64th of the GPUs leave most of the machine idle.
std::vector<std::int64_t> batches_up_to(double most, const PlanRequest& request) {
  std::vector<std::int64_t> batches = even_batches(most, request);
  std::erase_if(batches, [&](std::int64_t batch) { return batch < request.gpus / 64; });
  return batches;
}

// Batches that keep every GPU at work, up to the largest one of a knee or what the critical batch
// allows. If that is too small for the machine, those up to a sequence a GPU come nearest.
// `plan`: the request's, with a choice's number of GPUs.
std::vector<std::int64_t> batches_of(const RunSearchRequest& request, const PlanRequest& plan) {
  if (plan.global_batch > 0) return {plan.global_batch};
  const auto seq_len = static_cast<double>(plan.seq_len);
  double most = std::max(kDefaultLargestBatchTokens, 2.0 * request.need.critical) / seq_len;
  if (request.need.critical > 0.0)
    most = std::min(most, kMostOfCritical * request.need.critical / seq_len);
  if (plan.max_global_batch > 0) most = static_cast<double>(plan.max_global_batch);
  const std::vector<std::int64_t> batches = batches_up_to(most, plan);
  return batches.empty() ? batches_up_to(static_cast<double>(2 * plan.gpus - 1), plan) : batches;
}

ForecastRequest run_of(const RunSearchRequest& request, const RunChoice& choice) {
  ForecastRequest run = request.run;
  PlanRequest plan = request.plan;
  plan.gpus = choice.gpus;
  run.scenario = scenario_of(plan, choice.plan.plan);
  run.tokens = choice.tokens;
  run.gains = false;
  return run;
}

// Forecasts the run of a choice, whose steps are simulated, with so many runs.
void forecast_choice(RunChoice& choice, ForecastRequest run, const RunSearchRequest& request,
                     std::vector<ForecastStage> stages, std::int64_t runs) {
  run.options.runs = std::min(run.options.runs, runs);
  const StepSpread error = request.step_error ? request.step_error(run.scenario) : StepSpread();
  choice.forecast = forecast(run, std::move(stages), error);
  choice.cost = choice.forecast.costs[run.run.price.contract];
}

// Money, or GPU-hours where nothing has a price.
double expense_of(const RunChoice& choice) {
  return choice.cost > Dollars() ? choice.cost.value() : choice.forecast.total().gpu_hours;
}

void rate(RunSearch& search) {
  std::vector<TradeOff> points;
  for (const RunChoice& choice : search.choices)
    points.push_back({choice.time().value(), expense_of(choice)});
  search.front = pareto_front(points);
  if (search.front.empty()) return;
  search.fastest = search.front.front();
  search.cheapest = search.front.back();
}

// Rates the choices, where those on the front have as many runs as a forecast, unless a stop is
// requested before.
void rate_with_all_runs(RunSearch& search, const RunSearchRequest& request) {
  const std::int64_t runs = request.run.options.runs;
  rate(search);
  bool changed = true;
  while (changed) {
    changed = false;
    for (const std::size_t index : search.front) {
      RunChoice whole = search.choices[index];
      if (whole.forecast.statistics.runs >= runs) continue;
      forecast_choice(whole, run_of(request, whole), request, std::move(whole.forecast.stages),
                      runs);
      search.partial = request.plan.stop.stop_requested();
      if (search.partial) return;
      search.choices[index] = std::move(whole);
      changed = true;
    }
    search.without_end +=
        static_cast<std::int64_t>(std::erase_if(search.choices, [](const RunChoice& choice) {
          return !choice.forecast.statistics.most_end();
        }));
    rate(search);
  }
}

}  // namespace

TokenNeed need_of_tokens(const BatchSpec& batch, const ModelSpec& model, double tokens) {
  TokenNeed need;
  need.least = tokens;
  need.parameters = counted_parameters(model, batch.loss.counts_embeddings);
  need.loss = loss_of(batch.loss, need.parameters, tokens);
  need.critical = critical_batch(batch.critical, tokens, need.loss);
  need.critical_source = "by batch profile " + batch.name;
  return need;
}

TokenNeed need_of_loss(const BatchSpec& batch, const ModelSpec& model, double loss) {
  const double parameters = counted_parameters(model, batch.loss.counts_embeddings);
  const double tokens = tokens_to_loss(batch.loss, parameters, loss);
  if (!(tokens <= kMostRunTokens)) {
    throw InputError(
        "target loss",
        {{"", fmt::format("{:.6g}", loss),
          fmt::format("at least {:.4f} nats, which {} reaches after {} tokens by batch profile {} "
                      "(after any number of them it approaches {:.4f})",
                      loss_of(batch.loss, parameters, kMostRunTokens), model.name,
                      tokens_text(kMostRunTokens), batch.name,
                      least_loss(batch.loss, parameters))}});
  }
  TokenNeed need = need_of_tokens(batch, model, tokens);
  need.loss = loss;
  return need;
}

std::vector<std::string> outside_of_laws(const BatchSpec& batch, const ModelSpec& model,
                                         const TokenNeed& need) {
  std::vector<std::string> lines;
  add_outside(lines, "loss law", "parameters", need.parameters, batch.loss.parameters);
  add_outside(lines, "loss law", "tokens", need.least, batch.loss.tokens);
  if (!need.critical_stated)
    add_outside(lines, "critical batch", "tokens", need.least, batch.critical.tokens);
  if (batch.learning_rate.coefficient > 0.0) {
    add_outside(lines, "learning rate", "parameters", counted_parameters(model, false),
                batch.learning_rate.parameters);
    add_outside(lines, "learning rate", "tokens", need.least, batch.learning_rate.tokens);
  }
  return lines;
}

std::vector<std::string> laws_behind_tokens(const BatchSpec& batch, const ModelSpec& model,
                                            const TokenNeed& need, bool to_loss) {
  std::vector<std::string> laws;
  if (to_loss) {
    laws.push_back(
        fmt::format("{} tokens with small batches to a loss of {} nats, by batch profile {}",
                    tokens_text(need.least), format_number(need.loss, 4), batch.name));
  }
  if (need.critical > 0.0) {
    laws.push_back(
        fmt::format("a critical batch of {} tokens, at which a run needs twice as many "
                    "tokens as with small ones, {}",
                    tokens_text(need.critical), need.critical_source));
  }
  for (const std::string& law : outside_of_laws(batch, model, need))
    laws.push_back("outside of the " + law);
  return laws;
}

std::int64_t RunSearch::knee_of(const RunChoice& choice) const {
  double best = 0.0;
  for (const RunChoice& other : choices)
    if (other.gpus == choice.gpus) best = std::max(best, other.tokens_per_s());
  for (const RunChoice& other : choices) {
    if (other.gpus == choice.gpus && other.tokens_per_s() >= kKneeThroughput * best)
      return other.plan.plan.global_batch;
  }
  return choice.plan.plan.global_batch;
}

bool RunSearch::has_larger_batch(std::int64_t gpus, std::int64_t batch) const {
  return std::ranges::any_of(choices, [&](const RunChoice& other) {
    return other.gpus == gpus && other.plan.plan.global_batch > batch;
  });
}

bool RunSearch::is_knee_open(const RunChoice& choice) const {
  return !has_larger_batch(choice.gpus, knee_of(choice));
}

BatchLimit RunSearch::limit_of(const RunChoice& choice) const {
  const std::int64_t batch = choice.plan.plan.global_batch;
  if (batch < knee_of(choice)) return BatchLimit::CriticalBatch;
  return has_larger_batch(choice.gpus, batch) ? BatchLimit::ThroughputKnee : BatchLimit::Largest;
}

std::vector<std::string> left_out(const RunSearch& search, const TokenNeed& need) {
  std::vector<std::string> lines;
  const auto add = [&](std::int64_t count, const std::string& why) {
    if (count > 0)
      lines.push_back(
          fmt::format("{} of GPUs and batch left out, {}", format_plural(count, "choice"), why));
  };
  add(search.without_stages,
      "whose plans do not take all stages of the run profile: " + search.stage_problem);
  add(search.too_many_tokens,
      fmt::format("whose plans fit, but whose runs take more than {} tokens: the critical batch is "
                  "{} {}, {}",
                  tokens_text(kMostRunTokens), tokens_text(need.critical),
                  need.critical == 1.0 ? "token" : "tokens", need.critical_source));
  add(search.without_end,
      "whose plans fit, but whose runs do not end: failures leave them no progress");
  return lines;
}

RunSearch search_runs(const RunSearchRequest& request,
                      const std::function<void(const RunChoice&)>& found) {
  RunSearch search_result;
  PlanRequest trial = request.plan;
  trial.top = 1;
  trial.front = trial.advice = false;
  trial.found = nullptr;
  trial.layer_costs = std::make_shared<LayerCostCache>();
  for (const std::int64_t gpus : request.gpus) {
    trial.gpus = gpus;
    trial.global_batch = request.plan.global_batch;
    for (const std::int64_t batch : batches_of(request, trial)) {
      trial.global_batch = batch;
      SearchResult plans = search(trial);
      if (trial.stop.stop_requested()) {
        search_result.partial = true;
        rate(search_result);
        return search_result;
      }
      if (plans.plans.empty()) continue;
      RunChoice choice;
      choice.plan = std::move(plans.plans.front());
      choice.gpus = gpus;
      choice.tokens = request.need.at_batch(choice.plan.tokens());
      if (choice.tokens > kMostRunTokens) {
        ++search_result.too_many_tokens;
        continue;
      }
      const ForecastRequest run = run_of(request, choice);
      try {
        std::vector<ForecastStage> stages = run_stages(run);
        require_memory(run, stages);
        forecast_choice(choice, run, request, std::move(stages), kRunsOfChoice);
      } catch (const InputError& error) {
        if (search_result.without_stages++ == 0) search_result.stage_problem = error.what();
        continue;
      }
      if (!choice.forecast.statistics.most_end()) {
        ++search_result.without_end;
        continue;
      }
      if (found) found(choice);
      search_result.choices.push_back(std::move(choice));
    }
  }
  rate_with_all_runs(search_result, request);
  return search_result;
}

}  // namespace shardwright::planner
