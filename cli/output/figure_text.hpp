// Figures whose JSON key names their unit, as people read them.
#pragma once

#include <string>
#include <utility>

namespace shardwright::cli {

// "memory.bandwidth_bytes_per_s" with a number: {"memory.bandwidth", "3.35 TB/s"}. A key without a
// known unit stays as it is, its number with so many digits.
std::pair<std::string, std::string> with_unit(const std::string& name, double value,
                                              int digits = 6);

}  // namespace shardwright::cli
