// The spread of the step time over many steps of ranks that chance makes slow: the full level,
// drawn anew each time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::sim {

struct DrawOptions {
  std::int64_t draws = 100;
  // The share of NICs that are degraded, and the bandwidth that these keep.
  double degraded_nics = 0.0;
  double degraded_bandwidth = 0.5;
  // The share of ranks whose accelerator is throttled, as by heat, and the share of its speed that
  // it keeps.
  double throttled_ranks = 0.0;
  double throttled_speed = 0.5;
};

struct StragglerDraws {
  // Ascending.
  std::vector<Seconds> steps;
  Seconds uniform_step;
  // Of the mean step: what it saves to have a node of usual speed, whose NICs are whole, in place
  // of the one with the slowest rank.
  double gain_of_replacing = 0.0;
  // Fewer than asked for if it was stopped.
  bool cancelled = false;

  // The step time below which this share of the draws lies.
  Seconds quantile(double share) const;
  Seconds mean() const;
};

// Replays the step `draws` times with the variation of `full`, each with a seed of its own. Random
// factors of the ranks take the place of the accelerator's `speed_variation`. Throws InputError as
// replay_full does.
StragglerDraws draw_stragglers(const Scenario& scenario, const PricedStep& step,
                               const FullOptions& full, const DrawOptions& options);

}  // namespace shardwright::sim
