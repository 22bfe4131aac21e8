#include "core/spec/scenario_sum.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace shardwright {

std::string program_sum(nlohmann::json plan_document) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325U, kPrime = 0x100000001b3U;
  if (plan_document.is_object()) plan_document.erase("cluster");
  std::uint64_t sum = kOffset;
  for (const char byte : plan_document.dump()) {
    sum ^= static_cast<unsigned char>(byte);
    sum *= kPrime;
  }
  return fmt::format("{:016x}", sum);
}

}  // namespace shardwright
