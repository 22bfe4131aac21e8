#include "sim/cost/measured_kernels.hpp"

#include <cmath>

#include "core/base/error.hpp"
#include "sim/cost/kernel_cost.hpp"

namespace shardwright::sim {
namespace {

// The work with its scale taken out, and the scale.
struct Scaled {
  Work rest;
  double scale = 0.0;
};

Scaled scaled(const Work& work) {
  Scaled result{work, 0.0};
  if (auto* gemm = std::get_if<GemmWork>(&result.rest)) {
    result.scale = static_cast<double>(gemm->m);
    gemm->m = 1;
  } else if (auto* attention = std::get_if<AttentionWork>(&result.rest)) {
    result.scale = static_cast<double>(attention->batch);
    attention->batch = 1;
  } else if (auto* memory = std::get_if<MemoryWork>(&result.rest)) {
    const Bytes traffic = memory->read + memory->written;
    result.scale = traffic.value();
    if (traffic > Bytes(0)) {
      memory->read = Bytes(std::round(1000.0 * (memory->read / traffic)));
      memory->written = Bytes(1000.0) - memory->read;
    }
    memory->flop = Flop(0);
  }
  return result;
}

// The nearest measurements at and around a scale.
struct Neighbours {
  // The nearest kernels at or below, and at or above.
  const MeasuredKernel* below = nullptr;
  const MeasuredKernel* above = nullptr;
  double below_scale = 0.0, above_scale = 0.0;
};

Neighbours neighbours_of(const Scaled& wanted, OpKind kind, Precision precision,
                         const std::vector<MeasuredKernel>& kernels) {
  Neighbours found;
  for (const MeasuredKernel& kernel : kernels) {
    if (kernel.kind != kind || kernel.precision != precision) continue;
    const Scaled each = scaled(kernel.work);
    if (!(each.rest == wanted.rest)) continue;
    if (each.scale <= wanted.scale && (found.below == nullptr || each.scale > found.below_scale)) {
      found.below = &kernel;
      found.below_scale = each.scale;
    }
    if (each.scale >= wanted.scale && (found.above == nullptr || each.scale < found.above_scale)) {
      found.above = &kernel;
      found.above_scale = each.scale;
    }
  }
  return found;
}

double measured_ratio(const MeasuredKernel& kernel, const AcceleratorSpec& accelerator,
                      const StackSpec& stack, double host_speed) {
  return kernel.time /
         formula_cost(kernel.kind, kernel.work, kernel.precision, accelerator, stack, host_speed)
             .time;
}

}  // namespace

KernelCost with_measurements(KernelCost formula, OpKind kind, const Work& work, Precision precision,
                             const AcceleratorSpec& accelerator, const StackSpec& stack,
                             double host_speed) {
  if (accelerator.measured_kernels.empty() || formula.time <= Seconds(0)) return formula;
  const Scaled wanted = scaled(work);
  const Neighbours near = neighbours_of(wanted, kind, precision, accelerator.measured_kernels);
  if (near.below == nullptr || near.above == nullptr) return formula;
  const double low = std::log(measured_ratio(*near.below, accelerator, stack, host_speed));
  const double high = std::log(measured_ratio(*near.above, accelerator, stack, host_speed));
  const double span = std::log(near.above_scale / near.below_scale);
  const double place = span > 0.0 ? std::log(wanted.scale / near.below_scale) / span : 0.0;
  const double ratio = std::exp(low + (high - low) * place);
  formula.time = formula.time * ratio;
  formula.efficiency /= ratio;
  formula.basis = CostBasis::Measured;
  return formula;
}

}  // namespace shardwright::sim
