// What the full level can be told: ranks and NICs that are slower than their profile says, random
// spread, and the ranks to follow.
#pragma once

#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "sim/step/full_replay.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct FullReplayOptions {
  std::vector<std::string> slow_ranks, slow_nics;  // "RANK:FACTOR", "NODE/NIC:SHARE"
  std::string rank_jitter, op_jitter, seed;
  std::vector<std::string> watched;  // ranks
};

void add_full_replay_options(CLI::App& command, FullReplayOptions& options);

// The names of the options that were given, joined; empty if none was.
std::string given_full_replay_options(const FullReplayOptions& options);

// With contention. Throws InputError with all problems; `source` is the name of the command.
sim::FullOptions read_full_replay_options(const FullReplayOptions& options,
                                          const Scenario& scenario, const std::string& source);

}  // namespace shardwright::cli
