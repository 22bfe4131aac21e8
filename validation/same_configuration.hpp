// Finds the measured training steps of one configuration.
#pragma once

#include <cstddef>
#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::validation {

// Returns a number for each scenario, which is the same for scenarios of one model, plan, stack and
// number of accelerators of one kind, whatever they are called. Variants of a stack count as one:
// later releases of a table measure most of the earlier ones' configurations again.
std::vector<std::size_t> configuration_numbers(const std::vector<Scenario>& scenarios);

}  // namespace shardwright::validation
