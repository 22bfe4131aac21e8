// Laws of steps with parameter servers, and of how stale the updates of replicas are that push to
// them without an agreement.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/lowering/lowering.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/server_steps.hpp"
#include "sim/step/server_use.hpp"
#include "sim/step/straggler_draws.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

// Thirty-two replicas on four nodes.
Scenario served_by(ServerUpdates updates, std::int64_t servers = 0,
                   ServerPlace place = ServerPlace::Colocated) {
  Scenario scenario = fixtures::small_scenario(32, 1, 1);
  scenario.plan.zero_stage = 0;
  ReplicaAgreement& replicas = scenario.plan.replicas;
  replicas.sync = ReplicaSync::ParameterServer;
  replicas.server_updates = updates;
  replicas.staleness = updates == ServerUpdates::BoundedStaleness ? 2 : 0;
  replicas.servers = servers;
  replicas.server_place = place;
  return scenario;
}

Seconds served_step_of(const Scenario& scenario) {
  return simulate_step(scenario).step;
}

ServerUse use_of(const Scenario& scenario) {
  return server_use(served_parameters_of(lower(scenario.model, scenario.plan, scenario.stack)),
                    scenario);
}

TEST(ParameterServers, OfNoStalenessAreSynchronous) {
  Scenario bounded = served_by(ServerUpdates::BoundedStaleness);
  bounded.plan.replicas.staleness = 0;
  for (const Fidelity fidelity : enumerators<Fidelity>()) {
    EXPECT_EQ(simulate_at(bounded, fidelity).result.step,
              simulate_at(served_by(ServerUpdates::Synchronous), fidelity).result.step);
  }
}

TEST(ParameterServers, AreNoSlowerIfThereAreMore) {
  for (const ServerUpdates updates : enumerators<ServerUpdates>()) {
    for (const ServerPlace place : enumerators<ServerPlace>()) {
      Seconds fewer = served_step_of(served_by(updates, 1, place));
      for (const std::int64_t servers : {2, 3, 4, 8}) {
        const Seconds more = served_step_of(served_by(updates, servers, place));
        EXPECT_LE(more, fewer * (1.0 + 1e-9))
            << name_of(updates) << " " << name_of(place) << " " << servers;
        fewer = more;
      }
    }
  }
}

TEST(ParameterServers, AreMonotoneInBandwidth) {
  for (const ServerUpdates updates : enumerators<ServerUpdates>()) {
    Seconds slower(1e9);
    for (const double ratio : {0.01, 0.1, 1.0, 10.0}) {
      Scenario scenario = served_by(updates);
      scenario.cluster.node.nic.bandwidth = scenario.cluster.node.nic.bandwidth * ratio;
      const Seconds faster = served_step_of(scenario);
      EXPECT_LE(faster, slower * (1.0 + 1e-9)) << name_of(updates) << " " << ratio;
      slower = faster;
    }
  }
}

// Two of four nodes hold half of the parameters each. Of 32 ranks that push, 24 are on other nodes.
TEST(ParameterServers, AreLimitedByTheirNetworkCards) {
  Scenario scenario = served_by(ServerUpdates::Synchronous, 2);
  NicSpec& nic = scenario.cluster.node.nic;
  nic.bandwidth = nic.bandwidth * 0.01;
  const Bytes bytes(1e9);
  const ServerTransfer push = server_transfer(OpKind::Push, bytes, scenario.plan, scenario.cluster);
  EXPECT_EQ(push.limit, ServerLimit::ServerNics);
  const double rate = nic.bandwidth.value() * nic.efficiency * static_cast<double>(nic.per_node);
  EXPECT_NEAR(push.nics.value() / (1e9 * 24.0 / 2.0 / rate), 1.0, 1e-9);
  nic.bandwidth = nic.bandwidth * 1e5;
  EXPECT_EQ(server_transfer(OpKind::Push, bytes, scenario.plan, scenario.cluster).limit,
            ServerLimit::ServerMemory);
}

// A node has the states of its part of the parameters: 18 bytes with the copy in 16 bits.
TEST(ParameterServers, ShareTheStates) {
  const Scenario scenario = served_by(ServerUpdates::Synchronous, 2);
  const ServerUse use = use_of(scenario);
  EXPECT_NEAR(
      use.memory.value() * 2.0 / 18.0 / static_cast<double>(count_parameters(scenario.model).total),
      1.0, 1e-3);
}

// Whether replicas wait for the servers, or with many microbatches do not.
TEST(ParameterServers, AgreeAtTheFullLevel) {
  for (const ServerUpdates updates : enumerators<ServerUpdates>()) {
    for (const std::int64_t microbatches : {4, 64}) {
      Scenario scenario = served_by(updates);
      scenario.plan.global_batch = scenario.plan.dp * scenario.plan.micro_batch * microbatches;
      const SimulatedStep full = simulate_at(scenario, Fidelity::Full);
      EXPECT_NEAR(full.result.step / full.event_step, 1.0, 0.01)
          << name_of(updates) << " " << microbatches;
    }
  }
}

// A slow rank holds synchronous replicas up, and others only as far as their bound says.
TEST(ParameterServers, WaitForSlowReplicasByTheirAgreement) {
  FullOptions options;
  options.variation.rank_slowdown.assign(32, 1.0);
  options.variation.rank_slowdown[5] = 2.0;
  const auto at_full = [&](ServerUpdates updates) {
    return simulate_at(served_by(updates), Fidelity::Full, options);
  };
  const SimulatedStep all = at_full(ServerUpdates::Synchronous);
  const SimulatedStep bounded = at_full(ServerUpdates::BoundedStaleness);
  const SimulatedStep none = at_full(ServerUpdates::Asynchronous);
  EXPECT_LT(none.result.step, bounded.result.step * 0.8);
  EXPECT_LT(none.result.step, all.result.step * 0.8);
  EXPECT_LE(bounded.served->most_ahead, 2);
  EXPECT_GT(none.served->most_ahead, 2);
  EXPECT_FALSE(all.served);
}

// Servers that are busy all the time set the pace, however slow some ranks are.
TEST(ParameterServers, SetThePaceOfDrawnSteps) {
  const Scenario scenario = served_by(ServerUpdates::Asynchronous, 1);
  FullOptions options;
  options.variation.rank_jitter = 0.05;
  const StragglerDraws draws =
      draw_stragglers(scenario, lower_and_price(scenario), options, {.draws = 3});
  const Seconds step = served_step_of(scenario);
  EXPECT_NEAR(draws.uniform_step / step, 1.0, 0.005);
  EXPECT_NEAR(draws.quantile(0.5) / step, 1.0, 0.05);
}

// Replicas that are all alike.
ServedReplicas alike(std::int64_t replicas, double compute, double served) {
  ServedReplicas in;
  in.replicas = replicas;
  in.compute = Seconds(compute);
  in.push.time = in.push.nics = Seconds(served);
  in.pull.time = in.pull.nics = Seconds(served);
  in.update = Seconds(served);
  return in;
}

// A closed queue of equal customers: none waits while the servers are fast enough, and servers that
// are not are busy all the time.
TEST(ServedSteps, TakeWhatTheSlowerOfReplicasAndServersTakes) {
  for (const double served : {0.001, 0.01, 0.1, 0.5, 1.0}) {
    const ServedSteps steps = serve(alike(16, 1.0, served), 400);
    EXPECT_NEAR(steps.step.value() / std::max(1.0 + 3.0 * served, 16.0 * served), 1.0, 0.02)
        << served;
  }
}

// Between its pull and its update each of the others makes one.
TEST(ServedSteps, OfAlikeReplicasAreAsStaleAsThereAreOthers) {
  const ServedSteps steps = serve(alike(16, 1.0, 0.01), 100);
  EXPECT_NEAR(steps.mean_staleness(), 15.0, 0.5);
  EXPECT_NEAR(static_cast<double>(steps.staleness.size()), 16.0 * 50.0, 16.0)
      << "each push is one update";
}

// Others make at most 2 s + 1 updates each between a pull and the update that follows it: they may
// be s behind at the pull, and s + 1 ahead after the update.
TEST(ServedSteps, StayWithinTheirBound) {
  ServedReplicas in = alike(8, 1.0, 0.02);
  in.slowdown = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0};
  in.step_jitter = 0.3;
  Seconds tighter(1e9);
  for (const std::int64_t bound : {0, 1, 2, 5, 20}) {
    in.bound = bound;
    const ServedSteps steps = serve(in, 200);
    EXPECT_LE(steps.most_ahead, bound);
    EXPECT_EQ(steps.most_ahead, bound) << "a replica that is three times as slow is waited for";
    EXPECT_LE(steps.staleness.back(), 7 * (2 * bound + 1));
    EXPECT_LE(steps.step, tighter * 1.02) << bound;
    tighter = steps.step;
  }
}

}  // namespace
}  // namespace shardwright::sim
