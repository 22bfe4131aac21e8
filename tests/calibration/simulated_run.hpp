// Runs whose steps went exactly as a known profile of four hosts predicts them.
#pragma once

#include <cstdint>

#include "calibration/calibrate.hpp"
#include "core/lowering/lowering.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/predicted_timeline.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::calibration::fixtures {

inline KernelCurve streaming(OpKind kind, Phase phase, double bytes_per_s) {
  KernelCurve curve;
  curve.kind = kind;
  curve.phase = phase;
  curve.overhead = microseconds(5.0);
  curve.bandwidth = BytesPerSecond(bytes_per_s);
  return curve;
}

inline KernelCurve computing(OpKind kind, Phase phase, double flop_per_s) {
  KernelCurve curve;
  curve.kind = kind;
  curve.phase = phase;
  curve.overhead = microseconds(8.0);
  curve.flop_rate = FlopPerSecond(flop_per_s);
  if (kind == OpKind::Gemm) curve.edge_m = curve.edge_n = curve.edge_k = 4.0;
  if (kind == OpKind::Attention) curve.score = Seconds(3e-9);
  return curve;
}

// Four hosts with one rank each, whose kernels run at `speed` times the usual.
inline ClusterSpec four_hosts(double speed, double network) {
  ClusterSpec cluster;
  cluster.name = "four";
  AcceleratorSpec& device = cluster.accelerator;
  device.name = "cpu-rank";
  device.architecture = Architecture::Cpu;
  device.matrix.fp32 = device.vector_fp32 = FlopPerSecond(2e10);
  device.memory = gigabytes(8.0);
  device.memory_bandwidth = gigabytes_per_second(10.0);
  for (const Phase phase : {Phase::Forward, Phase::BackwardInput, Phase::BackwardWeight}) {
    device.kernel_curves.push_back(computing(OpKind::Gemm, phase, 2e10 * speed));
    device.kernel_curves.push_back(computing(OpKind::Attention, phase, 1e10 * speed));
    for (const OpKind kind : {OpKind::Norm, OpKind::Rope, OpKind::Activation, OpKind::Residual,
                              OpKind::Embedding, OpKind::Loss})
      device.kernel_curves.push_back(streaming(kind, phase, 2e9 * speed));
  }
  device.kernel_curves.push_back(streaming(OpKind::GradientNorm, Phase::Optimizer, 4e9 * speed));
  device.kernel_curves.push_back(streaming(OpKind::Optimizer, Phase::Optimizer, 4e9 * speed));
  cluster.node.accelerators = cluster.node.scale_up.domain = 1;
  cluster.node.scale_up.bandwidth = gigabytes_per_second(2.0);
  cluster.node.scale_up.collective_overhead = microseconds(100.0);
  cluster.node.nic = {1, BytesPerSecond(5e7 * network), 1.0};
  cluster.fabric.kind = FabricKind::LeafSpine;
  cluster.fabric.base_latency = microseconds(200.0);
  cluster.fabric.levels = {{2, 1.0, Seconds(0)}, {4, 2.0, Seconds(0)}};
  cluster.nodes = 4;
  cluster.stack = load_stack("shardwright");
  cluster.stack->communication.collective_ratio = 1.0;
  cluster.stack->communication.all_to_all_ratio = 1.0;
  cluster.stack->overlap.slowdown = 0.2;
  cluster.stack->gradients.bucket_elements = 5e4;
  cluster.stack->host.launch_time = microseconds(1.0);
  return cluster;
}

struct Degrees {
  std::int64_t dp = 1, tp = 1, pp = 1;
};

inline Scenario scenario_of(const ClusterSpec& cluster, const Degrees& degrees,
                            std::int64_t batch = 16) {
  Scenario scenario{load_model("tiny-llama"), cluster, *cluster.stack, {}};
  Plan& plan = scenario.plan;
  plan.dp = degrees.dp;
  plan.tp = degrees.tp;
  plan.pp = degrees.pp;
  plan.zero_stage = 0;
  plan.micro_batch = 2;
  plan.global_batch = batch;
  plan.seq_len = 128;
  plan.precision = Precision::Fp32;
  return scenario;
}

// The recording that the executor would have made of a step that goes exactly as the truth predicts
// it.
inline MeasuredRun simulated_run(const ClusterSpec& truth, const Scenario& scenario) {
  Scenario real = scenario;
  real.cluster = truth;
  real.stack = stack_on(truth, scenario.stack);
  const Program program = lower(real.model, real.plan, real.stack);
  const sim::Prices prices = sim::price(program, truth, real.stack);
  const sim::FoldedReplay replay = sim::replay_folded(program, prices, {true});
  const Timeline predicted = sim::predicted_timeline(program, prices, replay);
  const RankGrid grid(real.plan);
  MeasuredRun run;
  run.name = "run";
  run.scenario = scenario;
  run.step_times = {replay.step};
  for (std::int64_t step = 0; step < 3; ++step) {
    MeasuredStep& measured = run.steps.emplace_back();
    measured.step = step;
    for (std::int64_t rank = 0; rank < real.plan.world_size(); ++rank) {
      const StageRank place = grid.locate(rank);
      Timeline& timeline = measured.ranks.emplace_back();
      timeline.ranks.push_back({static_cast<std::int32_t>(rank), "", "host", Seconds(1.0)});
      for (Span span : predicted.spans) {
        if (grid.locate(span.rank).stage != place.stage) continue;
        if (span.peer >= 0) {
          const std::int64_t stage = grid.locate(span.peer).stage;
          span.peer = static_cast<std::int32_t>(grid.rank_at({stage, place.index}));
        }
        span.rank = static_cast<std::int32_t>(rank);
        timeline.spans.push_back(std::move(span));
      }
    }
  }
  return run;
}

}  // namespace shardwright::calibration::fixtures
