// The options of `plan` and `scale`, which describe the search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "planner/search.hpp"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct RequestOptions {
  // "FILE:ID", a published measurement; empty: none.
  std::string row;
  std::string model, cluster, stack;
  std::string gpus, global_batch, seq_len;
  std::string precision, lora, objective;
  std::string top, threads, max_memory, max_global_batch;
  // A plan file whose plan is ranked among the plans that the search finds; empty: none.
  std::string compare;
  // "95%".
  std::string fit_probability;
  bool trusted = false, all_variants = false;
  std::vector<std::string> fix, forbid, vary;
  // "cluster.node.nic.per_node=4": members of model, cluster and stack.
  std::vector<std::string> settings;
  // The pool of a mixed cluster that grows with the number of GPUs, or "all"; empty: none.
  std::string grow;
};

// What `--vary` takes.
std::vector<std::string> vary_choices();

// True if `--vary` names `sync` or `compression`, each of whose values is a search of its own.
bool varies_agreements(const RequestOptions& options);

void add_request_options(CLI::App& command, RequestOptions& options);

struct ChosenRequest {
  // Its number of GPUs is the smallest one.
  planner::PlanRequest request;
  // The smallest and the largest number of GPUs.
  std::pair<std::int64_t, std::int64_t> gpus;
  // All numbers of GPUs to plan for, from the smallest one on: those of a list, or the machine
  // sizes of a range.
  std::vector<std::int64_t> sizes;
  // The probability with which plans are to fit into memory; none if the memory is limited without
  // a margin.
  std::optional<double> fit_probability;
  // The name of the cluster as the user gave it.
  std::string cluster;
  std::vector<std::string> filled_in;
  // As in the options.
  std::string grow;

  // The cluster with so many accelerators: the request's, unless a pool grows.
  ClusterSpec machine_of(std::int64_t size) const;
};

// Throws InputError with all problems of the options. `command` names the command line in errors.
ChosenRequest choose_request(const RequestOptions& options, const std::string& command);

// Refuses a range of GPUs beside what compares plans of one size: "several stacks". Throws
// InputError.
void require_one_size(const ChosenRequest& chosen, const RequestOptions& options,
                      const std::string& command, const char* beside);

// The problems of an input as one line, where it is one of several and the others go on.
std::string problems_text(const InputError& error);

}  // namespace shardwright::cli
