// Intervals, the margin of memory, and the ground that published runs cover.
#include "validation/prediction_errors.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "validation/validated_ground.hpp"

namespace shardwright::validation {
namespace {

Scenario dense_run() {
  Scenario scenario{
      load_model("llama3-8b"), load_cluster("dgx-h100"), load_stack("megatron-core"), {}};
  scenario.plan.tp = 4;
  scenario.plan.dp = 16;
  scenario.plan.global_batch = 64;
  return scenario;
}

TEST(PredictionErrors, MoreMemoryIsSurerAndTheMarginKeepsItsPromise) {
  const Bytes memory = gigabytes(80.0);
  double last_share = 2.0, last = -1.0;
  for (const double probability : {0.1, 0.5, 0.8, 0.9, 0.95, 0.99}) {
    const double share = memory_share(probability);
    EXPECT_LE(share, last_share) << probability;
    EXPECT_GE(fit_probability(memory * share, memory), probability);
    EXPECT_LT(fit_probability(memory * share * 1.01, memory), probability + 0.1);
    last_share = share;
  }
  for (double peak = 100.0; peak > 40.0; peak -= 1.0) {
    const double probability = fit_probability(gigabytes(peak), memory);
    EXPECT_GE(probability, last) << peak;
    last = probability;
  }
  EXPECT_LT(last, 1.0) << "a finite number of runs is never sure";
  EXPECT_THROW(memory_share(0.9999), InputError);
}

TEST(PredictionErrors, AClassFollowsFromStackWorkloadAndGround) {
  Scenario run = dense_run();
  EXPECT_EQ(class_text(*class_of(run)), "stated plan, dense");
  run.plan.zero_stage = 3;
  EXPECT_EQ(class_of(run)->workload, RunWorkload::Sharded);
  run.stack = load_stack("generic-megatron");
  EXPECT_EQ(class_of(run)->ground, PredictionGround::GenericStack);
  run.stack = load_stack("shardwright");
  EXPECT_FALSE(class_of(run));
  EXPECT_FALSE(confidence_of(run, Seconds(1), gigabytes(1)).fit_probability);
}

TEST(ValidatedGround, ReachesFourTimesAsManyAcceleratorsAndSequencesTwiceAsLong) {
  Scenario run = dense_run();
  const ValidatedGround ground(run);
  ASSERT_TRUE(ground.covers(run.plan));
  EXPECT_TRUE(ground.gap(run.plan).empty());
  EXPECT_GT(ground.runs(run.plan), 0);
  Plan far = run.plan;
  far.dp = 1 << 20;
  EXPECT_NE(ground.gap(far).find("the largest published run"), std::string::npos);
  far = run.plan;
  far.seq_len = 1 << 24;
  EXPECT_NE(ground.gap(far).find("the longest sequences"), std::string::npos);
  far = run.plan;
  far.offload_activations = true;
  far.zero_stage = 3;
  EXPECT_NE(ground.gap(far).find("used fsdp+tp+activation-offload"), std::string::npos)
      << ground.gap(far);
  run.cluster.accelerator.architecture = Architecture::Other;
  EXPECT_NE(ValidatedGround(run).gap(run.plan).find("no published run of dense models"),
            std::string::npos);
}

}  // namespace
}  // namespace shardwright::validation
