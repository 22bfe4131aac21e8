#include "core/spec/price_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace shardwright {
namespace {

constexpr const char* kKey = "price_dollars_per_hour";
constexpr double kSecondsPerHour = 3600.0;

}  // namespace

DollarsPerSecond read_price(ObjectReader& object) {
  return dollars_per_hour(object.number_or(kKey, 0.0, kNonNegative));
}

void write_price(nlohmann::ordered_json& document, DollarsPerSecond price, const Sources& sources) {
  if (price.value() <= 0.0 && !sources.contains(std::string("/") + kKey)) return;
  // Fifteen digits give back the number that the file held in spite of the two roundings.
  document[kKey] = std::stod(fmt::format("{:.15g}", price.value() * kSecondsPerHour));
}

}  // namespace shardwright
