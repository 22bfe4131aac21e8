// Options of the full level: slow ranks and NICs, random variation, and the ranks to follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/straggler_draws.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct FullReplayOptions {
  // "RANK:FACTOR" and "NODE/NIC:SHARE".
  std::vector<std::string> slow_ranks, slow_nics;
  std::string rank_jitter, op_jitter, seed;
  // The number of steps to draw, and "SHARE:SHARE".
  std::string draws, degraded_nics, throttled_gpus;
  // Numbers of ranks.
  std::vector<std::string> watched;
};

void add_full_replay_options(CLI::App& command, FullReplayOptions& options);

// Returns the names of the options that were given, joined; empty if none was.
std::string given_full_replay_options(const FullReplayOptions& options);

// Returns what to draw; nothing without --draws. Ranks without a jitter of their own get that of
// the accelerator. Throws InputError like the next one.
std::optional<sim::DrawOptions> read_draws(const FullReplayOptions& options,
                                           const Scenario& scenario, sim::FullOptions& full,
                                           const std::string& source);

// Returns options with contention. Throws InputError with all problems; `source` is the name of the
// command.
sim::FullOptions read_full_replay_options(const FullReplayOptions& options,
                                          const Scenario& scenario, const std::string& source);

}  // namespace shardwright::cli
