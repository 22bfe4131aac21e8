// Prices in profiles: "price_dollars_per_hour", the unit in which they are listed.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/fields.hpp"

namespace shardwright {

// Zero where the profile has no price.
void describe_price(DollarsPerSecond& price, FieldVisitor& fields);

}  // namespace shardwright
