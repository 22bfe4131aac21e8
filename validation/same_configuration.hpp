// Which measured training steps are of one configuration.
#pragma once

#include <cstddef>
#include <vector>

#include "core/spec/scenario.hpp"

namespace shardwright::validation {

// A number for each scenario, the same for those of one model, plan, stack and number of
// accelerators of one kind, whatever they are called: later releases of a table measure most of the
// earlier ones' configurations again.
std::vector<std::size_t> configuration_numbers(const std::vector<Scenario>& scenarios);

}  // namespace shardwright::validation
