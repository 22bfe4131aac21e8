// What stands within $((…)) of a shell script.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright::planner {

// The value of a variable or of a positional parameter; empty if it has none.
using ShellValue = std::function<std::string(const std::string& name)>;

// Sums, products, comparisons, "A ? B : C" and brackets of integers and variables; none of anything
// else, and of what overflows.
std::optional<std::int64_t> arithmetic_value(std::string_view text, const ShellValue& value_of);

}  // namespace shardwright::planner
