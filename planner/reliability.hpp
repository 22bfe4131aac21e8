// The reliability of an answer: the memory that a plan leaves free, and the figures that are
// estimates.
#pragma once

#include <cstdint>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::planner {

// A peak above this share of the memory is worth a warning.
inline constexpr double kTightMemory = 0.95;

// The peak of the fullest stage, as a share of the accelerator's memory.
double memory_share(const sim::StepResult& result, const ClusterSpec& cluster);

struct FigureCounts {
  std::int64_t all = 0;
  // Figures of confidence `Assumed`, without a measurement.
  std::int64_t estimates = 0;
};

// Counts the figures that name a source, of the cluster with its parts and of the stack.
FigureCounts figure_counts(const ClusterSpec& cluster, const StackSpec& stack);

}  // namespace shardwright::planner
