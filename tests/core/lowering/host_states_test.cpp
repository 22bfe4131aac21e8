// The rule of plans counts as offloaded the states that the programs of all ranks keep on the
// hosts.
#include <gtest/gtest.h>

#include "core/lowering/lowering.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright {
namespace {

Bytes states_of_programs(const ModelSpec& model, const Plan& plan) {
  const Program program = lower(model, plan, load_stack("fsdp2"));
  const double ranks = static_cast<double>(plan.world_size() / plan.pp);
  Bytes sum;
  for (const auto& stage : program.stages) {
    for (const Call& call : stage.calls) {
      for (const Op& op : program.blocks[call.block].ops) {
        if (const auto* update = std::get_if<HostUpdateWork>(&op.work))
          sum += update->states * ranks;
      }
    }
  }
  return sum;
}

Plan plan_of(std::int64_t dp, std::int64_t tp, std::int64_t pp, std::int64_t ep, int zero_stage,
             std::int64_t shard_group) {
  Plan plan;
  plan.dp = dp;
  plan.tp = tp;
  plan.pp = pp;
  plan.ep = ep;
  plan.zero_stage = zero_stage;
  plan.shard_group = shard_group;
  plan.global_batch = 4 * dp * pp;
  plan.offload_optimizer = OptimizerOffload::Host;
  return plan;
}

// Norms and routers, which tensor-parallel ranks hold alike, and a tied embedding are left out.
TEST(HostStates, AreThoseOfAllPrograms) {
  const ModelSpec dense = load_model("llama3-8b"), sparse = load_model("mixtral-8x7b");
  for (const Plan& plan :
       {plan_of(8, 1, 1, 1, 0, 0), plan_of(2, 2, 2, 1, 1, 0), plan_of(8, 1, 1, 1, 3, 4)})
    EXPECT_NEAR(states_of_programs(dense, plan) / offloaded_states(dense, plan), 1.0, 0.001);
  for (const Plan& plan : {plan_of(8, 1, 1, 8, 0, 0), plan_of(8, 1, 1, 4, 0, 0),
                           plan_of(8, 1, 2, 8, 1, 0), plan_of(16, 1, 1, 2, 3, 4)})
    EXPECT_NEAR(states_of_programs(sparse, plan) / offloaded_states(sparse, plan), 1.0, 0.001);
}

TEST(HostStates, CountPredictionLayersThatAreTrained) {
  const ModelSpec model = load_model("deepseek-v3");
  Plan plan = plan_of(32, 1, 2, 32, 1, 0);
  const Bytes with = offloaded_states(model, plan);
  plan.multi_token_prediction = false;
  EXPECT_EQ((with - offloaded_states(model, plan)).value(),
            kHostStateBytes * static_cast<double>(count_parameters(model).mtp));
}

// A trillion parameters on ten million replicas are more than 64 bits count.
TEST(HostStates, OfTheLargestPlansAreNoOverflow) {
  const ModelSpec model = load_model("megatron-1t");
  const double replicas = 10'000'000.0;
  const Bytes states = offloaded_states(model, plan_of(10'000'000, 1, 1, 1, 0, 0));
  EXPECT_NEAR(states / (offloaded_states(model, plan_of(1, 1, 1, 1, 0, 0)) * replicas), 1.0, 1e-9);
}

}  // namespace
}  // namespace shardwright
