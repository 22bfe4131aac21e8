#include "core/spec/price_json.hpp"

#include <fmt/format.h>

#include <string>

namespace shardwright {

void describe_price(DollarsPerSecond& price, FieldVisitor& fields) {
  // Fifteen digits give back the number that a file held in spite of the two roundings.
  double per_hour = std::stod(fmt::format("{:.15g}", price.value() * 3600.0));
  fields.number("price_dollars_per_hour", per_hour, kNonNegative, kOmissible,
                "listed price of renting one accelerator; 0: not known");
  price = dollars_per_hour(per_hour);
}

}  // namespace shardwright
