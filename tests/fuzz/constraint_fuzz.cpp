// Constraints as --fix and --forbid take them.
#include "core/base/nearest_name.hpp"
#include "planner/constraints.hpp"
#include "planner/objective.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::try_text(data, size, [](const std::string& text) {
    parse_name<planner::Objective>(text, "--objective");
  });
  return fuzz::try_text(data, size, [](const std::string& text) {
    const planner::Constraint constraint = planner::parse_constraint(text, "--fix");
    SHARDWRIGHT_CHECK(
        planner::parse_constraint(planner::to_string(constraint), "--fix") == constraint,
        "the constraint changed on a round trip");
  });
}
