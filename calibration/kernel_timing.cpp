#include "calibration/kernel_timing.hpp"

#include <algorithm>

#include "core/spec/profile_library.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/matrix_peak.hpp"

namespace shardwright::calibration {

std::optional<AcceleratorSpec> benchmarked_accelerator(const std::string& profile) {
  if (profile.empty()) return std::nullopt;
  return sim::at_full_clock(load_accelerator(profile));
}

Seconds predict(const KernelTiming& timing, const AcceleratorSpec& accelerator) {
  Seconds sum;
  for (const auto& [kind, work, call] : timing.kernels) {
    const Seconds kernel =
        sim::formula_cost(kind, work, timing.precision, accelerator, timing.stack).time;
    sum += std::max(kernel, call);
  }
  return sum;
}

}  // namespace shardwright::calibration
