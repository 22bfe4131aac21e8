// Scenarios to export, and readers of what was exported.
#pragma once

#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "planner/export/plan_export.hpp"
#include "tests/planner/random_request.hpp"

namespace shardwright::planner {

// The arguments of an exported Bash array: flag to value, empty for switches.
inline std::map<std::string, std::string> arguments_of(const std::string& text) {
  std::map<std::string, std::string> arguments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    static const std::regex kArgument("  (--[^ =]+)(?:[ =]'?([^']*)'?)?");
    std::smatch match;
    if (std::regex_match(line, match, kArgument)) arguments[match[1]] = match[2];
  }
  return arguments;
}

inline std::int64_t number(const std::map<std::string, std::string>& arguments,
                           const std::string& flag, std::int64_t otherwise = 1) {
  const auto found = arguments.find(flag);
  return found == arguments.end() ? otherwise : std::stoll(found->second);
}

// Processes that a launch line starts in all.
inline std::int64_t processes_of(const std::string& launch) {
  const auto option = [&](const std::string& name) -> std::int64_t {
    std::smatch match;
    return std::regex_search(launch, match, std::regex(name + " (\\d+)")) ? std::stoll(match[1])
                                                                          : 1;
  };
  return option("--nnodes") * option("--nproc-per-node");
}

// A plan that breaks no rule, with choices that a search would not make.
inline Scenario random_scenario(std::mt19937& random) {
  for (;;) {
    const PlanRequest request = random_request(random);
    Scenario scenario{request.model, request.cluster, request.stack, {}};
    const std::vector<Plan> plans = draw_valid_plans(random, request, 1);
    if (plans.empty()) continue;
    Plan plan = plans.front();
    plan.precision = pick<Precision>(random, {Precision::Fp32, Precision::Fp16, Precision::Bf16});
    plan.sequence_parallel = pick<bool>(random, {true, false});
    plan.zero_stage = pick<int>(random, {0, 1, 2, 3});
    plan.shard_group = pick<std::int64_t>(random, {0, 0, 2, 4});
    plan.offload_optimizer =
        pick<OptimizerOffload>(random, {OptimizerOffload::None, OptimizerOffload::None,
                                        OptimizerOffload::Host, OptimizerOffload::Nvme});
    plan.overlap.p2p = pick<bool>(random, {true, false});
    plan.context_parallel = pick<ContextParallelKind>(
        random,
        {ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses});
    scenario.plan = plan;
    if (!first_broken_rule(scenario.model, scenario.cluster, plan)) return scenario;
  }
}

}  // namespace shardwright::planner
