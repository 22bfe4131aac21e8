#include "planner/batch_knee.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "planner/placements.hpp"
#include "planner/plan_evaluation.hpp"

namespace shardwright::planner {
namespace {

// Batches down to this part of the largest one are tried regardless of the throughput of the
// others.
constexpr std::int64_t kLeastShare = 64;

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

// The largest power of two up to `most` whose steps are short enough to be simulated. On several
// pools it is `most`, and each search leaves out the plans whose steps are too long.
std::int64_t largest_simulated(PlanRequest trial, std::int64_t most) {
  if (!trial.cluster.pools.empty()) return most;
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

Constraints of_batch(Constraints constraints) {
  const auto is_of_another = [](const Constraint& constraint) {
    return constraint.field != PlanField::GlobalBatch;
  };
  std::erase_if(constraints.fixed, is_of_another);
  std::erase_if(constraints.forbidden, is_of_another);
  return constraints;
}

// The batches that the constraints fix, or else the usual ones up to `most`; largest first.
std::vector<std::int64_t> batches_to_try(const PlanRequest& request, std::int64_t most) {
  const Constraints constraints = of_batch(request.constraints);
  std::vector<std::int64_t> batches;
  if (!constraints.fixed.empty() && constraints.fixed.front().range == ConstraintRange::None)
    batches = constraints.fixed.front().values;
  if (batches.empty()) batches = even_batches(static_cast<double>(most), request);
  std::erase_if(batches, [&](std::int64_t batch) {
    Plan plan;
    plan.global_batch = batch;
    const bool too_large = request.max_global_batch > 0 && batch > request.max_global_batch;
    return too_large || !broken_constraint(constraints, plan).empty();
  });
  std::sort(batches.begin(), batches.end(), std::greater<>());
  return batches;
}

// Returns the smallest of the batches, which come largest first, that reaches the knee's share of
// the highest rate; null if there are none.
BatchRate* knee_of(std::vector<BatchRate>& rates) {
  double highest = 0.0;
  for (const BatchRate& rate : rates) highest = std::max(highest, rate.tokens_per_s);
  const auto knee = std::find_if(rates.rbegin(), rates.rend(), [&](const BatchRate& rate) {
    return rate.tokens_per_s >= kKneeThroughput * highest;
  });
  return knee == rates.rend() ? nullptr : &*knee;
}

std::int64_t odd_part(std::int64_t number) {
  return number >> std::countr_zero(static_cast<std::uint64_t>(number));
}

// True if the last two batches are below the knee. Smaller ones run no faster: of two neighbours
// one is a power of two, and the other one may be such a power times the odd part.
bool is_below_knee(std::vector<BatchRate>& rates) {
  const BatchRate* knee = knee_of(rates);
  return rates.size() > 1 && knee != &rates.back() && knee != &rates[rates.size() - 2];
}

}  // namespace

std::vector<std::int64_t> even_batches(double most, const PlanRequest& request) {
  std::set<std::int64_t> odd_parts = {1, odd_part(request.gpus)};
  if (!request.cluster.pools.empty()) {
    for (const std::string& pool : names_of_pools(request.cluster))
      odd_parts.insert(odd_part(pool_size(request.cluster, pool, request.gpus)));
  }
  std::set<std::int64_t> batches;
  for (const std::int64_t least : odd_parts) {
    for (std::int64_t batch = least; static_cast<double>(batch) <= most; batch *= 2)
      batches.insert(batch);
  }
  return {batches.begin(), batches.end()};
}

KneeBatch throughput_knee(const PlanRequest& request) {
  std::vector<BatchRate> rates;
  PlanRequest trial = request;
  trial.top = 1;
  trial.front = trial.advice = false;
  trial.found = nullptr;
  const std::int64_t most = largest_simulated(trial, largest_batch(request));
  for (const std::int64_t batch : batches_to_try(request, most)) {
    if (batch < most / kLeastShare && is_below_knee(rates)) break;
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
  KneeBatch chosen{knee == nullptr ? most : knee->batch, std::nullopt};
  if (request.stop.stop_requested()) {
    chosen.stopped = knee == nullptr ? SearchResult() : std::move(knee->result);
    chosen.stopped->partial = true;
  }
  return chosen;
}

}  // namespace shardwright::planner
