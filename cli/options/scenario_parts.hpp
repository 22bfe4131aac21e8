// Readers of the options that name a model, a cluster, a stack or a measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"
#include "validation/measurement.hpp"
#include "validation/published_run.hpp"

namespace shardwright::cli {

// The stack if none is named.
inline constexpr const char* kDefaultStack = "megatron-core";

// The help of --model and --cluster.
inline constexpr const char* kModelHelp =
    "A shipped model by name or Hugging Face id (shardwright models list), a JSON file (ours or a "
    "Hugging Face config.json) or its folder";
inline constexpr const char* kClusterHelp =
    "A shipped cluster (shardwright clusters list), a JSON file, or \"here\": this machine, "
    "measured on first use";

// Calls `read`. If it throws InputError, adds the problems to those of the command line and returns
// a default value. The problems are at `option` and the source of the error; if `option` is empty,
// the source is the option.
template <class Read>
auto read_part(const char* option, ProblemList& problems, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      // Problems of the command line have its name as their source, which stands before all
      // problems already.
      const bool names_command = error.source() == problems.source();
      std::string where = option + std::string(*option == '\0' || names_command ? "" : " ") +
                          (names_command ? "" : error.source());
      if (!problem.where.empty()) where += (where.empty() ? "" : ": ") + problem.where;
      problems.add(std::move(where), problem.found, problem.expected);
    }
    return {};
  }
}

// Load a part, or add the problem that its option is missing. The cluster "here" is this machine
// (here_profile.hpp). Without a name the stack is the one that was measured on the cluster.
//
// If there are problems already, this machine is not probed, because they would be reported minutes
// later; the returned cluster is then a default one.
ModelSpec read_model_option(const std::string& name, ProblemList& problems);
ClusterSpec read_cluster_option(const std::string& name, ProblemList& problems);
StackSpec read_stack_option(const std::string& name, const ClusterSpec& cluster,
                            ProblemList& problems);

// True if reading this cluster probes this machine first. That takes minutes, so the rest of the
// command line is to be checked before.
bool needs_probe(const std::string& cluster);

// Returns a published measurement, "FILE:ID", of a step or of a whole run, whose scenario and
// `assumed` have the values that it leaves open.
validation::Measurement read_row_option(const std::string& row);

// Returns the published run of a row, "FILE:ID"; nothing if the file holds steps.
std::optional<validation::PublishedRun> read_published_run_option(const std::string& row);

// The values that the profiles leave out and the reader assumed, in words.
std::vector<std::string> filled_in_by(const ModelSpec& model, const ClusterSpec& cluster,
                                      const StackSpec& stack);

}  // namespace shardwright::cli
