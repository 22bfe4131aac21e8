#include "validation/same_configuration.hpp"

#include <map>
#include <tuple>

#include "core/spec/profile_library.hpp"

namespace shardwright::validation {
namespace {

auto configuration(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const ModelSpec& model = scenario.model;
  // Variants of a stack are patches on the profile that states the family.
  return std::tuple(scenario.cluster.accelerator.name,
                    stack_that_states(scenario.stack.name, "/family"),
                    count_parameters(model).total, model.layers, plan.seq_len, plan.world_size(),
                    plan.tp, plan.pp, plan.cp, plan.ep, plan.vpp, plan.micro_batch,
                    plan.global_batch, plan.precision, plan.recompute, plan.recompute_layers,
                    plan.sequence_parallel, plan.zero_stage, scenario.stack.fusion.flash_attention);
}

}  // namespace

std::vector<std::size_t> configuration_numbers(const std::vector<Scenario>& scenarios) {
  std::map<decltype(configuration(Scenario())), std::size_t> known;
  std::vector<std::size_t> numbers;
  for (const Scenario& scenario : scenarios)
    numbers.push_back(known.try_emplace(configuration(scenario), known.size()).first->second);
  return numbers;
}

}  // namespace shardwright::validation
