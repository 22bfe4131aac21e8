#include "planner/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "planner/explain.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/placements.hpp"

namespace shardwright::planner {
namespace {

double bandwidth_of(SweepAxis axis, const ClusterSpec& cluster) {
  if (axis == SweepAxis::ScaleUpBandwidth) return cluster.node.scale_up.bandwidth.value();
  if (axis == SweepAxis::MemoryBandwidth) return cluster.accelerator.memory_bandwidth.value();
  return cluster.node.nic.bandwidth.value();
}

Resource resource_of(SweepAxis axis) {
  if (axis == SweepAxis::ScaleUpBandwidth) return Resource::ScaleUpBandwidth;
  if (axis == SweepAxis::MemoryBandwidth) return Resource::MemoryBandwidth;
  return Resource::ScaleOutBandwidth;
}

// The smallest batch of whole microbatches of every replica; of replicas on pools, the smallest of
// which they have the same shares.
struct SmallestBatch {
  std::int64_t sequences = 1;
  // The microbatches of each part of the replicas.
  std::vector<std::int64_t> microbatches = {1};
};

SmallestBatch smallest_batch(const Plan& plan) {
  if (plan.replica_pools.empty()) return {plan.dp * plan.micro_batch, {1}};
  std::int64_t common = 0;
  for (const PoolReplicas& part : plan.replica_pools) common = std::gcd(common, part.microbatches);
  SmallestBatch smallest{plan.global_batch / common, {}};
  for (const PoolReplicas& part : plan.replica_pools)
    smallest.microbatches.push_back(part.microbatches / common);
  return smallest;
}

// Replicas on pools keep their shares. A batch that does not allow it breaks a rule.
void set_global_batch(Plan& plan, std::int64_t batch) {
  const SmallestBatch smallest = smallest_batch(plan);
  plan.global_batch = batch;
  if (batch % smallest.sequences != 0) return;
  for (std::size_t part = 0; part < plan.replica_pools.size(); ++part)
    plan.replica_pools[part].microbatches =
        smallest.microbatches[part] * (batch / smallest.sequences);
}

// The plan's own batch, halves of it in whole units, and doubles.
std::vector<double> batches_around(const Plan& plan) {
  constexpr int kSmaller = 5, kLarger = 4;
  const std::int64_t unit = batch_unit(plan);
  std::vector<std::int64_t> batches = {plan.global_batch};
  for (int i = 0; i < kSmaller && batches.back() >= 2 * unit; ++i)
    batches.push_back(batches.back() / unit / 2 * unit);
  std::reverse(batches.begin(), batches.end());
  for (int i = 0; i < kLarger && batches.back() <= kMaxBatch / 2; ++i)
    batches.push_back(2 * batches.back());
  return {batches.begin(), batches.end()};
}

// The batch of about as many tokens as the plan's, in whole units.
std::int64_t batch_of_same_tokens(const Plan& plan, std::int64_t seq_len) {
  const std::int64_t unit = batch_unit(plan);
  const double batches = static_cast<double>(plan.global_batch) *
                         static_cast<double>(plan.seq_len) / static_cast<double>(seq_len * unit);
  return std::max<std::int64_t>(1, std::llround(batches)) * unit;
}

Scenario scenario_at(SweepAxis axis, double value, Scenario scenario) {
  if (is_bandwidth(axis)) {
    const double factor = value / bandwidth_of(axis, scenario.cluster);
    scenario.cluster = improved(scenario.cluster, resource_of(axis), factor - 1.0);
  } else if (axis == SweepAxis::GlobalBatch) {
    set_global_batch(scenario.plan, std::llround(value));
  } else if (axis == SweepAxis::SeqLen) {
    set_global_batch(scenario.plan, batch_of_same_tokens(scenario.plan, std::llround(value)));
    scenario.plan.seq_len = std::llround(value);
  }
  return scenario;
}

SweepPoint chosen_plan_at(double value, const Scenario& scenario) {
  SweepPoint point;
  point.value = value;
  const auto broken = broken_rules(scenario.model, &scenario.cluster, scenario.plan);
  if (!broken.empty()) {
    point.broken_rule = broken.front().problem;
    return point;
  }
  point.candidate = candidate_of(scenario);
  const sim::StepResult& step = point.candidate->result;
  point.fits = step.memory().peak <=
               stage_cluster(scenario.cluster, scenario.plan, step.fullest).accelerator.memory;
  return point;
}

// The smallest batch with nearly all of the best throughput.
std::optional<std::size_t> batch_knee(const std::vector<SweepPoint>& points) {
  double best = 0.0;
  for (const SweepPoint& point : points) {
    if (point.fits) best = std::max(best, point.tokens_per_s());
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].fits && points[i].tokens_per_s() >= kKneeThroughput * best) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> bandwidth_knee(const std::vector<SweepPoint>& points) {
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    if (!points[i].candidate || !points[i + 1].candidate) continue;
    const double doublings = std::log2(points[i + 1].value / points[i].value);
    const double gain = points[i + 1].tokens_per_s() / points[i].tokens_per_s() - 1.0;
    if (gain <= kLeastGainOfDoubling * doublings) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> longest_that_fits(const std::vector<SweepPoint>& points) {
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    if (points[i].fits && !points[i + 1].fits) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> sweep_knee(const Sweep& sweep) {
  if (sweep.axis == SweepAxis::GlobalBatch) return batch_knee(sweep.points);
  if (sweep.axis == SweepAxis::SeqLen) return longest_that_fits(sweep.points);
  return bandwidth_knee(sweep.points);
}

// The share of a sweep's time that the search of the narrow space is assumed to take.
constexpr double kNarrowShare = 0.1;

// Searches for the best plan of every point, first in the narrow space if anybody watches.
class BestPlans {
 public:
  BestPlans(const SweepRequest& request, std::vector<double> values, const SweepWatch& watch)
      : sweep_request_(request),
        request_(request.request),
        values_(std::move(values)),
        watch_(watch) {
    request_.top = 1;
    request_.layouts = 0;
    request_.front = request_.advice = false;
    request_.found = nullptr;
    request_.progress = [this](const SearchProgress& search) {
      report(std::min(1.0, search.share));  // rounding may lift the sum of shares above 1
    };
    request_.layer_costs = std::make_shared<LayerCostCache>();
  }

  void run(Sweep& sweep) {
    for (const bool narrow : {true, false}) {
      if (narrow && !watch_.found) continue;
      narrow_ = narrow;
      request_.limits = narrow ? narrow_limits() : sweep_request_.request.limits;
      done_ = 0;
      if (sweep.axis == SweepAxis::Gpus) {
        search_sizes(sweep);
      } else {
        search_variants(sweep);
      }
      if (sweep.partial) return;
    }
  }

 private:
  void search_variants(Sweep& sweep) {
    for (const double value : values_) {
      auto best = best_plan(scenario_at(sweep.axis, value, sweep_request_.scenario));
      sweep.partial = request_.stop.stop_requested();
      if (sweep.partial) return;
      take(sweep, value, std::move(best));
    }
  }

  void search_sizes(Sweep& sweep) {
    const std::vector<std::int64_t> sizes(values_.begin(), values_.end());
    const ScaleResult found = scale(request_, sizes, [&](const ScalePoint& point) {
      if (request_.global_batch == 0 && point.best)
        sweep.chosen_batch = point.best->plan.global_batch;
      take(sweep, static_cast<double>(point.gpus), point.best);
    });
    sweep.partial = found.partial;
    if (narrow_ || !found.knee) return;
    const auto at = std::find(sizes.begin(), sizes.end(), found.knee->gpus);
    sweep.knee = static_cast<std::size_t>(at - sizes.begin());
    sweep.knee_cause = found.knee->cause;
  }

  std::optional<PlanCandidate> best_plan(const Scenario& scenario) {
    PlanRequest request = request_;
    request.global_batch = scenario.plan.global_batch;
    request.seq_len = scenario.plan.seq_len;
    if (request.cluster != scenario.cluster) request.layer_costs = nullptr;
    request.cluster = scenario.cluster;
    std::vector<PlanCandidate> found = search(request).plans;
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }

  // Takes the next point.
  void take(Sweep& sweep, double value, std::optional<PlanCandidate> best) {
    const bool fits = best.has_value();
    SweepPoint point{value, std::move(best), fits, std::nullopt, narrow_};
    if (done_ == sweep.points.size()) {
      sweep.points.push_back(std::move(point));
    } else {
      sweep.points[done_] = std::move(point);
    }
    ++done_;
    report(0.0);
    // Half a line would be drawn on other axes each time.
    const bool whole_line = !narrow_ || done_ == values_.size();
    if (watch_.found && whole_line && !sweep.is_final()) watch_.found(sweep);
  }

  void report(double share_of_point) const {
    if (!watch_.progress) return;
    const double share = std::min(
        1.0, (static_cast<double>(done_) + share_of_point) / static_cast<double>(values_.size()));
    const double before = watch_.found && !narrow_ ? kNarrowShare : 0.0;
    const double part = !watch_.found ? 1.0 : narrow_ ? kNarrowShare : 1.0 - kNarrowShare;
    watch_.progress(before + part * share);
  }

  const SweepRequest& sweep_request_;
  PlanRequest request_;
  const std::vector<double> values_;
  const SweepWatch& watch_;
  bool narrow_ = true;
  // Points of the space that is being searched.
  std::size_t done_ = 0;
};

void sweep_chosen_plan(Sweep& sweep, const SweepRequest& request, const std::vector<double>& values,
                       const SweepWatch& watch) {
  for (const double value : values) {
    sweep.partial = request.request.stop.stop_requested();
    if (sweep.partial) return;
    sweep.points.push_back(chosen_plan_at(value, scenario_at(sweep.axis, value, request.scenario)));
    if (watch.progress)
      watch.progress(static_cast<double>(sweep.points.size()) / static_cast<double>(values.size()));
  }
}

}  // namespace

bool is_bandwidth(SweepAxis axis) {
  return axis == SweepAxis::ScaleOutBandwidth || axis == SweepAxis::ScaleUpBandwidth ||
         axis == SweepAxis::MemoryBandwidth;
}

SweepPlan possible_plan(SweepAxis axis, SweepPlan wanted) {
  return axis == SweepAxis::Gpus ? SweepPlan::Best : wanted;
}

double own_value(SweepAxis axis, const PlanRequest& request, const ClusterSpec& cluster) {
  if (is_bandwidth(axis)) return bandwidth_of(axis, cluster);
  if (axis == SweepAxis::Gpus) return static_cast<double>(request.gpus);
  return static_cast<double>(axis == SweepAxis::GlobalBatch ? request.global_batch
                                                            : request.seq_len);
}

std::int64_t batch_unit(const Plan& plan) {
  const SmallestBatch smallest = smallest_batch(plan);
  const auto runs = [&](std::int64_t multiple) {
    return std::ranges::all_of(smallest.microbatches, [&](std::int64_t microbatches) {
      ScheduleShape shape = shape_of(plan);
      shape.microbatches = microbatches * multiple;
      return !why_not(plan.schedule, shape);
    });
  };
  // A long step tells what a schedule asks of the number beside a least one.
  for (std::int64_t round = 1; round <= 2 * plan.pp; ++round) {
    const std::int64_t many = 4 * plan.pp * round;
    bool all_run = true;
    for (std::int64_t more = 0; more < 2 * plan.pp && all_run; ++more)
      all_run = runs(many + more * round);
    if (all_run) return round * smallest.sequences;
  }
  return smallest.sequences;
}

bool Sweep::is_final() const {
  return std::none_of(points.begin(), points.end(),
                      [](const SweepPoint& point) { return point.preliminary; });
}

std::vector<double> usual_values(SweepAxis axis, const PlanRequest& request,
                                 const Scenario& scenario) {
  std::vector<double> values;
  if (axis == SweepAxis::Gpus) {
    const std::int64_t last =
        std::min({size_of_pools(request.cluster, kMaxWorld), kMaxWorld, 8 * request.gpus});
    const auto sizes = machine_sizes(std::max<std::int64_t>(1, request.gpus / 16), last);
    values.assign(sizes.begin(), sizes.end());
  } else if (axis == SweepAxis::GlobalBatch) {
    values = batches_around(scenario.plan);
  } else if (axis == SweepAxis::SeqLen) {
    for (double length = 1024.0; length <= 262144.0; length *= 2.0) values.push_back(length);
  } else {
    for (const double factor : {0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0})
      values.push_back(factor * bandwidth_of(axis, scenario.cluster));
  }
  return values;
}

Sweep run_sweep(const SweepRequest& request, const SweepWatch& watch) {
  Sweep sweep;
  sweep.axis = request.axis;
  sweep.plan = possible_plan(request.axis, request.plan);
  sweep.partial = request.request.stop.stop_requested();
  // Multiples of nothing are nothing.
  sweep.lacks_link =
      is_bandwidth(request.axis) && !(bandwidth_of(request.axis, request.scenario.cluster) > 0.0);
  if (sweep.partial || sweep.lacks_link) return sweep;
  const std::vector<double> values =
      request.values.empty() ? usual_values(request.axis, request.request, request.scenario)
                             : request.values;
  if (sweep.plan == SweepPlan::Best) {
    BestPlans(request, values, watch).run(sweep);
  } else {
    sweep_chosen_plan(sweep, request, values, watch);
  }
  if (!sweep.partial && sweep.axis != SweepAxis::Gpus) sweep.knee = sweep_knee(sweep);
  return sweep;
}

}  // namespace shardwright::planner
