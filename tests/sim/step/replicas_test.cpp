// Steps of replicas that make local steps or compress their gradients.
#include <gtest/gtest.h>

#include "sim/step/analytic.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

using fixtures::small_scenario;

// Sixteen replicas on two nodes.
Scenario replicas_of(ReplicaSync sync, ReplicaCompression compression,
                     std::int64_t inner_steps = 1) {
  Scenario scenario = small_scenario(16, 1, 1);
  scenario.plan.zero_stage = 0;
  scenario.plan.replicas.sync = sync;
  scenario.plan.replicas.compression = compression;
  scenario.plan.replicas.inner_steps = inner_steps;
  return scenario;
}

Seconds step_of(const Scenario& scenario) {
  return simulate_step(scenario).step;
}

// INTELLECT-1 counts its time so: inner steps, and an exchange after each H of them (arXiv
// 2412.01152, section 3).
TEST(LocalSteps, AddTheirExchangeToSoManySteps) {
  const auto local = [](std::int64_t inner_steps) {
    return step_of(replicas_of(ReplicaSync::LocalSteps, ReplicaCompression::None, inner_steps));
  };
  const Seconds inner = local(kMaxInnerSteps), every = local(1), tenth = local(10);
  EXPECT_GT(every, inner * 1.01);
  EXPECT_NEAR((tenth - inner) * 10.0 / (every - inner), 1.0, 1e-3);
}

Scenario streaming(std::int64_t fragments, std::int64_t overlap_steps,
                   ReplicaCompression form = ReplicaCompression::None) {
  Scenario scenario = replicas_of(ReplicaSync::LocalSteps, form, 16);
  ReplicaAgreement& replicas = scenario.plan.replicas;
  replicas.outer = OuterOptimizer::Nesterov;
  replicas.fragments = fragments;
  replicas.overlap_steps = overlap_steps;
  return scenario;
}

Scenario with_nics(Scenario scenario, double ratio) {
  scenario.cluster.node.nic.bandwidth = scenario.cluster.node.nic.bandwidth * ratio;
  return scenario;
}

Scenario with_experts(Scenario scenario) {
  MoeSpec& moe = scenario.model.moe.emplace();
  moe.experts = 8;
  moe.top_k = 2;
  moe.expert_ffn = 2048;
  return scenario;
}

// Where the exchange takes longer than the steps beside it, these save their own time once in all
// inner steps; where it does not, nothing of it is left. Experts are exchanged after the other
// parameters, beside the same steps.
TEST(StreamingDiLoCo, HidesSoManySteps) {
  constexpr double kSlow = 1e-4;
  for (const bool sparse : {false, true}) {
    const auto step = [&](std::int64_t overlap, double ratio) {
      const Scenario scenario = with_nics(streaming(1, overlap), ratio);
      return step_of(sparse ? with_experts(scenario) : scenario);
    };
    const Seconds plain = step(0, kSlow), inner = step(1, 1e3);
    for (const std::int64_t overlap : {1, 3}) {
      const Seconds saved = plain - step(overlap, kSlow);
      EXPECT_NEAR(saved / (inner * static_cast<double>(overlap) / 16.0), 1.0, 1e-6) << sparse;
    }
    EXPECT_EQ(step(2, 1e3), inner) << sparse;
    EXPECT_LT(inner, step(0, 1e3)) << sparse;
  }
}

// However slow the network is, an exchange in fragments beside steps leaves no more than that of
// DiLoCo. It makes no step shorter than it is by itself, and a faster network is no worse.
TEST(StreamingDiLoCo, LeavesNoMoreThanDiLoCo) {
  for (const ReplicaCompression form : {ReplicaCompression::None, ReplicaCompression::Fp4}) {
    for (const auto& [fragments, overlap] : {std::pair(1, 16), std::pair(4, 1), std::pair(5, 3)}) {
      const Seconds inner = step_of(with_nics(streaming(1, 1, form), 1e6));
      Seconds slower = Seconds(1e9);
      for (const double ratio : {1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0}) {
        const Seconds diloco = step_of(with_nics(streaming(1, 0, form), ratio));
        const Seconds step = step_of(with_nics(streaming(fragments, overlap, form), ratio));
        EXPECT_LE(step, diloco) << fragments << " " << ratio;
        EXPECT_GE(step, inner * (1.0 - 1e-9)) << fragments << " " << ratio;
        EXPECT_LE(step, slower * (1.0 + 1e-9)) << fragments << " " << ratio;
        slower = step;
      }
    }
  }
}

// The fidelity levels agree, also where stages have unequal layers or fewer than fragments.
// Pipelines lie inside nodes, so that only exchanges pass the slow network.
TEST(StreamingDiLoCo, IsTheSameAtAllLevels) {
  for (const FragmentOrder order : enumerators<FragmentOrder>()) {
    for (const std::int64_t stages : {1, 2, 4}) {
      Scenario scenario = with_nics(streaming(5, 2), 1e-3);
      scenario.plan.pp = stages;
      if (stages == 2) scenario.plan.stage_layers = {9, 7};
      scenario.plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline,
                                  Axis::Data};
      scenario.plan.replicas.fragment_order = order;
      const StepEstimate estimate = estimate_step(scenario);
      const StepResult event = simulate_step(scenario);
      EXPECT_LE(estimate.bound, event.step) << stages;
      EXPECT_NEAR(estimate.analytic / event.step, 1.0, 0.01) << stages;
      EXPECT_NEAR(estimate.memory / event.memory().peak, 1.0, 1e-9) << stages;
      FullOptions options;
      options.contention = false;
      const SimulatedStep full = simulate_at(scenario, Fidelity::Full, options);
      EXPECT_NEAR(full.full->step / event.step, 1.0, 1e-6) << stages;
    }
  }
}

// Where all ranks are alike, the replay of every rank agrees with that of one.
TEST(Replicas, AgreeAtTheFullLevel) {
  for (const ReplicaSync sync : {ReplicaSync::AllReduce, ReplicaSync::LocalSteps}) {
    for (const ReplicaCompression form : enumerators<ReplicaCompression>()) {
      Scenario scenario = replicas_of(sync, form, sync == ReplicaSync::LocalSteps ? 4 : 1);
      FullOptions options;
      options.contention = false;
      const SimulatedStep full = simulate_at(scenario, Fidelity::Full, options);
      EXPECT_NEAR(full.full->step / full.event_step, 1.0, 1e-6)
          << name_of(sync) << " " << name_of(form);
    }
  }
}

// A faster network makes no step longer, and the slower it is, the more compression saves.
TEST(Replicas, AreMonotoneInBandwidth) {
  // In a node collectives take as long as in a benchmark, so that the network counts.
  const auto step_with_nics = [](Scenario scenario, double ratio) {
    scenario.stack.communication.collective_ratio = 1.0;
    return step_of(with_nics(scenario, ratio));
  };
  const Scenario plain = replicas_of(ReplicaSync::AllReduce, ReplicaCompression::None);
  for (const ReplicaCompression form : enumerators<ReplicaCompression>()) {
    for (const ReplicaSync sync : {ReplicaSync::AllReduce, ReplicaSync::LocalSteps}) {
      const Scenario scenario = replicas_of(sync, form, sync == ReplicaSync::LocalSteps ? 8 : 1);
      Seconds slower = step_with_nics(scenario, 0.01);
      for (const double ratio : {0.1, 1.0, 10.0}) {
        const Seconds faster = step_with_nics(scenario, ratio);
        EXPECT_LE(faster, slower * (1.0 + 1e-9)) << name_of(sync) << " " << name_of(form);
        slower = faster;
      }
    }
  }
  const Scenario thin = replicas_of(ReplicaSync::AllReduce, ReplicaCompression::PowerSgd);
  double saved = 1.0;
  for (const double ratio : {1.0, 0.1, 0.01}) {
    const double now = step_with_nics(plain, ratio) / step_with_nics(thin, ratio);
    EXPECT_GT(now, saved) << ratio;
    saved = now;
  }
  EXPECT_GT(step_with_nics(thin, 10.0), step_with_nics(plain, 10.0) * 0.99);
}

}  // namespace
}  // namespace shardwright::sim
