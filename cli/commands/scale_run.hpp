// The best plans over a range of machine sizes, which `scale` prints, and `plan` for a range; and
// over several stacks or several agreements of replicas, which `plan` prints.
#pragma once

#include <string>

#include "cli/options/common_options.hpp"
#include "cli/options/request_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

// Searches each size and prints the result. `plan_out`: file for the fastest plan of all sizes;
// empty: none.
ExitCode run_scale(const CommonOptions& options, ChosenRequest& chosen,
                   const std::string& plan_out);

// True for "all" and for several names with commas between them.
bool names_several_stacks(const std::string& stack);

// Searches with each stack that `--stack` names, and prints the best plan of each, the best first.
// A stack that cannot train the model there says why.
ExitCode plan_stacks(const CommonOptions& common, const RequestOptions& options,
                     const std::string& plan_out);

// Searches with each way in which replicas may agree, and prints the best plan of each with the
// tokens that it needs in addition, as far as they are known.
ExitCode plan_agreements(const CommonOptions& common, const RequestOptions& options,
                         const std::string& plan_out);

}  // namespace shardwright::cli
