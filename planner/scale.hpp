// The best plan at each size of a machine: how far a training run scales, and what ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/search.hpp"

namespace shardwright::planner {

struct ScalePoint {
  std::int64_t gpus = 0;
  std::optional<PlanCandidate> best;  // none: no plan fits
  SearchCounts counts;
  double tokens_per_s = 0.0;
  double efficiency = 0.0;  // throughput per accelerator over that of the smallest size that fits
  bool on_front = false;    // no smaller size is as fast
};

struct ScaleResult {
  std::vector<ScalePoint> points;  // ascending in gpus
  // The last size before efficiency falls below `kKneeEfficiency`; none where it never does.
  std::optional<std::int64_t> knee;
  std::string
      knee_cause;  // which part of the step grows there, as a sentence; empty without a knee
  // Why a larger size has an efficiency above 100 %, as a sentence; empty where none has.
  std::string superlinear_cause;
  std::optional<NoFeasiblePlan> infeasible;  // of the largest size, where no size has a plan
  double wall_s = 0.0;
  bool partial = false;
};

inline constexpr double kKneeEfficiency = 0.8;

// Powers of two from `first` to `last`, and both ends.
std::vector<std::int64_t> machine_sizes(std::int64_t first, std::int64_t last);

// `request.gpus` is replaced by each size in turn. A global batch of 0 takes the knee of the
// largest size, so that all sizes train the same. There is no front. `found` gets each point once
// its search has ended, not yet rated against the others, and none whose search was stopped.
ScaleResult scale(const PlanRequest& request, const std::vector<std::int64_t>& sizes,
                  const std::function<void(const ScalePoint&)>& found = {});

}  // namespace shardwright::planner
