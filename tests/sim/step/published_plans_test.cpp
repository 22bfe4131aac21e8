// The memory of plans that large models were trained with.
#include <gtest/gtest.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::sim {
namespace {

Scenario scenario_of(const char* model, const char* cluster, const char* stack) {
  Scenario scenario;
  scenario.model = load_model(model);
  scenario.cluster = load_cluster(cluster);
  scenario.stack = load_stack(stack);
  return scenario;
}

bool fits(const Scenario& scenario) {
  return simulate_step(scenario).memory().peak <= scenario.cluster.accelerator.memory;
}

// DeepSeek-V3 (arXiv 2412.19437, sections 3.1 to 3.3): 2,048 H800, 16 stages of DualPipe, experts
// over 64 ranks, ZeRO-1, norms and up-projections of MLA recomputed, SwiGLU's inputs in FP8. The
// report does not say how the 61 layers are split; evenly, with the embedding and the head as
// layers.
TEST(PublishedPlans, DeepSeekV3FitsIntoH800WithWhatItRecomputes) {
  Scenario scenario = scenario_of("deepseek-v3", "h800-ib", "hai-llm");
  Plan& plan = scenario.plan;
  plan.dp = 128;
  plan.pp = 16;
  plan.ep = 64;
  plan.zero_stage = 1;
  plan.micro_batch = 1;
  plan.global_batch = 128 * 40;
  plan.seq_len = 4096;
  plan.schedule = ScheduleKind::DualPipe;
  plan.precision = Precision::Fp8;
  plan.overlap.expert_microbatches = true;
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  plan.recompute = RecomputePolicy::Selective;
  EXPECT_TRUE(fits(scenario));
  // An operand of a deferred weight gradient in 16 bits takes twice as much.
  scenario.stack.memory.fp8_saved_inputs = false;
  EXPECT_FALSE(fits(scenario));
  scenario.stack.memory.fp8_saved_inputs = true;
  plan.recompute = RecomputePolicy::None;
  EXPECT_FALSE(fits(scenario));
}

// Llama 3 405B (arXiv 2407.21783, table 4 and section 3.3.2): 16,384 H100 without recomputation;
// its FSDP shards optimizer states and gradients, which is ZeRO-2.
TEST(PublishedPlans, Llama405BFitsIntoH100WithoutRecomputation) {
  Scenario scenario = scenario_of("llama3.1-405b", "dgx-h100", "fsdp2-compile");
  Plan& plan = scenario.plan;
  plan.dp = 128;
  plan.tp = 8;
  plan.pp = 16;
  plan.vpp = 8;
  plan.zero_stage = 2;
  plan.micro_batch = 1;
  plan.global_batch = 2048;
  plan.seq_len = 8192;
  plan.schedule = ScheduleKind::Interleaved;
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  EXPECT_TRUE(fits(scenario));
  plan.zero_stage = 1;
  EXPECT_FALSE(fits(scenario));
}

}  // namespace
}  // namespace shardwright::sim
