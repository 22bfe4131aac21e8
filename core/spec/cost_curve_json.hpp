// Curves of kernels and exchanges as parts of profiles.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/cost_curve.hpp"

namespace shardwright {

// The array `key` of a profile whose figures are plain; empty where there is none.
std::vector<KernelCurve> read_kernel_curves(ObjectReader& profile, const char* key);
std::vector<ExchangeCurve> read_exchange_curves(ObjectReader& profile, const char* key);

nlohmann::ordered_json to_json(const std::vector<KernelCurve>& curves);
nlohmann::ordered_json to_json(const std::vector<ExchangeCurve>& curves);

}  // namespace shardwright
