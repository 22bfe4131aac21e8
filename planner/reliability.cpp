#include "planner/reliability.hpp"

#include <algorithm>

namespace shardwright::planner {

double memory_share(const sim::StepResult& result, const ClusterSpec& cluster) {
  return result.memory().peak / cluster.accelerator.memory;
}

FigureCounts figure_counts(const ClusterSpec& cluster, const StackSpec& stack) {
  FigureCounts counts;
  for (const Sources* sources : {&cluster.accelerator.sources, &cluster.node.sources,
                                 &cluster.fabric.sources, &cluster.sources, &stack.sources}) {
    counts.all += static_cast<std::int64_t>(sources->size());
    counts.estimates += std::count_if(sources->begin(), sources->end(), [](const auto& entry) {
      return entry.second.confidence == Confidence::Assumed;
    });
  }
  return counts;
}

}  // namespace shardwright::planner
