// Laws of a simulated step on a cluster.
#include "sim/step/simulate.hpp"

#include <gtest/gtest.h>

#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/folded_replay.hpp"
#include "tests/core/lowering/random_lowering.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

ClusterSpec faster(ClusterSpec cluster, double k) {
  AcceleratorSpec& device = cluster.accelerator;
  for (FlopPerSecond* rate : {&device.matrix.fp32, &device.matrix.tf32, &device.matrix.fp16,
                              &device.matrix.bf16, &device.matrix.fp8, &device.vector_fp32})
    *rate *= k;
  device.exponentials_per_s *= k;
  device.memory_bandwidth *= k;
  device.max_clock *= k;
  NodeSpec& node = cluster.node;
  for (BytesPerSecond* rate :
       {&node.scale_up.bandwidth, &node.nic.bandwidth, &node.host.accelerator_link,
        &node.host.memory_bandwidth, &node.host.nvme_read, &node.host.nvme_write})
    *rate *= k;
  node.host.speed *= k;
  for (Seconds* latency : {&device.efficiency.kernel_overhead, &device.efficiency.gemm_overhead,
                           &device.efficiency.power_delay, &node.scale_up.latency,
                           &node.scale_up.collective_overhead, &cluster.fabric.base_latency})
    *latency *= 1.0 / k;
  for (FabricLevel& level : cluster.fabric.levels) level.latency *= 1.0 / k;
  return cluster;
}

Scenario llama_on_two_nodes() {
  Scenario scenario = fixtures::shipped_scenario("llama3-8b", "megatron-lm-2022", "dgx-a100");
  Plan& plan = scenario.plan;
  plan.tp = 8;
  plan.pp = 2;
  plan.sequence_parallel = false;
  plan.global_batch = 16;
  plan.seq_len = 4096;
  return scenario;
}

TEST(SimulateStep, IsTheSameWhereNobodyStopsIt) {
  const Scenario scenario = llama_on_two_nodes();
  std::stop_source source;
  const auto result = simulate_step(scenario, source.get_token());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->step, simulate_step(scenario).step);
  source.request_stop();
  EXPECT_FALSE(simulate_step(scenario, source.get_token()));
}

// The replay polls the stop token while it runs, not only before it begins.
TEST(SimulateStep, EndsInItsMidst) {
  Scenario scenario = llama_on_two_nodes();
  scenario.plan.global_batch = 512;
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const Prices prices = price(program, scenario.cluster, scenario.stack);
  std::stop_source source;
  EXPECT_FALSE(replay_folded(program, prices, {.stop = source.get_token()}).cancelled);
  source.request_stop();
  const FoldedReplay stopped = replay_folded(program, prices, {.stop = source.get_token()});
  EXPECT_TRUE(stopped.cancelled);
  EXPECT_FALSE(stopped.deadlocked);
}

// The collective that adds up gradients over tensor-parallel ranks stands behind their reduction on
// one stream, and all kernels behind both: they wait for the reduction.
TEST(ExposedReductions, AreNotBlamedOnTheShortCollectiveBehindThem) {
  Scenario scenario = llama_on_two_nodes();
  scenario.stack = load_stack("megatron-core");
  Plan& plan = scenario.plan;
  plan.pp = 1;
  plan.dp = 2;
  plan.zero_stage = 0;
  plan.sequence_parallel = true;
  const StepResult beside = simulate_step(scenario);
  plan.overlap.grad_reduce = false;
  const StepResult behind = simulate_step(scenario);
  const Seconds more_dp = behind.time().exposed[Axis::Data] - beside.time().exposed[Axis::Data];
  const Seconds more_tp = behind.time().exposed[Axis::Tensor] - beside.time().exposed[Axis::Tensor];
  EXPECT_GT(more_dp / beside.step, 0.01);
  EXPECT_LT(more_tp / more_dp, 0.05);
}

// The gradient norm meets tensor-parallel ranks and stages, and data-parallel ones only where they
// split the gradients: its time is not theirs.
TEST(GradientNorm, IsReportedUnderTheGroupThatItRunsOver) {
  Scenario scenario = llama_on_two_nodes();
  scenario.plan.tp = 1;
  scenario.plan.dp = 1;
  scenario.plan.pp = 1;
  scenario.plan.global_batch = 4;
  const auto exposed = [&scenario](Axis axis) {
    return simulate_step(scenario).stages[0].time.exposed[axis];
  };
  EXPECT_EQ(simulate_step(scenario).stages[0].time.exposed_total(), Seconds(0));
  scenario.plan.pp = 4;
  EXPECT_EQ(exposed(Axis::Data), Seconds(0));
  EXPECT_GT(exposed(Axis::Pipeline), Seconds(0));
  scenario.plan.pp = 1;
  scenario.plan.tp = 4;
  EXPECT_EQ(exposed(Axis::Data), Seconds(0));
  EXPECT_EQ(exposed(Axis::Pipeline), Seconds(0));
  EXPECT_GT(exposed(Axis::Tensor), Seconds(0));
  scenario.plan.tp = 1;
  scenario.plan.dp = 4;
  EXPECT_GT(exposed(Axis::Data), Seconds(0));
}

// Each of two collectives a layer in the backward pass is hidden beside a GEMM or not.
TEST(InputGradients, ReducedAfterTheWeightGradientsAreExposed) {
  Scenario scenario = llama_on_two_nodes();
  // Between and beside kernels they take as long as alone.
  scenario.stack.communication.collective_ratio = 1.0;
  scenario.stack.overlap.collective_slowdown = 0.0;
  const StepResult beside = simulate_step(scenario);
  scenario.stack.overlap.input_gradient = false;
  const StepResult after = simulate_step(scenario);
  const auto exposed = [](const StepResult& result) {
    return result.stages[0].time.exposed[Axis::Tensor].value();
  };
  EXPECT_GT(exposed(after), 1.5 * exposed(beside));
  EXPECT_LT(exposed(after), 2.5 * exposed(beside));
  EXPECT_GT(after.step, beside.step);
  const auto busy = [](const StepResult& result) {
    return result.stages[0].streams[Stream::TensorParallel].busy.value();
  };
  EXPECT_DOUBLE_EQ(busy(after), busy(beside));
}

TEST(ScatteredMessages, TakeOnlyAShareOfTheTimeOfWholeOnes) {
  Scenario scenario = llama_on_two_nodes();
  const StepResult parts = simulate_step(scenario);
  scenario.stack.communication.scatters_messages = false;
  const StepResult whole = simulate_step(scenario);
  EXPECT_LT(parts.step, whole.step);
  const auto sending = [](const StepResult& result) {
    return result.stages[0].streams[Stream::SendActivation].busy.value();
  };
  EXPECT_LT(sending(parts), sending(whole) / 2.0);
  EXPECT_GT(sending(parts), sending(whole) / 8.0);
}

// Bytes of a logit at the peak of a loss that is not fused: probabilities and their gradient in
// fp32 and the gradient in 16 bits; PyTorch's has one more gradient, and the fp32 logits where the
// model holds them.
TEST(StepMemory, OfAnUnfusedLossIsTenBytesALogitAndMoreInPyTorch) {
  Scenario scenario = llama_on_two_nodes();
  scenario.model.layers = 1;
  scenario.plan.tp = scenario.plan.pp = 1;
  scenario.plan.micro_batch = 4;
  scenario.stack.fusion.loss = false;
  const auto logits = static_cast<double>(4 * scenario.plan.seq_len * scenario.model.vocab);
  const auto bytes = [&] {
    return simulate_step(scenario).memory().of(MemoryCategory::Logits).value() / logits;
  };
  EXPECT_DOUBLE_EQ(bytes(), 10.0);
  scenario.stack.fusion.library_loss = true;
  EXPECT_DOUBLE_EQ(bytes(), 14.0);
  scenario.stack.fusion.parallel_loss = false;
  EXPECT_DOUBLE_EQ(bytes(), 18.0);
}

// DeepSpeed's optimizers hold more than the states: an fp32 copy of the rank's gradients, or the
// bf16 gradients beside their fp32 sum, and the bucket that is reduced.
TEST(StepMemory, OfDeepSpeedHoldsGradientsTwice) {
  Scenario scenario = llama_on_two_nodes();
  scenario.plan.zero_stage = 1;
  scenario.plan.dp = 2;
  scenario.plan.pp = 1;
  scenario.plan.precision = Precision::Fp16;
  scenario.stack.gradients.fp32_accumulation = false;
  scenario.stack.memory.fragmentation = 0.0;
  const auto peak = [&scenario] { return simulate_step(scenario).memory().peak.value(); };
  const double parameters =
      simulate_step(scenario).memory().of(MemoryCategory::Weights).value() / 2.0;
  const double plain = peak();
  scenario.stack.memory.step_gradient_bytes = Bytes(4);
  EXPECT_NEAR(peak() - plain, 4.0 * parameters / 2.0, 1.0);
  scenario.stack.memory.reduction_buffer = true;
  EXPECT_NEAR(peak() - plain, 2.0 * parameters + 2.0 * scenario.stack.gradients.bucket_elements,
              1.0);
  scenario.stack.memory.reduction_buffer = false;
  scenario.stack.gradients.fp32_accumulation = true;
  const double summed = peak();
  EXPECT_NEAR(summed - plain, 2.0 * parameters, 1.0);
  scenario.stack.memory.keeps_half_gradients = true;
  EXPECT_NEAR(peak() - summed, 2.0 * parameters, 1.0);
}

Scenario random_scenario(std::uint64_t seed, const ClusterSpec& cluster) {
  const LoweringCase made = CaseGenerator(seed).next();
  return {made.model, cluster, made.stack, made.plan};
}

TEST(SimulateStep, ScalesWithAllRates) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  for (const double k : {0.25, 3.0}) {
    const ClusterSpec scaled = faster(cluster, k);
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Scenario scenario = random_scenario(seed, cluster);
      const Seconds before = simulate_step(scenario).step;
      scenario.cluster = scaled;
      const Seconds after = simulate_step(scenario).step;
      ASSERT_NEAR(after * k / before, 1.0, 1e-9) << "seed " << seed;
    }
  }
}

TEST(SimulateStep, BusyAndIdleAreTheWallAndPartsAddUp) {
  const ClusterSpec cluster = load_cluster("dgx-a100");
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const StepResult result = simulate_step(random_scenario(seed, cluster));
    for (const StageResult& stage : result.stages) {
      Seconds sum;
      for (const StepPart part : enumerators<StepPart>()) sum += stage.time.of(part);
      ASSERT_NEAR(sum / result.step, 1.0, 1e-6);
      ASSERT_NEAR(stage.time.total() / sum, 1.0, 1e-12);
      for (const StreamUse& stream : stage.streams)
        ASSERT_NEAR((stream.busy + stream.idle) / result.step, 1.0, 1e-12);
      ASSERT_GE(stage.streams.front().idle.value(), -1e-9 * result.step.value());
    }
  }
}

// The basis of kernel times adds up to the kernels' own time, without copies to the host and
// without the cost of collectives beside them.
TEST(SimulateStep, TheBasisIsThatOfTheKernels) {
  const ClusterSpec cluster = load_cluster("dgx-a100");
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Scenario scenario = random_scenario(seed, cluster);
    scenario.plan.offload_activations = seed % 2 == 0;
    const StepResult result = simulate_step(scenario);
    const TimeBreakdown& time = result.time();
    const Seconds kernels = time.gemm + time.attention + time.memory_bound + time.optimizer;
    ASSERT_NEAR(result.basis.total() / kernels, 1.0, 1e-9) << seed;
  }
}

TEST(SimulateStep, RatesFollowFromTheStep) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const Scenario scenario = random_scenario(7, cluster);
  const StepResult result = simulate_step(scenario);
  const Plan& plan = scenario.plan;
  const double gpu_seconds = static_cast<double>(plan.world_size()) * result.step.value();
  EXPECT_DOUBLE_EQ(result.throughput.tokens_per_s_per_gpu * gpu_seconds,
                   static_cast<double>(plan.global_batch * plan.seq_len));
  EXPECT_NEAR(result.throughput.tflops_per_gpu * 1e12 * gpu_seconds /
                  model_flop_per_step(scenario.model, plan).value(),
              1.0, 1e-12);
}

Scenario gpt(std::int64_t layers, std::int64_t hidden, std::int64_t vocab) {
  Scenario scenario;
  scenario.model.layers = layers;
  scenario.model.hidden = hidden;
  scenario.model.vocab = vocab;
  scenario.model.attention = {.heads = 8, .kv_heads = 8, .head_dim = hidden / 8};
  scenario.model.mlp = {.ffn_hidden = 4 * hidden, .gated = false};
  scenario.plan.seq_len = 512;
  scenario.plan.global_batch = 4;
  return scenario;
}

// Narayanan et al. (arXiv 2104.04473, section 5.1) without recomputation:
// 72 B s l h^2 (1 + s/(6h) + V/(12 l h)), and 96 … (1 + s/(6h) + V/(16 l h)) with it.
TEST(ModelFlop, OfAStepIsThatOfMegatron) {
  const double l = 6, h = 256, vocab = 1024, s = 512, batch = 4;
  Scenario scenario = gpt(6, 256, 1024);
  EXPECT_DOUBLE_EQ(model_flop_per_step(scenario.model, scenario.plan).value(),
                   72.0 * batch * s * l * h * h * (1.0 + s / (6.0 * h) + vocab / (12.0 * l * h)));
  // Unfused attention multiplies whole score matrices, as the formula counts.
  scenario.stack.fusion.flash_attention = false;
  const auto really = [&] {
    return hardware_flop_per_step(lower(scenario.model, scenario.plan, scenario.stack)).value();
  };
  EXPECT_DOUBLE_EQ(really(), model_flop_per_step(scenario.model, scenario.plan).value());
  scenario.plan.recompute = RecomputePolicy::Full;
  EXPECT_DOUBLE_EQ(really(),
                   96.0 * batch * s * l * h * h * (1.0 + s / (6.0 * h) + vocab / (16.0 * l * h)));
}

// Unfused attention computes all that the model's formula counts, and recomputation more; so MFU is
// at most HFU. It computes the scores outside of a sliding window too, which the formula leaves
// out, and linear attention computes its states again in the backward pass.
TEST(ModelFlop, NeverExceedsWhatUnfusedStacksRun) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    LoweringCase made = CaseGenerator(seed).next();
    made.stack.fusion.flash_attention = false;
    const double model = model_flop_per_step(made.model, made.plan).value();
    const double run = hardware_flop_per_step(made.lower()).value();
    ASSERT_GE(run, model * (1.0 - 1e-12)) << shown(made);
    const bool runs_more = made.plan.recompute != RecomputePolicy::None || made.plan.tp > 1 ||
                           made.model.attention.sliding_window > 0 ||
                           made.model.linear_attention.has_value();
    ASSERT_TRUE(runs_more || run <= model * (1.0 + 1e-12)) << shown(made);
  }
}

// Each device of a stage is as fast as the others, so a slower link or device never helps.
TEST(SimulateStep, SlowerHardwareIsNeverFaster) {
  const ClusterSpec cluster = load_cluster("dgx-a100");
  ClusterSpec slow_memory = cluster, slow_host = cluster;
  slow_memory.accelerator.memory_bandwidth *= 0.5;
  slow_host.node.host.speed *= 0.25;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Seconds best = simulate_step(random_scenario(seed, cluster)).step;
    for (const ClusterSpec& slower : {slow_memory, slow_host})
      ASSERT_GE(simulate_step(random_scenario(seed, slower)).step, best) << seed;
  }
}

}  // namespace
}  // namespace shardwright::sim
