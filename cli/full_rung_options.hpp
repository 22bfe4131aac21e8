// What the full rung can be told: ranks and NICs that are slower than their profile says, random
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

struct FullRungOptions {
  std::vector<std::string> slow_ranks, slow_nics;  // "RANK:FACTOR", "NODE/NIC:SHARE"
  std::string rank_jitter, op_jitter, seed;
  std::vector<std::string> watched;  // ranks
};

void add_full_rung_options(CLI::App& command, FullRungOptions& options);

// The names of the options that were given, joined; empty if none was.
std::string given_full_rung_options(const FullRungOptions& options);

// With contention. Throws InputError with all problems; `source` is the name of the command.
sim::FullOptions read_full_rung_options(const FullRungOptions& options, const Scenario& scenario,
                                        const std::string& source);

}  // namespace shardwright::cli
