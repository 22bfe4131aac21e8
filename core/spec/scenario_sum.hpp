// Tells apart what runs were of.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace shardwright {

// Sixteen hexadecimal digits of a plan file's document, equal for those that lower to the same
// program: their model, stack and plan are the same. The cluster, which only says what the program
// costs, does not count. No secret: text_hash of the JSON text, with members in the order of
// their names.
std::string program_sum(nlohmann::json plan_document);

}  // namespace shardwright
