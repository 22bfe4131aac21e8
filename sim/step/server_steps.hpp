// Many steps of replicas that push to parameter servers without an agreement in each: an event
// simulation of how long their steps are and how stale the updates.
//
// A replica pulls, computes, pushes and waits for the servers' step. Pushes pass the NICs of the
// servers one after another, then their memory; pulls pass the NICs the other way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/units.hpp"
#include "sim/step/rank_variation.hpp"
#include "sim/step/server_use.hpp"

namespace shardwright::sim {

struct ServedReplicas {
  std::int64_t replicas = 1;
  // Steps by which a replica may be ahead of the slowest one; none: any number.
  std::optional<std::int64_t> bound;
  // The time of a step besides push, update and pull.
  Seconds compute;
  // How a replica is served that is alone.
  ServerTransfer push, pull;
  Seconds update;
  // The slowdown of each replica; empty: 1 for each.
  std::vector<double> slowdown;
  // The s of a log-normal factor on each step of a replica, as in rank_variation.hpp.
  double step_jitter = 0.0;
  std::uint64_t seed = 0;
};

struct ServedSteps {
  // The mean time in which as many steps are made as there are replicas.
  Seconds step;
  // Updates of other replicas between a replica's pull and its next update, by update, ascending.
  std::vector<std::int64_t> staleness;
  // The most steps that a replica was ahead of the slowest when it began one.
  std::int64_t most_ahead = 0;

  double mean_staleness() const;
  // The staleness that this share of the updates does not exceed.
  std::int64_t staleness_quantile(double share) const;
};

// Until a replica has made so many steps, at least 2; what comes before its first half does not
// count.
ServedSteps serve(const ServedReplicas& replicas, std::int64_t steps);

// The steps of a plan whose replicas push without an agreement, of which one takes `step` where
// each replica is served alone and has so many `kernels`. A replica is as slow as its slowest rank.
ServedSteps serve(const Scenario& scenario, const ServerUse& use, Seconds step,
                  const RankVariation& variation, std::int64_t kernels);

}  // namespace shardwright::sim
