// The best plan at each size of a machine: how far training scales, and why it stops scaling.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/search.hpp"

namespace shardwright::planner {

struct ScalePoint {
  std::int64_t gpus = 0;
  // None if no plan fits.
  std::optional<PlanCandidate> best;
  SearchCounts counts;
  double tokens_per_s = 0.0;
  // Throughput per accelerator, relative to the smallest size that fits.
  double efficiency = 0.0;
  // True if no smaller size is as fast.
  bool on_front = false;
  // The machine of this size.
  ClusterSpec cluster;
};

// The part of the step that grows most from the smallest size to the one beyond the knee.
struct KneeCause {
  sim::StepPart part = sim::StepPart::Gemm;
  std::int64_t smallest_gpus = 0, beyond_gpus = 0;
  // Its shares of the step at these sizes.
  double smallest_share = 0.0, beyond_share = 0.0;
};

// A measure that a plan takes for lack of memory.
enum class MemoryMeasure : std::uint8_t {
  OptimizerOffload,
  OtherStates,
  ActivationOffload,
  Recomputation,
  OtherRecomputedLayers,
  FurtherCut,
  SmallerMicrobatches,
};

// The reason why a larger size has an efficiency above 100 %.
struct SuperlinearCause {
  std::int64_t smallest_gpus = 0, best_gpus = 0;
  double best_efficiency = 0.0;
  // The measure that the plan of the smallest size takes and that of the best size does not; none
  // if the plans do not differ in one.
  std::optional<MemoryMeasure> measure;
};

struct ScaleKnee {
  std::int64_t gpus = 0;
  KneeCause cause;
};

struct ScaleResult {
  // In ascending order of GPUs.
  std::vector<ScalePoint> points;
  // The last size before efficiency falls below `kKneeEfficiency`; none if it never does.
  std::optional<ScaleKnee> knee;
  // None if no size has an efficiency above 100 %.
  std::optional<SuperlinearCause> superlinear_cause;
  // Set for the largest size if no size has a plan.
  std::optional<NoFeasiblePlan> infeasible;
  double wall_s = 0.0;
  bool partial = false;
};

inline constexpr double kKneeEfficiency = 0.8;

// Returns the powers of two from `first` to `last`, and both ends.
std::vector<std::int64_t> machine_sizes(std::int64_t first, std::int64_t last);

// Searches each size in turn, in place of `request.gpus`. A global batch of 0 becomes the knee of
// the largest size, so that all sizes train the same batch. Computes no Pareto front. `found`
// receives each point when its search has ended, before it is rated against the others; a point
// whose search was stopped is not passed on. `machine` returns the cluster of a size, which has as
// many accelerators; if it is empty, that is the request's at each size. On several pools a size is
// the most accelerators that a plan may use.
ScaleResult scale(const PlanRequest& request, const std::vector<std::int64_t>& sizes,
                  const std::function<void(const ScalePoint&)>& found = {},
                  const std::function<ClusterSpec(std::int64_t)>& machine = {});

}  // namespace shardwright::planner
