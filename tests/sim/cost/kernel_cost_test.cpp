// Laws of the kernel costs: bounds, monotony, scaling.
#include "sim/cost/kernel_cost.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <utility>

#include "core/spec/profile_library.hpp"
#include "tests/sim/cost/shipped_hardware.hpp"

namespace shardwright::sim {
namespace {

AcceleratorSpec any_device() {
  return *rc::gen::element(fixtures::a100(), fixtures::h100(), fixtures::b200());
}

Precision any_precision() {
  return kPrecisions[*rc::gen::inRange<std::size_t>(0, kPrecisions.size())];
}

std::int64_t any_size() {
  return *rc::gen::inRange<std::int64_t>(1, 40000);
}

GemmWork any_gemm() {
  GemmWork work{.m = any_size(), .n = any_size(), .k = any_size()};
  work.batch = *rc::gen::inRange<std::int64_t>(1, 9);
  work.accumulate_fp32 = *rc::gen::arbitrary<bool>();
  return work;
}

AttentionWork any_attention() {
  AttentionWork work{.batch = *rc::gen::inRange<std::int64_t>(1, 9)};
  work.kv_heads = *rc::gen::inRange<std::int64_t>(1, 9);
  work.heads = work.kv_heads * *rc::gen::inRange<std::int64_t>(1, 9);
  work.q_tokens = work.kv_tokens = any_size();
  work.qk_head_dim = 64 * *rc::gen::inRange<std::int64_t>(1, 5);
  work.v_head_dim = work.qk_head_dim;
  work.score_share = *rc::gen::element(0.1, 0.5, 1.0);
  work.backward = *rc::gen::arbitrary<bool>();
  return work;
}

MemoryWork stream(double read_bytes, double written_bytes, std::int64_t kernels = 1) {
  return {.read = Bytes(read_bytes),
          .written = Bytes(written_bytes),
          .flop = Flop(0),
          .kernels = kernels};
}

Seconds gemm_time(const GemmWork& work, const AcceleratorSpec& device,
                  Precision precision = Precision::Bf16) {
  return kernel_time(OpKind::Gemm, work, precision, device, StackSpec{});
}

Seconds attention_time(const AttentionWork& work, const AcceleratorSpec& device) {
  return kernel_time(OpKind::Attention, work, Precision::Bf16, device, StackSpec{});
}

Seconds memory_time(OpKind kind, const MemoryWork& work, const AcceleratorSpec& device) {
  return kernel_time(kind, work, Precision::Bf16, device, StackSpec{});
}

RC_GTEST_PROP(KernelCost, GemmsAreNeverFasterThanTheRoofline, ()) {
  const AcceleratorSpec device = any_device();
  const GemmWork work = any_gemm();
  const KernelCost cost = kernel_cost(OpKind::Gemm, work, Precision::Bf16, device, StackSpec{});
  const double least_bytes =
      2.0 * static_cast<double>(work.batch) *
      static_cast<double>(work.m * work.n + work.m * work.k + work.k * work.n);
  RC_ASSERT(cost.time >= work.flop() / device.matrix.bf16);
  RC_ASSERT(cost.time >= Bytes(least_bytes) / device.memory_bandwidth);
  RC_ASSERT(cost.efficiency > 0.0);
  RC_ASSERT(cost.efficiency <= 1.0);
}

RC_GTEST_PROP(KernelCost, AttentionIsNeverFasterThanTheRoofline, ()) {
  const AcceleratorSpec device = any_device();
  const AttentionWork work = any_attention();
  const KernelCost cost =
      kernel_cost(OpKind::Attention, work, Precision::Bf16, device, StackSpec{});
  RC_ASSERT(cost.time >= work.flop() / device.matrix.bf16);
  RC_ASSERT(cost.efficiency <= 1.0);
}

// All rates by 2, all times of the profile by 1/2: half the time, whatever the shape.
RC_GTEST_PROP(KernelCost, TwiceTheMachineTakesHalfTheTime, ()) {
  const AcceleratorSpec device = any_device();
  AcceleratorSpec twice = device;
  for (FlopPerSecond* peak :
       {&twice.matrix.fp32, &twice.matrix.tf32, &twice.matrix.fp16, &twice.matrix.bf16,
        &twice.matrix.fp8, &twice.matrix.fp4, &twice.vector_fp32})
    *peak *= 2.0;
  twice.memory_bandwidth *= 2.0;
  twice.exponentials_per_s *= 2.0;
  for (Seconds* time : {&twice.efficiency.kernel_overhead, &twice.efficiency.gemm_overhead,
                        &twice.efficiency.power_delay})
    *time *= 0.5;
  const MemoryWork copy = stream(static_cast<double>(any_size()) * 1e4, 0.0);
  const Precision precision = any_precision();
  for (const auto& [kind, work] : {std::pair<OpKind, Work>{OpKind::Gemm, any_gemm()},
                                   std::pair<OpKind, Work>{OpKind::Attention, any_attention()},
                                   std::pair<OpKind, Work>{OpKind::Norm, copy}}) {
    const double ratio = kernel_time(kind, work, precision, device, StackSpec{}) /
                         kernel_time(kind, work, precision, twice, StackSpec{});
    RC_ASSERT(std::abs(ratio - 2.0) < 1e-9);
  }
}

TEST(KernelCost, TwiceTheBatchOfALargeGemmTakesTwiceTheTime) {
  for (const AcceleratorSpec& device : {fixtures::a100(), fixtures::h100(), fixtures::b200()}) {
    const Seconds once = gemm_time({.m = 16384, .n = 16384, .k = 8192}, device);
    const Seconds twice = gemm_time({.m = 16384, .n = 16384, .k = 8192, .batch = 2}, device);
    EXPECT_NEAR(twice / once, 2.0, 0.1) << name_of(device.architecture);
  }
}

// One tile more than fills the device starts another wave.
TEST(KernelCost, AWaveMoreCostsMoreThanItsShareOfTheWork) {
  AcceleratorSpec device = fixtures::a100();
  device.efficiency.wave_loss = 1.0;
  const std::int64_t one_wave = 128 * 108;
  const Seconds full = gemm_time({.m = one_wave, .n = 256, .k = 8192}, device);
  const Seconds over = gemm_time({.m = one_wave + 128 * 8, .n = 256, .k = 8192}, device);
  EXPECT_GT(over / full, 1.2);
}

TEST(KernelCost, LowerPrecisionIsFasterWhereComputeLimits) {
  const GemmWork work{.m = 8192, .n = 8192, .k = 8192};
  const AcceleratorSpec device = fixtures::h100();
  EXPECT_LT(gemm_time(work, device, Precision::Fp8), gemm_time(work, device, Precision::Bf16));
  EXPECT_LT(gemm_time(work, device, Precision::Bf16), gemm_time(work, device, Precision::Tf32));
  EXPECT_LT(gemm_time(work, device, Precision::Tf32), gemm_time(work, device, Precision::Fp32));
}

TEST(KernelCost, FourBitsAreFasterThanEightOnDevicesThatMultiplyThem) {
  const GemmWork work{.m = 8192, .n = 8192, .k = 8192};
  const AcceleratorSpec device = fixtures::b200();
  EXPECT_LT(gemm_time(work, device, Precision::Nvfp4), gemm_time(work, device, Precision::Fp8));
}

// The products of unfused attention: heads of 108 elements do less work than heads of 112, but
// their rows do not begin where matrix units can load them.
TEST(KernelCost, BatchedProductsOfUnalignedRowsRunOnTheVectorUnits) {
  const AcceleratorSpec device = fixtures::a100();
  const auto scores = [&](std::int64_t head_dim, Precision precision) {
    return gemm_time({.m = 2048, .n = 2048, .k = head_dim, .batch = 64}, device, precision);
  };
  const GemmWork work{.m = 2048, .n = 2048, .k = 108, .batch = 64};
  EXPECT_GT(scores(108, Precision::Bf16), scores(112, Precision::Bf16) * 2.0);
  EXPECT_GE(scores(108, Precision::Bf16), work.flop() / device.vector_fp32);
  EXPECT_LE(scores(108, Precision::Tf32), scores(112, Precision::Tf32));
}

// An A100 has no fp8 units: there it multiplies in bf16. An H100 has no fp4 units.
TEST(KernelCost, MissingFormatsRunInTheNextOne) {
  const GemmWork work{.m = 8192, .n = 8192, .k = 8192};
  const AcceleratorSpec a100 = fixtures::a100(), h100 = fixtures::h100();
  EXPECT_NEAR(gemm_time(work, a100, Precision::Fp8) / gemm_time(work, a100), 1.0, 0.05);
  EXPECT_NEAR(gemm_time(work, h100, Precision::Nvfp4) / gemm_time(work, h100, Precision::Fp8), 1.0,
              0.05);
}

TEST(KernelCost, ManySmallExpertsAreSlowerThanOneLargeGemm) {
  const AcceleratorSpec device = fixtures::h100();
  const GemmWork dense{.m = 8192, .n = 4096, .k = 4096};
  GemmWork experts = dense;
  experts.groups = 64;
  const Seconds grouped =
      kernel_time(OpKind::GroupedGemm, experts, Precision::Bf16, device, StackSpec{});
  EXPECT_GT(grouped, gemm_time(dense, device));
  EXPECT_LT(grouped / gemm_time(dense, device), 3.0);
}

TEST(KernelCost, CausalAttentionTakesBetweenHalfAndAllOfTheTime) {
  const AcceleratorSpec device = fixtures::h100();
  AttentionWork work{.batch = 4,
                     .heads = 32,
                     .kv_heads = 8,
                     .q_tokens = 4096,
                     .kv_tokens = 4096,
                     .qk_head_dim = 128,
                     .v_head_dim = 128};
  const Seconds full = attention_time(work, device);
  work.score_share = 0.5;
  const Seconds causal = attention_time(work, device);
  EXPECT_GT(causal / full, 0.5);
  EXPECT_LT(causal / full, 0.65);
}

TEST(KernelCost, AMaskNeverMakesAttentionSlower) {
  const AcceleratorSpec device = fixtures::h100();
  for (const std::int64_t tokens : {1, 64, 128, 512, 2048}) {
    for (const std::int64_t width : {64, 128, 256}) {
      for (const bool backward : {false, true}) {
        AttentionWork work{.batch = 4,
                           .heads = 16,
                           .kv_heads = 16,
                           .q_tokens = tokens,
                           .kv_tokens = tokens,
                           .qk_head_dim = width,
                           .v_head_dim = width,
                           .backward = backward};
        const Seconds full = attention_time(work, device);
        work.score_share = 0.5;
        EXPECT_LE(attention_time(work, device), full) << tokens << " tokens, width " << width;
      }
    }
  }
}

AttentionWork causal_heads(std::int64_t width, bool backward = false) {
  return {.batch = 2,
          .heads = 32,
          .kv_heads = 32,
          .q_tokens = 16384,
          .kv_tokens = 16384,
          .qk_head_dim = width,
          .v_head_dim = width,
          .score_share = 0.5,
          .backward = backward};
}

// Forward passes over 16,384 tokens: FlashAttention-3 of vLLM 0.24.0 on H100, TensorRT-LLM's
// kernels on B200 (TFLOP/s, aiconfigurator).
TEST(KernelCost, ExponentialsLimitNarrowHeadsAsMeasured) {
  struct Measured {
    const char* device;
    double narrow, middle, wide;
  };
  for (const Measured& measured :
       {Measured{"h100-sxm", 527.0, 676.0, 787.0}, Measured{"b200", 798.0, 1351.0, 1486.0}}) {
    const AcceleratorSpec device = load_accelerator(measured.device);
    const auto rate = [&](std::int64_t width) {
      const AttentionWork work = causal_heads(width);
      return work.flop() / attention_time(work, device);
    };
    EXPECT_NEAR(rate(64) / rate(128), measured.narrow / measured.middle, 0.05) << measured.device;
    EXPECT_NEAR(rate(256) / rate(128), measured.wide / measured.middle, 0.05) << measured.device;
  }
}

// On an H100 FlashAttention-2 has 350 of the 616 TFLOP/s of FlashAttention-3, and cuDNN lies
// between them (arXiv 2407.08608); on an A100 only FlashAttention 1 is slower than the others.
TEST(KernelCost, AttentionTakesAsLongAsTheKernelOfTheStack) {
  const AttentionWork work = causal_heads(128, true);
  const auto slowdown = [&](const char* device, AttentionKernel kernel) {
    const auto time = [&](AttentionKernel each) {
      StackSpec stack;
      stack.fusion.attention_kernel = each;
      return kernel_time(OpKind::Attention, work, Precision::Bf16, load_accelerator(device), stack);
    };
    return time(kernel) / time(AttentionKernel::FlashAttention3);
  };
  EXPECT_NEAR(slowdown("h100-sxm", AttentionKernel::FlashAttention2), 616.0 / 350.0, 0.03);
  EXPECT_GT(slowdown("h100-sxm", AttentionKernel::Cudnn), 1.0);
  EXPECT_LT(slowdown("h100-sxm", AttentionKernel::Cudnn), 1.1);
  EXPECT_GT(slowdown("h100-sxm", AttentionKernel::FlashAttention1),
            1.3 * slowdown("h100-sxm", AttentionKernel::FlashAttention2));
  EXPECT_EQ(slowdown("a100-80gb", AttentionKernel::FlashAttention2), 1.0);
  EXPECT_GT(slowdown("a100-80gb", AttentionKernel::FlashAttention1), 1.5);
}

// Twice the exponentials help where the softmax limits: forward more than backward, narrow heads
// more than wide ones, and Blackwell more than Ampere.
TEST(KernelCost, MoreExponentialsHelpWhereTheSoftmaxLimits) {
  const auto gain = [](const char* name, std::int64_t width, bool backward) {
    const AcceleratorSpec device = load_accelerator(name);
    AcceleratorSpec twice = device;
    twice.exponentials_per_s *= 2.0;
    // Relative to heads of 128, whose speed the profile states.
    const AttentionWork work = causal_heads(width, backward);
    return attention_time(work, device) / attention_time(work, twice);
  };
  EXPECT_GT(gain("b200", 64, false), 1.1);
  EXPECT_LT(gain("b200", 256, false), 1.0);
  EXPECT_GT(gain("b200", 64, false), gain("b200", 64, true));
  EXPECT_GT(gain("b200", 64, false), gain("a100-80gb", 64, false));
}

// Where FP8 attention is on, the softmax keeps narrow heads from its gain. H100: 1.18, 1.35 and
// 1.55 times at widths of 64, 128 and 256 (TensorRT-LLM 1.3.0rc20, aiconfigurator).
TEST(KernelCost, AttentionInFp8GainsMoreTheWiderTheHeads) {
  const AcceleratorSpec device = load_accelerator("h100-sxm");
  StackSpec stack;
  const auto time = [&](std::int64_t width) {
    return kernel_time(OpKind::Attention, causal_heads(width), Precision::Fp8, device, stack);
  };
  double last = 1.0;
  for (const auto& [width, measured] :
       {std::pair<std::int64_t, double>{64, 1.18}, {128, 1.35}, {256, 1.55}}) {
    stack.fusion.fp8_attention = false;
    const Seconds half = time(width);
    EXPECT_EQ(half, attention_time(causal_heads(width), device));
    stack.fusion.fp8_attention = true;
    const double gained = half / time(width);
    EXPECT_GT(gained, last);
    EXPECT_NEAR(gained, measured, 0.12) << width;
    last = gained;
  }
}

TEST(KernelCost, MemoryBoundTimeGrowsWithBytesAndKernels) {
  const AcceleratorSpec device = fixtures::h100();
  Seconds last;
  for (double bytes = 1e3; bytes < 1e11; bytes *= 1.07) {
    const MemoryWork work = stream(bytes / 2, bytes / 2);
    const Seconds time = memory_time(OpKind::Norm, work, device);
    EXPECT_GT(time, last);
    last = time;
  }
  MemoryWork unfused = stream(1e9, 0.0);
  const Seconds one = memory_time(OpKind::Dropout, unfused, device);
  unfused.kernels = 5;
  const Seconds five = memory_time(OpKind::Dropout, unfused, device);
  EXPECT_NEAR((five - one) / (device.efficiency.kernel_overhead * 4.0), 1.0, 0.2);
}

// BabelStream reaches 2.97 TB/s on H100 (Azure AI benchmarking guide, ND H100 v5).
TEST(KernelCost, LargeStreamsReachTheMeasuredBandwidth) {
  const MemoryWork work = stream(4e9, 2e9);
  const Seconds time = memory_time(OpKind::Residual, work, fixtures::h100());
  EXPECT_NEAR(6e9 / time.value() / 2.97e12, 1.0, 0.02);
}

TEST(KernelCost, OffloadIsLimitedByTheLinkToTheHost) {
  ClusterSpec cluster = fixtures::dgx_h100();
  cluster.node.host.accelerator_link = gigabytes_per_second(50);
  const MemoryWork work = stream(10e9, 0.0);
  const KernelCost cost = kernel_cost(OpKind::Offload, work, Precision::Bf16, cluster, StackSpec{});
  EXPECT_GT(cost.time, Seconds(0.2));
  EXPECT_LT(cost.time, Seconds(0.3));
}

constexpr std::int64_t kSharers = 4;

Seconds host_update_time(const HostUpdateWork& work, const ClusterSpec& cluster) {
  return host_update_cost(work, cluster.node.host, cluster.accelerator, kSharers).time;
}

// Each part in turn is made the slowest: the time follows it and no other.
TEST(KernelCost, StatesOnTheHostArePacedByTheSlowestPart) {
  ClusterSpec cluster = fixtures::dgx_h100();
  HostSpec& host = cluster.node.host;
  const auto ranks = static_cast<double>(kSharers);
  const HostUpdateWork in_memory{Bytes(4e9), Bytes(2e9), Bytes(12e9), false};
  HostUpdateWork on_disk = in_memory;
  on_disk.on_disk = true;
  for (BytesPerSecond* rate :
       {&host.accelerator_link, &host.memory_bandwidth, &host.nvme_read, &host.nvme_write})
    *rate = gigabytes_per_second(1e6);
  const HostSpec fast = host;

  host.accelerator_link = gigabytes_per_second(1.0);
  EXPECT_NEAR(host_update_time(in_memory, cluster).value(),
              4.0 / cluster.accelerator.efficiency.host_link, 0.01);
  host = fast;
  host.memory_bandwidth = gigabytes_per_second(100.0);
  EXPECT_NEAR(host_update_time(in_memory, cluster).value(), ranks * 30.0 / 46.0, 0.01);
  EXPECT_EQ(host_update_time(on_disk, cluster), host_update_time(in_memory, cluster));
  host = fast;
  host.nvme_read = gigabytes_per_second(20.0);
  host.nvme_write = gigabytes_per_second(10.0);
  EXPECT_NEAR(host_update_time(on_disk, cluster).value(), ranks * 12.0 * (0.05 + 0.1), 0.01);
  EXPECT_LT(host_update_time(in_memory, cluster).value(), 0.01);
}

TEST(KernelCost, NothingTakesNoTime) {
  const AcceleratorSpec device = fixtures::h100();
  EXPECT_EQ(gemm_time({}, device), Seconds(0));
  EXPECT_EQ(attention_time({}, device), Seconds(0));
  EXPECT_EQ(memory_time(OpKind::Norm, {}, device), Seconds(0));
}

}  // namespace
}  // namespace shardwright::sim
