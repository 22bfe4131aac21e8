// Kernels matched to the ops of a plan, replays of traced steps, and profiles refitted to traces.
#include "calibration/traces/program_match.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "calibration/calibrate.hpp"
#include "calibration/trace_samples.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/step_replay.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_predictions.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"

namespace shardwright::calibration {
namespace {

constexpr std::int64_t kMicrosecond = 1000;

GemmWork product(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmWork work;
  work.m = m;
  work.n = n;
  work.k = k;
  return work;
}

// The first op of a plan, in bf16.
PlannedOp planned_product(const char* name, const GemmWork& work, double us,
                          Phase phase = Phase::Forward) {
  return {name, OpKind::Gemm, phase, Precision::Bf16, work, {}, microseconds(us)};
}

// A step of two layers, whose ops follow each other without a gap.
PlannedStep two_layers() {
  PlannedStep plan;
  Seconds now;
  const auto add = [&](const char* name, OpKind kind, Phase phase, const Work& work, double us) {
    plan.ops.push_back({name, kind, phase, Precision::Bf16, work, now, microseconds(us)});
    now += microseconds(us);
  };
  AttentionWork attention;
  CommunicationWork reduction;
  reduction.group = Group::Data;
  reduction.bytes = Bytes(4e6);
  for (int layer = 0; layer < 2; ++layer) {
    add("norm", OpKind::Norm, Phase::Forward, MemoryWork{Bytes(1e6), Bytes(1e6), Flop(0), 1}, 10);
    add("qkv", OpKind::Gemm, Phase::Forward, product(512, 192, 64), 30);
    add("attention", OpKind::Attention, Phase::Forward, attention, 40);
    add("projection", OpKind::Gemm, Phase::Forward, product(512, 64, 64), 20);
  }
  for (int layer = 0; layer < 2; ++layer) {
    attention.backward = true;
    add("attention", OpKind::Attention, Phase::BackwardInput, attention, 90);
    add("projection", OpKind::Gemm, Phase::BackwardWeight, product(64, 64, 512), 25);
  }
  add("reduce", OpKind::ReduceScatter, Phase::Optimizer, reduction, 50);
  plan.step = now;
  plan.exposed = microseconds(50);
  return plan;
}

// Records kernels one after the other on a stream, each launched when the one before it starts.
class Recorder {
 public:
  explicit Recorder(int steps) : step_(steps > 0 ? 0 : kNoIndex) {
    for (int i = 0; i < steps; ++i) trace_.steps.push_back({i, 0, 0});
  }

  void begin_step(TraceIndex step) {
    step_ = step;
    trace_.steps[static_cast<std::size_t>(step)].start = now_;
  }

  void kernel(KernelCategory category, const char* name, std::int64_t us, const char* op = nullptr,
              const std::string& shapes = "", std::int64_t gap_us = 0) {
    DeviceActivity activity;
    now_ += gap_us * kMicrosecond;
    // The host launches behind a gap at its end, and else well ahead.
    activity.launched = gap_us > 0 ? now_ - kMicrosecond : now_ - 300 * kMicrosecond;
    activity.start = now_;
    activity.duration = us * kMicrosecond;
    activity.category = category;
    activity.name = trace_.names.index_of(name);
    activity.step = step_;
    if (op != nullptr) {
      activity.op = trace_.names.index_of(op);
      activity.op_call = next_call_++;
    }
    if (!shapes.empty()) activity.shapes = trace_.names.index_of(shapes);
    now_ = activity.end();
    trace_.activities.push_back(activity);
  }

  void multiply(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t us) {
    kernel(
        KernelCategory::Gemm, "nvjet", us, "aten::mm",
        fmt::format("[[[{}, {}], [{}, {}]], [\"c10::BFloat16\", \"c10::BFloat16\"]]", m, k, k, n));
  }

  void reduce(std::int64_t bytes, std::int64_t us) {
    trace_.collectives.push_back({"reduce_scatter", bytes, 8, "0", "", "[0, 1, 2]", {}, bytes / 4});
    kernel(KernelCategory::Collective, "ncclDevKernel_ReduceScatter", us);
    trace_.activities.back().collective = static_cast<TraceIndex>(trace_.collectives.size() - 1);
  }

  Trace take() { return std::move(trace_); }
  std::int64_t now() const { return now_; }
  Trace& trace() { return trace_; }

 private:
  Trace trace_;
  std::int64_t now_ = 1'000'000;
  TraceIndex step_, next_call_ = 0;
};

// Two steps, of which the first is left out. Queries, keys and values are separate products, the
// projection's weight gradient takes twice its time, and the device waits for the host for 70 µs.
Trace trace_of_two_layers() {
  Recorder recorder(2);
  for (const TraceIndex step : {0, 1}) {
    recorder.begin_step(step);
    for (int layer = 0; layer < 2; ++layer) {
      recorder.kernel(KernelCategory::Elementwise, "triton_red_fused__fused_rms_norm_0", 10);
      for (int part = 0; part < 3; ++part) recorder.multiply(512, 64, 64, 20);
      recorder.kernel(KernelCategory::Attention, "flash_fwd_kernel", 40);
      recorder.multiply(512, 64, 64, 20);
    }
    for (int layer = 0; layer < 2; ++layer) {
      recorder.kernel(KernelCategory::Attention, "flash_bwd_dot_do_o_kernel", 10);
      recorder.kernel(KernelCategory::Attention, "flash_bwd_kernel", 70);
      recorder.kernel(KernelCategory::Attention, "flash_bwd_convert_dq_kernel", 10);
      recorder.multiply(64, 64, 512, 50);
    }
    recorder.kernel(KernelCategory::Other, "unknown_kernel", 7, nullptr, "", 70);
    recorder.reduce(4'000'000, 80);
  }
  return recorder.take();
}

const MatchedOp& op_of(const ProgramMatch& match, const char* name, Phase phase) {
  for (const MatchedOp& op : match.ops)
    if (op.name == name && op.phase == phase) return op;
  throw std::runtime_error(name);
}

const StepDifference& difference_of(const ProgramMatch& match, DifferenceCause cause) {
  for (const StepDifference& each : match.differences)
    if (each.cause == cause) return each;
  throw std::runtime_error(name_of(cause));
}

TEST(ProgramMatch, PutsKernelsBesideTheirOpsAndNamesCauses) {
  const Trace trace = trace_of_two_layers();
  const auto match = match_program(trace, two_layers());
  ASSERT_TRUE(match);
  EXPECT_EQ(match->steps, 1);
  EXPECT_FALSE(match->steps_inferred);
  EXPECT_NEAR(match->measured_step.value(), 697e-6, 1e-9);
  const MatchedOp& backward = op_of(*match, "attention", Phase::BackwardInput);
  EXPECT_EQ(backward.matched, 2.0);
  EXPECT_EQ(backward.kernels, 6.0);
  EXPECT_NEAR(backward.measured.value(), 180e-6, 1e-12);
  const MatchedOp& gradient = op_of(*match, "projection", Phase::BackwardWeight);
  EXPECT_NEAR(gradient.predicted.value(), 50e-6, 1e-12);
  EXPECT_NEAR(gradient.measured.value(), 100e-6, 1e-12);
  EXPECT_NEAR(op_of(*match, "norm", Phase::Forward).measured.value(), 20e-6, 1e-12);
  EXPECT_EQ(difference_of(*match, DifferenceCause::SlowerKernel).about,
            "projection, backward_weight");
  const StepDifference& gap = difference_of(*match, DifferenceCause::HostBoundGap);
  EXPECT_NEAR(gap.difference().value(), 70e-6, 1e-9);
  const StepDifference& exposed = difference_of(*match, DifferenceCause::ExposedCollective);
  EXPECT_NEAR(exposed.difference().value(), 30e-6, 1e-9);
  EXPECT_EQ(difference_of(*match, DifferenceCause::NotInPlan).about, "unknown_kernel");
}

// Products in fp8 stand beside the peak of fp8, whatever the plan says, and their time has that
// cause.
TEST(ProgramMatch, KnowsTheFormatOfKernels) {
  Trace trace = trace_of_two_layers();
  for (DeviceActivity& each : trace.activities) {
    if (each.shapes == kNoIndex) continue;
    std::string shapes = trace.names[each.shapes];
    for (std::size_t at = 0; (at = shapes.find("BFloat16")) != std::string::npos;)
      shapes.replace(at, 8, "Float8_e4m3fn");
    each.shapes = trace.names.index_of(shapes);
    each.op = trace.names.index_of("aten::_scaled_mm");
  }
  const AcceleratorSpec device = load_accelerator("h100-sxm");
  const auto match = match_program(trace, two_layers(), &device);
  ASSERT_TRUE(match);
  const MatchedOp& gradient = op_of(*match, "projection", Phase::BackwardWeight);
  EXPECT_EQ(gradient.measured_precision, Precision::Fp8);
  ASSERT_TRUE(gradient.roofline);
  EXPECT_DOUBLE_EQ(gradient.roofline->of_peak,
                   gradient.roofline->flop_rate / device.matrix.of(Precision::Fp8));
  const StepDifference& other = difference_of(*match, DifferenceCause::OtherFormat);
  EXPECT_EQ(other.about, "projection, backward_weight");
  const auto same = match_program(trace_of_two_layers(), two_layers());
  EXPECT_EQ(difference_of(*same, DifferenceCause::SlowerKernel).about, other.about);
  EXPECT_EQ(op_of(*match, "attention", Phase::Forward).measured_precision, std::nullopt);
}

// The products of queries, keys and values have the projection's shape: those that are left over
// once it has its own make up the joint op.
TEST(ProgramMatch, JoinsProductsThatTheFrameworkDoesNotFuse) {
  Recorder recorder(0);
  for (int part : {1024, 256, 256}) recorder.multiply(512, part, 64, 20);
  recorder.multiply(512, 64, 1024, 15);
  PlannedStep plan;
  plan.ops = {planned_product("qkv", product(512, 1536, 64), 30),
              {"projection", OpKind::Gemm, Phase::Forward, Precision::Bf16, product(512, 64, 1024),
               microseconds(30), microseconds(15)}};
  const auto match = match_program(recorder.take(), plan);
  ASSERT_TRUE(match);
  EXPECT_EQ(op_of(*match, "qkv", Phase::Forward).kernels, 3.0);
  const StepDifference& difference = difference_of(*match, DifferenceCause::MissingFusion);
  EXPECT_EQ(difference.about, "qkv, forward");
  EXPECT_NEAR(difference.difference().value(), 30e-6, 1e-12);
}

// A step of two layers of a model whose queries, keys, values and outputs have one size.
PlannedStep plan_of_square_layers(bool trains) {
  PlannedStep plan;
  const auto add = [&](const char* name, OpKind kind, Phase phase, const Work& work) {
    plan.ops.push_back({name, kind, phase, Precision::Bf16, work, plan.step, microseconds(10)});
    plan.step += microseconds(10);
  };
  const MemoryWork traffic{Bytes(1e6), Bytes(1e6), Flop(0), 1};
  AttentionWork attention;
  for (int layer = 0; layer < 2; ++layer) {
    add("norm", OpKind::Norm, Phase::Forward, traffic);
    add("qkv", OpKind::Gemm, Phase::Forward, product(512, 192, 64));
    add("rope", OpKind::Rope, Phase::Forward, traffic);
    add("attention", OpKind::Attention, Phase::Forward, attention);
    add("out", OpKind::Gemm, Phase::Forward, product(512, 64, 64));
    add("residual", OpKind::Residual, Phase::Forward, traffic);
    add("norm", OpKind::Norm, Phase::Forward, traffic);
    add("up", OpKind::Gemm, Phase::Forward, product(512, 320, 64));
    add("residual", OpKind::Residual, Phase::Forward, traffic);
  }
  attention.backward = true;
  for (int layer = 0; trains && layer < 2; ++layer) {
    add("up.dgrad", OpKind::Gemm, Phase::BackwardInput, product(512, 64, 320));
    add("norm", OpKind::Norm, Phase::BackwardInput, traffic);
    add("out.dgrad", OpKind::Gemm, Phase::BackwardInput, product(512, 64, 64));
    add("attention", OpKind::Attention, Phase::BackwardInput, attention);
    add("qkv.dgrad", OpKind::Gemm, Phase::BackwardInput, product(512, 64, 192));
  }
  if (trains) add("optimizer", OpKind::Optimizer, Phase::Optimizer, traffic);
  return plan;
}

// The same, where an eager framework does not join queries, keys and values (20 µs each, beside 30
// µs of the outputs), and runs norms and rotary embeddings as arithmetic.
Trace trace_of_square_layers(bool trains) {
  Recorder recorder(2);
  const auto compute = [&](const char* op, std::int64_t us) {
    recorder.kernel(KernelCategory::Elementwise, "void at::native::vectorized_elementwise_kernel",
                    us, op);
  };
  const auto norm = [&] {
    for (const char* op : {"aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul"})
      compute(op, 5);
  };
  for (const TraceIndex step : {0, 1}) {
    recorder.begin_step(step);
    for (int layer = 0; layer < 2; ++layer) {
      if (layer > 0) compute("aten::add", 8);
      norm();
      for (int part = 0; part < 3; ++part) recorder.multiply(512, 64, 64, 20);
      for (const char* op : {"aten::neg", "aten::cat", "aten::mul", "aten::add"}) compute(op, 4);
      recorder.kernel(KernelCategory::Attention, "flash_fwd_kernel", 10);
      recorder.multiply(512, 64, 64, 30);
      compute("aten::add", 8);
      norm();
      recorder.multiply(512, 320, 64, 10);
    }
    for (int layer = 0; trains && layer < 2; ++layer) {
      recorder.multiply(512, 64, 320, 10);
      compute("aten::mul", 6);
      recorder.multiply(512, 64, 64, 30);
      recorder.kernel(KernelCategory::Attention, "flash_bwd_kernel", 10);
      for (int part = 0; part < 3; ++part) recorder.multiply(512, 64, 64, 20);
    }
  }
  return recorder.take();
}

TEST(ProgramMatch, TellsProductsOfOneSizeApartByTheirPlace) {
  const auto match = match_program(trace_of_square_layers(true), plan_of_square_layers(true));
  ASSERT_TRUE(match);
  for (const auto& [name, phase, kernels, us] : {std::tuple{"qkv", Phase::Forward, 6.0, 120.0},
                                                 {"out", Phase::Forward, 2.0, 60.0},
                                                 {"out.dgrad", Phase::BackwardInput, 2.0, 60.0},
                                                 {"qkv.dgrad", Phase::BackwardInput, 6.0, 120.0}}) {
    const MatchedOp& op = op_of(*match, name, phase);
    EXPECT_EQ(op.matched, 2.0) << name;
    EXPECT_EQ(op.kernels, kernels) << name;
    EXPECT_NEAR(op.measured.value(), us * 1e-6, 1e-12) << name;
  }
}

// Arithmetic belongs to the only op that the plan has there. The longest additions behind outputs
// are the residual connections, and an addition before the attention is part of the rotary
// embedding.
TEST(ProgramMatch, KnowsUnfusedNormsByTheirPlace) {
  const auto match = match_program(trace_of_square_layers(true), plan_of_square_layers(true));
  ASSERT_TRUE(match);
  EXPECT_NEAR(op_of(*match, "rope", Phase::Forward).measured.value(), 2 * 16e-6, 1e-12);
  EXPECT_NEAR(op_of(*match, "residual", Phase::Forward).measured.value(), (3 * 8 + 5) * 1e-6, 1e-12)
      << "before the first product, the names of kernels decide";
  const MatchedOp& norm = op_of(*match, "norm", Phase::Forward);
  EXPECT_NEAR(norm.measured.value(), (3 * 25 + 5 + 2 * 6) * 1e-6, 1e-12);
  EXPECT_TRUE(std::ranges::any_of(match->differences, [](const StepDifference& each) {
    return each.about == "norm" && each.cause == DifferenceCause::MissingFusion;
  }));
}

TEST(ProgramMatch, SaysOnceThatARecordingHasNoBackwardPass) {
  const auto match = match_program(trace_of_square_layers(false), plan_of_square_layers(true));
  ASSERT_TRUE(match);
  EXPECT_TRUE(match->forward_only);
  const MatchedOp& norm = op_of(*match, "norm", Phase::Forward);
  EXPECT_EQ(norm.ops, 6.0);
  EXPECT_EQ(norm.matched, 4.0);
  EXPECT_NEAR(norm.predicted.value(), 40e-6, 1e-12);
  EXPECT_EQ(std::get<MemoryWork>(norm.work).kernels, 4);
  const StepDifference& rest = difference_of(*match, DifferenceCause::NotRecorded);
  EXPECT_EQ(rest.about, "backward pass, loss and optimizer");
  EXPECT_NEAR(rest.predicted.value(), 110e-6, 1e-12);
  EXPECT_FALSE(std::ranges::any_of(match->differences, [](const StepDifference& each) {
    return each.cause == DifferenceCause::NotInTrace;
  }));
}

// Kernels that finish a product, or that run one function over many lists, are no missing fusion;
// many functions are.
TEST(ProgramMatch, NamesNoMissingFusionWhereCallsHaveSeveralKernels) {
  PlannedStep plan;
  plan.ops = {planned_product("wgrad", product(64, 320, 512), 10, Phase::BackwardWeight),
              {"optimizer", OpKind::Optimizer, Phase::Optimizer, Precision::Fp32,
               MemoryWork{Bytes(1e6), Bytes(1e6), Flop(0), 1}, microseconds(10), microseconds(20)},
              {"norm", OpKind::Norm, Phase::Forward, Precision::Bf16,
               MemoryWork{Bytes(1e6), Bytes(1e6), Flop(0), 3}, microseconds(30), microseconds(10)}};
  plan.step = microseconds(1000);
  const auto cause_of = [&](const char* about, bool fused) {
    Recorder recorder(0);
    recorder.multiply(64, 320, 512, 12);
    recorder.kernel(KernelCategory::Gemm, "void splitKreduce_kernel<32, 16>", 2);
    for (int part = 0; part < 40; ++part)
      recorder.kernel(KernelCategory::Elementwise,
                      fmt::format("multi_tensor_apply_kernel<{}>", fused ? 0 : part % 4).c_str(),
                      1);
    for (int kernel = 0; kernel < 3; ++kernel)
      recorder.kernel(KernelCategory::Elementwise, "rms_norm", 5);
    const auto match = match_program(recorder.take(), plan);
    for (const StepDifference& each : match->differences)
      if (each.about == about) return each.cause;
    throw std::runtime_error(about);
  };
  EXPECT_EQ(cause_of("wgrad, backward_weight", true), DifferenceCause::SlowerKernel);
  EXPECT_EQ(cause_of("optimizer", true), DifferenceCause::SlowerKernel);
  EXPECT_EQ(cause_of("optimizer", false), DifferenceCause::MissingFusion);
  // The plan's stack needs three kernels, too.
  EXPECT_EQ(cause_of("norm", true), DifferenceCause::SlowerKernel);
}

TEST(ProgramMatch, DoesNotListRounding) {
  PlannedStep plan;
  plan.ops = {planned_product("projection", product(512, 64, 1024), 1000)};
  plan.step = microseconds(1000);
  for (const auto& [measured, listed] : {std::pair{1000.05, false}, {1000.2, true}}) {
    Recorder recorder(0);
    recorder.multiply(512, 64, 1024, 1000);
    recorder.trace().activities.back().duration = std::llround(measured * 1000);
    EXPECT_EQ(!match_program(recorder.take(), plan)->differences.empty(), listed) << measured;
  }
}

// A product in less time than the device's peak takes is one of other shapes.
TEST(ProgramMatch, KnowsAnOpAboveThePeak) {
  const AcceleratorSpec device = load_accelerator("h100-sxm");
  PlannedStep plan;
  plan.ops = {planned_product("projection", product(8192, 8192, 8192), 1400)};
  for (const auto& [us, above] : {std::pair{1400, false}, {700, true}}) {
    Recorder recorder(0);
    recorder.multiply(8192, 8192, 8192, us);
    const auto match = match_program(recorder.take(), plan, &device);
    ASSERT_TRUE(match && match->ops.front().roofline);
    EXPECT_EQ(op_above_peak(*match) != nullptr, above);
  }
}

TEST(ProgramMatch, CountsRepetitionsOfAnUnmarkedRecording) {
  Recorder recorder(0), without_shapes(0);
  for (int repetition = 0; repetition < 3; ++repetition) {
    recorder.multiply(512, 64, 1024, 15);
    without_shapes.kernel(KernelCategory::Gemm, "nvjet", 15);
  }
  PlannedStep plan;
  plan.ops = {planned_product("projection", product(512, 64, 1024), 15)};
  const auto match = match_program(recorder.take(), plan);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->steps, 3);
  EXPECT_TRUE(match->steps_inferred);
  EXPECT_EQ(match->ops.front().matched, 1.0);
  EXPECT_TRUE(match->differences.empty());
  EXPECT_EQ(match_program(without_shapes.take(), plan)->steps, 3);
  EXPECT_FALSE(match_program(Trace{}, plan));
}

// A replay of what was recorded gives what was recorded; a reduction whose gradient is there early
// hides behind the kernels that follow.
TEST(StepReplay, HidesAReductionThatBeginsWithItsGradient) {
  Recorder recorder(3);
  for (const TraceIndex step : {0, 1, 2}) {
    recorder.begin_step(step);
    recorder.kernel(KernelCategory::Gemm, "first", 100);
    recorder.trace().gradients.push_back({recorder.now() - 350 * kMicrosecond, 1000});
    recorder.kernel(KernelCategory::Gemm, "second", 200);
    recorder.reduce(4000, 60);
    recorder.trace().activities.back().stream = 20;
    recorder.kernel(KernelCategory::Elementwise, "optimizer", 40);
  }
  const std::vector<Trace> traces = {recorder.take()};
  const auto replayed = replay_steps(traces, {});
  ASSERT_TRUE(replayed);
  EXPECT_NEAR(replayed->recorded.value(), 400e-6, 1e-9);
  EXPECT_NEAR(replayed->replayed.value(), 400e-6, 1e-6);
  const auto changed = replay_steps(traces, {.reduce_when_ready = true, .slowdown = 0.1});
  EXPECT_EQ(changed->moved, 1.0);
  // Of 60 µs, the kernel beside the reduction gives 10 % back.
  EXPECT_NEAR(changed->replayed.value(), 346e-6, 1e-6);
}

// Calibrated to timings that a profile of other figures predicts, a profile predicts them.
TEST(TraceSamples, RefitLinksAndNotTheHostOfAProfile) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  Trace trace;
  std::int64_t now = 0;
  for (const double bytes : {1e6, 4e6, 16e6, 64e6, 256e6}) {
    trace.steps.push_back({static_cast<std::int64_t>(trace.steps.size()), now, 48'000});
    for (int call = 0; call < 4; ++call) {
      DeviceActivity activity;
      activity.category = KernelCategory::Collective;
      activity.name = trace.names.index_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
      activity.collective = static_cast<TraceIndex>(trace.collectives.size());
      activity.start = now;
      activity.launched = now - 50'000;
      activity.duration = static_cast<std::int64_t>(1e9 * (20e-6 + bytes / 1e11));
      now += 12'000;
      trace.collectives.push_back({"all_reduce",
                                   static_cast<std::int64_t>(bytes),
                                   8,
                                   "0",
                                   "",
                                   "[0, 1, 2, 3, 4, 5, 6, 7]",
                                   {}});
      activity.step = static_cast<TraceIndex>(trace.steps.size() - 1);
      trace.activities.push_back(activity);
    }
  }
  EXPECT_TRUE(samples_of({trace}, {}, {}, cluster).exchanges.empty())
      << "a single rank does not tell transfers from waiting";
  Trace other = trace;
  trace.rank = 0;
  other.rank = 1;
  CalibrationData data;
  data.recorded = samples_of({trace, other}, {}, match_ranks({trace, other}), cluster);
  data.stack = load_stack("megatron-core");
  ASSERT_EQ(data.recorded->exchanges.size(), 5U);
  const Calibration result = calibrate(cluster, data, "test");
  // The profiler that records launches lengthens them.
  EXPECT_EQ(result.cluster.stack->host.launch_time, data.stack->host.launch_time);
  ASSERT_EQ(result.ops.size(), 1U);
  EXPECT_GT(result.ops.front().before.median_abs, 0.2);
  EXPECT_LT(result.ops.front().after.median_abs, 0.02);
}

// A device that pauses between its kernels runs at a higher clock than in training: what its
// products take says nothing of the clock of training.
TEST(TraceSamples, AHostBoundTraceKeepsTheClockOfTraining) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const auto clock_after = [&](bool at_training_clock) {
    CalibrationData data;
    RunSamples& samples = data.recorded.emplace();
    for (const std::int64_t n : {1024, 4096, 16384}) {
      KernelSample& sample = samples.kernels.emplace_back();
      sample.name = "gemm";
      sample.kind = OpKind::Gemm;
      sample.precision = Precision::Bf16;
      sample.work = GemmWork{.m = 8192, .n = n, .k = 8192};
      sample.times = {Seconds(2.0 * 8192.0 * 8192.0 * static_cast<double>(n) / 7e14)};
      sample.total = sample.times.front();
    }
    samples.at_training_clock = at_training_clock;
    data.stack = load_stack("megatron-core");
    return calibrate(cluster, data, "test").cluster.accelerator.sustained_clock_ratio;
  };
  EXPECT_EQ(clock_after(false), cluster.accelerator.sustained_clock_ratio);
  EXPECT_EQ(clock_after(true), 1.0);
}

}  // namespace
}  // namespace shardwright::calibration
