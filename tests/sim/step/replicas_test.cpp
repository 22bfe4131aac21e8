// Steps of replicas that make local steps or compress their gradients.
#include <gtest/gtest.h>

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
  const auto with_nics = [](Scenario scenario, double ratio) {
    scenario.cluster.node.nic.bandwidth = scenario.cluster.node.nic.bandwidth * ratio;
    return step_of(scenario);
  };
  const Scenario plain = replicas_of(ReplicaSync::AllReduce, ReplicaCompression::None);
  for (const ReplicaCompression form : enumerators<ReplicaCompression>()) {
    for (const ReplicaSync sync : {ReplicaSync::AllReduce, ReplicaSync::LocalSteps}) {
      const Scenario scenario = replicas_of(sync, form, sync == ReplicaSync::LocalSteps ? 8 : 1);
      Seconds slower = with_nics(scenario, 0.01);
      for (const double ratio : {0.1, 1.0, 10.0}) {
        const Seconds faster = with_nics(scenario, ratio);
        EXPECT_LE(faster, slower * (1.0 + 1e-9)) << name_of(sync) << " " << name_of(form);
        slower = faster;
      }
    }
  }
  const Scenario thin = replicas_of(ReplicaSync::AllReduce, ReplicaCompression::PowerSgd);
  double saved = 1.0;
  for (const double ratio : {1.0, 0.1, 0.01}) {
    const double now = with_nics(plain, ratio) / with_nics(thin, ratio);
    EXPECT_GT(now, saved) << ratio;
    saved = now;
  }
  EXPECT_GT(with_nics(thin, 10.0), with_nics(plain, 10.0) * 0.99);
}

}  // namespace
}  // namespace shardwright::sim
