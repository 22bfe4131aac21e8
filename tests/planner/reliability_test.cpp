// The figures that an answer rests on, and the memory that a plan leaves free.
#include "planner/reliability.hpp"

#include <gtest/gtest.h>

#include "core/spec/profile_library.hpp"

namespace shardwright::planner {
namespace {

TEST(Reliability, CountsTheFiguresOfEveryPartAndTheirEstimates) {
  ClusterSpec cluster = load_cluster("dgx-h100");
  StackSpec stack = load_stack("generic-megatron");
  const FigureCounts before = figure_counts(cluster, stack);
  EXPECT_GT(before.estimates, 0);
  EXPECT_LT(before.estimates, before.all);
  std::int64_t added = 0;
  for (Sources* sources : {&cluster.accelerator.sources, &cluster.node.sources,
                           &cluster.fabric.sources, &cluster.sources, &stack.sources}) {
    (*sources)["/of/a/measurement"].confidence = Confidence::Measured;
    (*sources)["/of/nobody"].confidence = Confidence::Assumed;
    const FigureCounts counts = figure_counts(cluster, stack);
    ++added;
    EXPECT_EQ(counts.all, before.all + 2 * added);
    EXPECT_EQ(counts.estimates, before.estimates + added);
  }
}

TEST(Reliability, TheMemoryThatIsTakenIsThatOfTheFullestStage) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  sim::StepResult result;
  result.stages.resize(2);
  result.fullest = 1;
  result.stages[0].memory.peak = 0.5 * cluster.accelerator.memory;
  result.stages[1].memory.peak = 0.75 * cluster.accelerator.memory;
  EXPECT_DOUBLE_EQ(memory_share(result, cluster), 0.75);
}

}  // namespace
}  // namespace shardwright::planner
