// Steps that are repeated, and steps that differ in one thing.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "validation/training_fit.hpp"

namespace shardwright::validation {
namespace {

Scenario llama() {
  return {load_model("llama3-8b"), load_cluster("dgx-h100"), load_stack("nemo-te"), Plan()};
}

TEST(SameConfiguration, OtherNamesAndFabricsAreNoOtherConfiguration) {
  Scenario renamed = llama();
  renamed.model.name = "Meta-Llama-3-8B";
  renamed.cluster.name = "a machine room";
  renamed.cluster.node.nic.bandwidth *= 2.0;
  renamed.stack = load_stack("megatron-bridge");  // a variant of it
  const auto numbers = configuration_numbers({llama(), renamed, llama()});
  EXPECT_EQ(numbers, std::vector<std::size_t>(3, 0));
}

TEST(SameConfiguration, EachPartOfOneTellsItApart) {
  const std::vector<std::function<void(Scenario&)>> changes = {
      [](Scenario& each) { each.model.layers += 1; },
      [](Scenario& each) { each.cluster.accelerator.name = "a100-80gb"; },
      [](Scenario& each) { each.stack.name = "fsdp2"; },
      [](Scenario& each) { each.plan.dp *= 2; },
      [](Scenario& each) { each.plan.tp *= 2; },
      [](Scenario& each) { each.plan.micro_batch += 1; },
      [](Scenario& each) { each.plan.seq_len *= 2; },
      [](Scenario& each) { each.plan.precision = Precision::Fp8; },
      [](Scenario& each) { each.plan.recompute = RecomputePolicy::Full; }};
  std::vector<Scenario> all = {llama()};
  for (const auto& change : changes) change(all.emplace_back(llama()));
  const auto numbers = configuration_numbers(all);
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
}

}  // namespace
}  // namespace shardwright::validation
