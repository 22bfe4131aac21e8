// Prices in profiles: "price_dollars_per_hour", the unit in which they are listed.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright {

// Zero where the profile has no price.
DollarsPerSecond read_price(ObjectReader& object);

// Writes nothing for a price of zero that `sources` does not know: it was not given.
void write_price(nlohmann::ordered_json& document, DollarsPerSecond price, const Sources& sources);

}  // namespace shardwright
