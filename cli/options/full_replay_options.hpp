// Options of the full level: slow ranks and NICs, random variation, and the ranks to follow.
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
  // "RANK:FACTOR" and "NODE/NIC:SHARE".
  std::vector<std::string> slow_ranks, slow_nics;
  std::string rank_jitter, op_jitter, seed;
  // Numbers of ranks.
  std::vector<std::string> watched;
};

void add_full_replay_options(CLI::App& command, FullReplayOptions& options);

// Returns the names of the options that were given, joined; empty if none was.
std::string given_full_replay_options(const FullReplayOptions& options);

// Returns options with contention. Throws InputError with all problems; `source` is the name of the
// command.
sim::FullOptions read_full_replay_options(const FullReplayOptions& options,
                                          const Scenario& scenario, const std::string& source);

}  // namespace shardwright::cli
