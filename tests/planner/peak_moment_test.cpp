#include "planner/peak_moment.hpp"

#include <gtest/gtest.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

TEST(PeakMoment, IsAnOpOfAMicrobatch) {
  Scenario scenario;
  scenario.model = load_model("llama3.2-1b");
  scenario.cluster = load_cluster("dgx-h100");
  scenario.stack = load_stack("megatron-core");
  scenario.plan.dp = 8;
  scenario.plan.global_batch = 32;
  const auto moment = peak_moment(scenario, sim::simulate_step(scenario));
  ASSERT_TRUE(moment);
  EXPECT_FALSE(moment->op.empty());
  EXPECT_LE(moment->layer, scenario.model.layers);  // the head comes after the layers
  EXPECT_LT(moment->microbatch, 4);
  EXPECT_GE(moment->microbatch, 0);
}

}  // namespace
}  // namespace shardwright::planner
