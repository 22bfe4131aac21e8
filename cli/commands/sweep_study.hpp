// Studies: the best plan of each combination of a file's values, in one process or in shares.
#pragma once

#include <string>
#include <vector>

#include "cli/options/common_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

// Searches the best plan of each scenario of a study. Where the file that it writes has the rows
// that an interrupted call found of the same share, it goes on after them. `shard`: "3/16", the
// third of 16 shares; empty: all. `threads`: of a scenario that states none; empty: one for each
// core. Throws InputError with the problems of the file, and those of its first scenario if all
// scenarios have some.
ExitCode run_study(CommonOptions common, const std::string& file, const std::string& shard,
                   const std::string& threads);

// Puts the shares of one study together: the result is that of one process. Throws InputError if
// scenarios are missing, if the shares are of different studies or read different files, or if two
// of them disagree on a scenario.
ExitCode merge_study(const CommonOptions& common, const std::vector<std::string>& files);

}  // namespace shardwright::cli
