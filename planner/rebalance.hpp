// The plan with which a run continues after some of its ranks have become slower, or fast again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::planner {

struct Rebalanced {
  Scenario scenario;
  // Simulated steps on the ranks at their speeds: of the plan so far, and of this one.
  Seconds before, after;

  double gain() const { return before / after - 1.0; }
};

// A plan that gains less is not worth a restart.
inline constexpr double kLeastRebalanceGain = 0.05;

// Returns the plan that shares the work of `scenario` by the speeds of the ranks: other numbers of
// microbatches for the replicas, or other numbers of layers for the stages, whichever is faster by
// simulation. Everything else stays, so that the run takes the same steps on the same data; with
// ranks of equal speed the plan is that of `scenario`. `slowdown` has for each rank the time of its
// kernels over that on a rank that is not slow, from 1 to kMostSlowdown. `now` is the plan that the
// run is under, which is that of `scenario` or one that this function found for it.
//
// The plan names a pool for each run of neighbouring ranks of one speed. Nodes whose ranks differ
// are cut into several, which the links inside of the node join.
//
// Returns nothing if no such plan is kLeastRebalanceGain faster than `now`. Throws InputError if
// `scenario` names pools itself, or if `now` differs from it in more than the shares.
std::optional<Rebalanced> rebalance(const Scenario& scenario, const Plan& now,
                                    std::span<const double> slowdown);

// The shares of so many microbatches among replicas, each a multiple of `unit`, whose slowest
// replica takes least. Each replica has one `unit` at least, and a slower one no more than a faster
// one. Empty if there are too few, or no multiple of `unit`.
std::vector<std::int64_t> shares_of_replicas(std::int64_t microbatches,
                                             std::span<const double> slowdown, std::int64_t unit);

// The layers of stages after single layers have moved from the stage that takes longest to the one
// that then takes least, for as long as that helps. `fixed` is the further work of each stage, in
// layers. Each stage keeps a layer; stages of equal speeds keep all.
std::vector<std::int64_t> moved_layers(std::vector<std::int64_t> layers,
                                       std::span<const double> fixed,
                                       std::span<const double> slowdown);

}  // namespace shardwright::planner
