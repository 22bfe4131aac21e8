#include "planner/batch_knee.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "planner/plan_evaluation.hpp"

namespace shardwright::planner {
namespace {

struct BatchRate {
  std::int64_t batch = 0;
  double tokens_per_s = 0.0;
  SearchResult result;
};

std::int64_t largest_batch(const PlanRequest& request) {
  if (request.max_global_batch > 0) return request.max_global_batch;
  const double sequences = kDefaultLargestBatchTokens / static_cast<double>(request.seq_len);
  // Fewer sequences than accelerators / 64 would leave pipelines empty.
  return std::max<std::int64_t>({1, static_cast<std::int64_t>(sequences), request.gpus / 64});
}

// The largest power of two up to `most` that leaves plans short enough to be simulated.
std::int64_t largest_simulated(PlanRequest trial, std::int64_t most) {
  const auto fits = [](const Evaluation& of_cut) { return !of_cut.plans.empty(); };
  auto batch = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
  for (; batch > 1; batch /= 2) {
    trial.global_batch = batch;
    const Evaluation found = evaluate_space(trial, layer_cuts(space_of(trial)), fits);
    const bool too_long = found.broken(PlanRule::StepSize) > 0;
    if (fits(found) || !too_long) break;
  }
  return batch;
}

// The first that reaches the knee's share of the highest rate; null if there are none.
BatchRate* knee_of(std::vector<BatchRate>& rates) {
  double highest = 0.0;
  for (const BatchRate& rate : rates) highest = std::max(highest, rate.tokens_per_s);
  const auto knee = std::find_if(rates.begin(), rates.end(), [&](const BatchRate& rate) {
    return rate.tokens_per_s >= kKneeThroughput * highest;
  });
  return knee == rates.end() ? nullptr : &*knee;
}

}  // namespace

KneeBatch throughput_knee(const PlanRequest& request) {
  std::vector<BatchRate> rates;
  PlanRequest trial = request;
  trial.top = 1;
  trial.front = trial.advice = false;
  trial.found = nullptr;
  const std::int64_t most = largest_simulated(trial, largest_batch(request));
  std::int64_t last = 1;
  for (std::int64_t batch = 1; batch <= most; batch *= 2) {
    last = batch;
    if (batch < most / 64) continue;  // far below the knee of any machine that needs `most`
    trial.global_batch = batch;
    SearchResult result = search(trial);
    if (!result.plans.empty()) {
      const PlanCandidate& best = result.plans.front();
      const double rate = best.tokens() / best.result.step.value();
      rates.push_back({batch, rate, std::move(result)});
    }
    if (request.stop.stop_requested()) break;
  }
  BatchRate* knee = knee_of(rates);
  KneeBatch chosen{knee == nullptr ? last : knee->batch, std::nullopt};
  if (request.stop.stop_requested()) {
    chosen.stopped = knee == nullptr ? SearchResult() : std::move(knee->result);
    chosen.stopped->partial = true;
  }
  return chosen;
}

}  // namespace shardwright::planner
