// The profile of a machine with CPUs before anything is timed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"
#include "executor/probe/machine.hpp"

namespace shardwright::executor {
namespace {

// Ensures that the profile has the same estimates in memory as when read from its file.
TEST(CpuMachine, EveryFigureOfItsStackNamesASource) {
  const StackSpec stack = *describe_machine(2, 1).stack;
  const nlohmann::json written = to_json(stack);
  EXPECT_EQ(read_stack(written, "stack.json").sources, stack.sources);
}

TEST(CpuMachine, KeepsTheSourcesOfTheShippedStack) {
  const StackSpec stack = *describe_machine(2, 1).stack, shipped = load_stack("shardwright");
  const nlohmann::json own = to_json(stack), other = to_json(shipped);
  ASSERT_FALSE(stack.sources.empty());
  for (const auto& [pointer, source] : stack.sources) {
    const nlohmann::json::json_pointer value(pointer + "/value");
    EXPECT_EQ(own[value] == other[value], source == shipped.sources.at(pointer)) << pointer;
  }
}

}  // namespace
}  // namespace shardwright::executor
