#include "planner/scale.hpp"

#include <algorithm>
#include <chrono>

#include "core/base/enum_names.hpp"
#include "planner/batch_knee.hpp"
#include "planner/layer_cost_cache.hpp"

namespace shardwright::planner {
namespace {

KneeCause cause_of(const ScalePoint& smallest, const ScalePoint& beyond) {
  const auto share = [](const ScalePoint& point, sim::StepPart part) {
    return point.best->result.time().of(part) / point.best->result.step;
  };
  KneeCause cause{sim::StepPart::Gemm, smallest.gpus, beyond.gpus, 0.0, 0.0};
  for (const sim::StepPart part : enumerators<sim::StepPart>()) {
    const double before = share(smallest, part), after = share(beyond, part);
    if (after - before <= cause.beyond_share - cause.smallest_share) continue;
    cause.part = part;
    cause.smallest_share = before;
    cause.beyond_share = after;
  }
  return cause;
}

bool any_fits(const std::vector<ScalePoint>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const ScalePoint& point) { return point.best.has_value(); });
}

void rate_points(std::vector<ScalePoint>& points) {
  double base = 0.0, fastest = 0.0;
  for (ScalePoint& point : points) {
    if (!point.best) continue;
    point.tokens_per_s = point.best->tokens() / point.best->result.step.value();
    const double rate = point.tokens_per_s / static_cast<double>(point.gpus);
    if (base == 0.0) base = rate;
    point.efficiency = rate / base;
    point.on_front = point.tokens_per_s > fastest;
    fastest = std::max(fastest, point.tokens_per_s);
  }
}

void find_knee(ScaleResult& result) {
  const ScalePoint* smallest = nullptr;
  const ScalePoint* last_good = nullptr;
  for (const ScalePoint& point : result.points) {
    if (!point.best) continue;
    if (smallest == nullptr) smallest = &point;
    if (point.efficiency >= kKneeEfficiency) {
      last_good = &point;
      continue;
    }
    result.knee = {last_good->gpus, cause_of(*smallest, point)};
    return;
  }
}

// Efficiencies above this do not come from rounding a batch.
constexpr double kSuperlinear = 1.005;

std::optional<MemoryMeasure> measure_of(const Plan& smallest, const Plan& larger) {
  const auto recomputed = [](const Plan& plan) {
    if (plan.recompute == RecomputePolicy::None) return 0.0;
    return plan.recompute == RecomputePolicy::Full ? 1.0 : 0.5;
  };
  const auto cut = [](const Plan& plan) { return plan.tp * plan.pp * plan.cp; };
  if (smallest.offloads_optimizer() && !larger.offloads_optimizer())
    return MemoryMeasure::OptimizerOffload;
  if (smallest.optimizer_states != larger.optimizer_states) return MemoryMeasure::OtherStates;
  if (smallest.offload_activations && !larger.offload_activations)
    return MemoryMeasure::ActivationOffload;
  if (recomputed(smallest) > recomputed(larger)) return MemoryMeasure::Recomputation;
  const auto pattern = [](const Plan& plan) {
    return std::tuple(plan.recompute_layers, plan.recompute_interval, plan.recompute_group);
  };
  if (recomputed(smallest) > 0.0 && pattern(smallest) != pattern(larger))
    return MemoryMeasure::OtherRecomputedLayers;
  if (cut(smallest) > cut(larger)) return MemoryMeasure::FurtherCut;
  if (smallest.micro_batch < larger.micro_batch) return MemoryMeasure::SmallerMicrobatches;
  return std::nullopt;
}

void explain_superlinear(ScaleResult& result) {
  const ScalePoint* smallest = nullptr;
  const ScalePoint* best = nullptr;
  for (const ScalePoint& point : result.points) {
    if (!point.best) continue;
    if (smallest == nullptr) smallest = &point;
    if (best == nullptr || point.efficiency > best->efficiency) best = &point;
  }
  if (best == nullptr || best->efficiency < kSuperlinear) return;
  result.superlinear_cause = {smallest->gpus, best->gpus, best->efficiency,
                              measure_of(smallest->best->plan, best->best->plan)};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

ScalePoint point_of(const PlanRequest& request, SearchResult found) {
  ScalePoint point;
  point.gpus = request.gpus;
  point.cluster = request.cluster;
  point.counts = std::move(found.counts);
  if (!found.plans.empty()) point.best = std::move(found.plans.front());
  return point;
}

// The result of a search that was stopped while it looked for the batch, on the largest machine.
ScaleResult stopped_at(const PlanRequest& request, SearchResult found,
                       std::chrono::steady_clock::time_point start) {
  ScaleResult result;
  result.partial = true;
  result.points.push_back(point_of(request, std::move(found)));
  rate_points(result.points);
  result.wall_s = seconds_since(start);
  return result;
}

}  // namespace

std::vector<std::int64_t> machine_sizes(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> sizes = {first};
  std::int64_t power = 1;
  while (power <= first) power *= 2;
  for (; power < last; power *= 2) sizes.push_back(power);
  if (last > first) sizes.push_back(last);
  return sizes;
}

ScaleResult scale(const PlanRequest& request, const std::vector<std::int64_t>& sizes,
                  const std::function<void(const ScalePoint&)>& found,
                  const std::function<ClusterSpec(std::int64_t)>& machine) {
  const auto start = std::chrono::steady_clock::now();
  ScaleResult result;
  PlanRequest each = request;
  each.top = 1;
  each.front = false;
  // Machines of several pools may have other accelerators at another size.
  if (!each.layer_costs && !machine) each.layer_costs = std::make_shared<LayerCostCache>();
  const auto enlarge = [&](std::int64_t gpus) {
    each.gpus = gpus;
    if (machine) each.cluster = machine(gpus);
  };
  if (each.global_batch == 0 && !sizes.empty()) {
    enlarge(sizes.back());
    KneeBatch knee = throughput_knee(each);
    each.global_batch = knee.batch;
    if (knee.stopped) return stopped_at(each, std::move(*knee.stopped), start);
  }
  for (const std::int64_t gpus : sizes) {
    enlarge(gpus);
    each.advice = gpus == sizes.back() && !any_fits(result.points);
    SearchResult searched = search(each);
    result.infeasible = std::move(searched.infeasible);
    result.partial = result.partial || searched.partial;
    result.points.push_back(point_of(each, std::move(searched)));
    if (result.partial) break;
    if (found) found(result.points.back());
  }
  rate_points(result.points);
  find_knee(result);
  explain_superlinear(result);
  result.wall_s = seconds_since(start);
  return result;
}

}  // namespace shardwright::planner
