// Curves of kernels and exchanges as parts of profiles.
#pragma once

#include "core/spec/cost_curve.hpp"
#include "core/spec/fields.hpp"

namespace shardwright {

void describe(KernelCurve& curve, FieldVisitor& fields);
void describe(ExchangeCurve& curve, FieldVisitor& fields);

}  // namespace shardwright
