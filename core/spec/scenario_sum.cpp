#include "core/spec/scenario_sum.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/text_hash.hpp"

namespace shardwright {

std::string program_sum(nlohmann::json plan_document) {
  if (plan_document.is_object()) plan_document.erase("cluster");
  return fmt::format("{:016x}", text_hash(plan_document.dump()));
}

}  // namespace shardwright
