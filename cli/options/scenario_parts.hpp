// Model, cluster and stack as the command line names them.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::cli {

// Used where nothing is said.
inline constexpr const char* kDefaultStack = "megatron-core";

// Calls `read`; its InputError joins the problems of the command line, and a default value is
// returned. `option` is put before the source that the error names; empty: the source is the
// option.
template <class Read>
auto read_part(const char* option, ProblemList& problems, const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      std::string where = option + std::string(*option == '\0' ? "" : " ") + error.source();
      if (!problem.where.empty()) where += ": " + problem.where;
      problems.add(std::move(where), problem.found, problem.expected);
    }
    return {};
  }
}

// Load a part, or say that `option` is missing. The cluster "here" is this machine
// (here_profile.hpp). Without a name the stack is the one that was measured on the cluster.
//
// This machine is not probed while there are problems, which would be said minutes later: then the
// cluster returned is a default one.
ModelSpec read_model_option(const std::string& name, ProblemList& problems);
ClusterSpec read_cluster_option(const std::string& name, ProblemList& problems);
StackSpec read_stack_option(const std::string& name, const ClusterSpec& cluster,
                            ProblemList& problems);

// Reading this cluster means to probe this machine first, for minutes: what else is wrong with the
// command line is to be found before.
bool needs_probe(const std::string& cluster);

// The scenario of a row of published measurements, "FILE:ID"; `filled_in` receives what it leaves
// open.
Scenario read_row_option(const std::string& file_and_id, std::vector<std::string>& filled_in);

// What the profiles leave out and the reader filled in, in words.
std::vector<std::string> filled_in_by(const ModelSpec& model, const ClusterSpec& cluster,
                                      const StackSpec& stack);

}  // namespace shardwright::cli
