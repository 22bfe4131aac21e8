// The fields that several kinds of profiles have.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/cost_curve.hpp"
#include "core/spec/fields.hpp"

namespace shardwright {

void describe(KernelCurve& curve, FieldVisitor& fields);
void describe(ExchangeCurve& curve, FieldVisitor& fields);

// Zero where the profile has no price.
void describe_price(DollarsPerSecond& price, FieldVisitor& fields);

}  // namespace shardwright
