#include "planner/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <utility>
#include <vector>

#include "planner/compare.hpp"
#include "planner/wording.hpp"
#include "sim/cost/curve_cost.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {

namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Scenario llama_with_tensor_parallelism() {
  Plan plan;
  plan.dp = plan.tp = 4;
  plan.global_batch = 32;
  plan.seq_len = 8192;
  return scenario_of("llama3-8b", "megatron-core", plan);
}

// Matrix products take more than any one axis, but less than all communication together.
TEST(Explain, AddsUpCommunicationBeforeItNamesTheLimit) {
  sim::StepResult result;
  result.step = Seconds(1.0);
  result.stages.resize(1);
  sim::TimeBreakdown& time = result.stages[0].time;
  time.gemm = Seconds(0.36);
  time.attention = Seconds(0.04);
  time.exposed[Axis::Tensor] = Seconds(0.2);
  time.exposed[Axis::Data] = Seconds(0.3);
  time.bubble = Seconds(0.1);
  const std::vector<TimeShare> shares = time_shares(result);
  EXPECT_EQ(shares[0].use, TimeUse::Communication);
  EXPECT_DOUBLE_EQ(shares[0].share, 0.5);
  EXPECT_EQ(shares[0].mainly, sim::StepPart::ExposedData);
  EXPECT_DOUBLE_EQ(shares[1].share, 0.4);
  double sum = 0.0;
  for (const TimeShare& share : shares) sum += share.share;
  EXPECT_DOUBLE_EQ(sum, 1.0);
}

// Kernels that collectives slow down compute nonetheless: their delay is no exposed communication.
TEST(Explain, SlowdownOfKernelsIsNotExposedCommunication) {
  sim::StepResult result;
  result.step = Seconds(1.0);
  result.stages.resize(1);
  result.stages[0].time.gemm = Seconds(0.7);
  result.stages[0].time.interference = Seconds(0.25);
  result.stages[0].time.exposed[Axis::Data] = Seconds(0.05);
  const std::vector<TimeShare> shares = time_shares(result);
  EXPECT_EQ(shares[1].use, TimeUse::Interference);
  EXPECT_DOUBLE_EQ(shares[1].share, 0.25);
  EXPECT_EQ(shares[2].use, TimeUse::Communication);
  EXPECT_DOUBLE_EQ(shares[2].share, 0.05);
}

TEST(Explain, StopsBetweenSimulations) {
  std::stop_source source;
  source.request_stop();
  const Explanation explanation =
      explain(llama_with_tensor_parallelism(), kSensitivityStep, source.get_token());
  EXPECT_TRUE(explanation.partial);
  EXPECT_TRUE(explanation.sensitivities.empty());
  EXPECT_GT(explanation.result.step, Seconds());
  // Which resource would help most is not known yet.
  EXPECT_THAT(limit_text("It", explanation), StartsWith("It is compute-bound: GEMMs take "));
  EXPECT_THAT(limit_text("It", explanation), Not(HasSubstr("more")));
}

TEST(Explain, TakesASimulationThatIsDoneForItsOwn) {
  const Scenario scenario = llama_with_tensor_parallelism();
  const Explanation simulated = explain(scenario);
  const Explanation given =
      explain(scenario, sim::simulate_step(scenario), kSensitivityStep, std::stop_token());
  EXPECT_EQ(limit_text("It", given), limit_text("It", simulated));
  EXPECT_EQ(given.result.step, simulated.result.step);
  ASSERT_EQ(given.sensitivities.size(), simulated.sensitivities.size());
  for (std::size_t i = 0; i < given.sensitivities.size(); ++i)
    EXPECT_EQ(given.sensitivities[i].step, simulated.sensitivities[i].step);
}

TEST(Explain, NoResourceHurtsAndAllTogetherGainTheirShare) {
  const Explanation explanation = explain(llama_with_tensor_parallelism());
  ASSERT_EQ(explanation.sensitivities.size(), 7U);
  double sum = 0.0;
  for (const Sensitivity& sensitivity : explanation.sensitivities) {
    EXPECT_GE(sensitivity.gain, -1e-9) << name_of(sensitivity.resource);
    EXPECT_LE(sensitivity.gain, 0.1 + 1e-9) << name_of(sensitivity.resource);
    sum += sensitivity.gain;
  }
  // All rates times 1.1 divide the step by 1.1; shares overlap, so the sum is only near that.
  EXPECT_GT(sum, 0.05);
  EXPECT_LT(sum, 0.15);
}

TEST(Explain, MoreMemoryDropsRecomputationWhereThatFits) {
  Scenario scenario = llama_with_tensor_parallelism();
  scenario.plan.recompute = RecomputePolicy::Full;
  const Explanation tight = explain(scenario);
  Scenario kept = scenario;
  kept.plan.recompute = RecomputePolicy::None;
  const Bytes needed = explain(kept).result.memory().peak;
  // Without recomputation the plan needs 5 % more than the accelerator has.
  scenario.cluster.accelerator.memory = needed / 1.05;
  const Explanation explanation = explain(scenario);
  const Sensitivity& capacity = explanation.sensitivities[2];
  ASSERT_EQ(capacity.resource, Resource::MemoryCapacity);
  EXPECT_FALSE(capacity.through.empty());
  EXPECT_GT(capacity.gain, 0.1);
  EXPECT_EQ(explanation.result.step, tight.result.step);
}

// Between full recomputation and none lie plans that recompute some layers.
TEST(Explain, MoreMemoryRecomputesFewerLayers) {
  Scenario scenario = llama_with_tensor_parallelism();
  scenario.plan.recompute = RecomputePolicy::Full;
  Scenario partial = scenario;
  partial.plan.recompute_layers = 24;
  const Bytes needed = explain(partial).result.memory().peak;
  scenario.cluster.accelerator.memory = needed / 1.099;
  ASSERT_LT(explain(scenario).result.memory().peak, scenario.cluster.accelerator.memory);
  const Sensitivity capacity = explain(scenario).sensitivities[2];
  EXPECT_LE(capacity.step, explain(partial).result.step);
}

const Sensitivity* find(const Explanation& explanation, Resource resource) {
  for (const Sensitivity& each : explanation.sensitivities)
    if (each.resource == resource) return &each;
  return nullptr;
}

// Whatever the precision, its arithmetic is the limit of large matrix products.
TEST(Explain, MoreFlopsHelpEachPrecision) {
  Scenario scenario = llama_with_tensor_parallelism();
  scenario.cluster = load_cluster("dgx-b200");
  scenario.plan.tp = 1;
  scenario.plan.dp = 8;
  for (const Precision precision :
       {Precision::Fp16, Precision::Bf16, Precision::Fp8, Precision::Nvfp4}) {
    scenario.plan.precision = precision;
    const Explanation explanation = explain(scenario);
    Scenario faster = scenario;
    MatrixPeaks& peaks = faster.cluster.accelerator.matrix;
    for (FlopPerSecond* peak :
         {&peaks.fp32, &peaks.tf32, &peaks.fp16, &peaks.bf16, &peaks.fp8, &peaks.fp4})
      *peak *= 1.1;
    const double gain = explanation.result.step / explain(faster).result.step - 1.0;
    EXPECT_GT(gain, 0.02) << name_of(precision);
    EXPECT_GE(find(explanation, Resource::PeakFlops)->gain, gain - 1e-9) << name_of(precision);
  }
}

// A machine that was measured: the curves stand for its resources, of which the formulas' figures
// say nothing.
ClusterSpec measured_machine() {
  ClusterSpec cluster = load_cluster("dgx-h100");
  KernelCurve products;
  products.overhead = microseconds(20.0);
  products.flop_rate = FlopPerSecond(1e12);
  products.edge_m = products.edge_n = products.edge_k = 64.0;
  KernelCurve attention = products;
  attention.kind = OpKind::Attention;
  attention.score = Seconds(1e-10);
  KernelCurve norm;
  norm.kind = OpKind::Norm;
  norm.overhead = microseconds(5.0);
  norm.bandwidth = gigabytes_per_second(10.0);
  cluster.accelerator.kernel_curves = {products, attention, norm};
  ExchangeCurve within;
  within.alpha = microseconds(30.0);
  within.beta = gigabytes_per_second(2.0);
  ExchangeCurve between = within;
  between.nodes = between.span = 2;
  cluster.exchange_curves = {within, between};
  return cluster;
}

// By all curves of the machine.
std::vector<Seconds> curve_times(const ClusterSpec& cluster) {
  const auto& kernels = cluster.accelerator.kernel_curves;
  return {sim::curve_time(kernels[0], GemmWork{512, 1024, 2048}),
          sim::curve_time(kernels[1], AttentionWork{2, 4, 4, 128, 128, 32, 32, 1.0, false}),
          sim::curve_time(kernels[2], MemoryWork{Bytes(1e6), Bytes(1e6), Flop(), 1}),
          sim::curve_time(cluster.exchange_curves[0], Bytes(1e6)),
          sim::curve_time(cluster.exchange_curves[1], Bytes(1e6))};
}

TEST(Improved, CurvesOfAMeasuredMachineShareInEachResource) {
  const ClusterSpec cluster = measured_machine();
  const std::vector<Seconds> before = curve_times(cluster);
  // Which of them gain, in the order of `curve_times`.
  const std::vector<std::pair<Resource, std::vector<bool>>> cases = {
      {Resource::PeakFlops, {true, true, false, false, false}},
      {Resource::MemoryBandwidth, {true, false, true, false, false}},
      {Resource::ScaleUpBandwidth, {false, false, false, true, false}},
      {Resource::ScaleOutBandwidth, {false, false, false, false, true}},
      {Resource::Latency, {false, false, false, true, true}},
      {Resource::HostSpeed, {true, true, true, false, false}}};
  for (const auto& [resource, gains] : cases) {
    const std::vector<Seconds> after = curve_times(improved(cluster, resource, 1.0));
    for (std::size_t i = 0; i < gains.size(); ++i) {
      EXPECT_EQ(after[i] < before[i] * (1.0 - 1e-9), gains[i]) << name_of(resource) << ' ' << i;
      EXPECT_GE(after[i].value(), 0.5 * before[i].value() * (1.0 - 1e-12)) << name_of(resource);
    }
  }
}

TEST(Improved, AllResourcesTogetherDivideTheTimeOfEachCurve) {
  ClusterSpec cluster = measured_machine();
  const std::vector<Seconds> before = curve_times(cluster);
  for (const Resource resource :
       {Resource::PeakFlops, Resource::MemoryBandwidth, Resource::ScaleUpBandwidth,
        Resource::ScaleOutBandwidth, Resource::Latency, Resource::HostSpeed})
    cluster = improved(cluster, resource, 2.0);
  const std::vector<Seconds> after = curve_times(cluster);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i] / after[i], 3.0, 1e-9) << i;
}

// Copies to the host are a part of their own, and their link a resource.
TEST(Explain, OffloadedActivationsWaitForTheLinkToTheHost) {
  Scenario scenario = llama_with_tensor_parallelism();
  scenario.plan.tp = 1;
  scenario.plan.dp = 8;
  scenario.plan.seq_len = 2048;
  EXPECT_EQ(find(explain(scenario), Resource::HostLinkBandwidth), nullptr);
  scenario.plan.offload_activations = true;
  const Explanation explanation = explain(scenario);
  const sim::TimeBreakdown& time = explanation.result.time();
  EXPECT_EQ(time.exposed[Axis::Tensor], Seconds());
  ASSERT_GT(time.offload / explanation.result.step, 0.2);
  EXPECT_EQ(explanation.shares[0].use, TimeUse::Offload);
  EXPECT_GT(find(explanation, Resource::HostLinkBandwidth)->gain, 0.02);
}

// A server is limited by the memory of its host, or on a slow network by its network cards.
TEST(Explain, ParameterServersAreLimitedByTheirMemoryOrTheirNetworkCards) {
  Scenario scenario = llama_with_tensor_parallelism();
  scenario.plan.tp = 1;
  scenario.plan.dp = 32;
  scenario.plan.global_batch = 64;
  scenario.plan.zero_stage = 0;
  EXPECT_EQ(find(explain(scenario), Resource::HostMemoryBandwidth), nullptr);
  scenario.plan.replicas.sync = ReplicaSync::ParameterServer;
  scenario.plan.replicas.servers = 1;
  EXPECT_GT(find(explain(scenario), Resource::HostMemoryBandwidth)->gain, 0.03);
  NicSpec& nic = scenario.cluster.node.nic;
  nic.bandwidth = nic.bandwidth * 0.01;
  const Explanation slow = explain(scenario);
  EXPECT_LT(find(slow, Resource::HostMemoryBandwidth)->gain, 0.01);
  EXPECT_GT(find(slow, Resource::ScaleOutBandwidth)->gain, 0.03);
}

// The host's work for the optimizer is a part of its own; the slowest of its parts is the
// resource that helps.
TEST(Explain, AnOptimizerOnDiskIsLimitedByTheDisks) {
  Scenario scenario = llama_with_tensor_parallelism();
  scenario.plan.tp = 1;
  scenario.plan.dp = 8;
  scenario.plan.zero_stage = 2;
  EXPECT_EQ(find(explain(scenario), Resource::DiskBandwidth), nullptr);
  scenario.plan.offload_optimizer = OptimizerOffload::Host;
  const Explanation on_host = explain(scenario);
  EXPECT_EQ(find(on_host, Resource::DiskBandwidth), nullptr);
  EXPECT_GT(find(on_host, Resource::HostMemoryBandwidth)->gain, 0.01);
  scenario.plan.offload_optimizer = OptimizerOffload::Nvme;
  const Explanation on_disk = explain(scenario);
  EXPECT_EQ(on_disk.shares[0].use, TimeUse::Offload);
  EXPECT_LT(on_disk.result.time().optimizer / on_disk.result.step, 0.01);  // the norm alone
  EXPECT_GT(find(on_disk, Resource::DiskBandwidth)->gain, 0.05);
  EXPECT_LT(find(on_disk, Resource::HostMemoryBandwidth)->gain, 1e-9);
  EXPECT_GT(on_disk.result.step, on_host.result.step);
}

TEST(Compare, FindsNoDifferenceWithItself) {
  const Scenario scenario = llama_with_tensor_parallelism();
  const Comparison comparison = compare(scenario, scenario);
  EXPECT_TRUE(comparison.inputs.empty());
  for (const ResultDifference& each : comparison.results) EXPECT_EQ(each.change(), 0.0);
}

TEST(Compare, NamesTheFieldThatDiffersAndPartsAddUpToTheStep) {
  const Scenario first = llama_with_tensor_parallelism();
  Scenario second = first;
  second.plan.recompute = RecomputePolicy::Full;
  const Comparison comparison = compare(first, second);
  ASSERT_EQ(comparison.inputs.size(), 1U);
  EXPECT_EQ(comparison.inputs[0].pointer(), "/plan/recompute");
  EXPECT_EQ(comparison.inputs[0].first.text, "none");
  EXPECT_EQ(comparison.inputs[0].second.json, "\"full\"");
  EXPECT_GT(comparison.second.step, comparison.first.step);
  EXPECT_THAT(verdict_text(comparison, "A", "B"), StartsWith("A is "));
}

TEST(PeakMoment, IsAnOpOfAMicrobatch) {
  Plan plan;
  plan.dp = 8;
  plan.global_batch = 32;
  const Scenario scenario = scenario_of("llama3.2-1b", "megatron-core", plan);
  const auto moment = peak_moment(scenario, sim::simulate_step(scenario));
  ASSERT_TRUE(moment);
  EXPECT_FALSE(moment->op.empty());
  EXPECT_LE(moment->layer, scenario.model.layers);  // the head comes after the layers
  EXPECT_LT(moment->microbatch, 4);
  EXPECT_GE(moment->microbatch, 0);
}

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

TEST(Reliability, FiguresOfBurstsDoNotCountAsNoStepUsesThem) {
  ClusterSpec cluster = load_cluster("dgx-b200");
  const StackSpec stack = load_stack("generic-megatron");
  const FigureCounts before = figure_counts(cluster, stack);
  EXPECT_GT(std::erase_if(cluster.accelerator.sources,
                          [](const auto& entry) { return entry.first.starts_with("/burst/"); }),
            0U);
  EXPECT_EQ(figure_counts(cluster, stack).all, before.all);
  EXPECT_EQ(figure_counts(cluster, stack).estimates, before.estimates);
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
