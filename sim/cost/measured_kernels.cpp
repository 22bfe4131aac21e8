#include "sim/cost/measured_kernels.hpp"

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

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

// The sizes of a product or of attention that may differ between shapes that are near to each other.
constexpr std::size_t kMostSizes = 5;
using Sizes = std::array<std::int64_t, kMostSizes>;

// The work with those sizes set to one, and the sizes; unused ones are one.
struct Sized {
  Work rest;
  Sizes sizes{1, 1, 1, 1, 1};
};

std::int64_t taken(std::int64_t& size) {
  return std::exchange(size, 1);
}

// Nothing for memory-bound kernels.
std::optional<Sized> sized(const Work& work) {
  Sized result{work};
  if (auto* gemm = std::get_if<GemmWork>(&result.rest)) {
    result.sizes = {taken(gemm->m), taken(gemm->n), taken(gemm->k), 1, 1};
    // The formula of each counts its buffer of results.
    gemm->accumulate_fp32 = false;
    return result;
  }
  if (auto* attention = std::get_if<AttentionWork>(&result.rest)) {
    // Padding of one of the widths, and queries against other keys, are shapes of their own kind.
    attention->v_head_dim -= attention->qk_head_dim;
    attention->kv_tokens -= attention->q_tokens;
    result.sizes = {taken(attention->batch), taken(attention->heads), taken(attention->kv_heads),
                    taken(attention->q_tokens), taken(attention->qk_head_dim)};
    return result;
  }
  return std::nullopt;
}

// The square of the distance in octaves.
double distance_squared(const Sizes& a, const Sizes& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kMostSizes; ++i) {
    if (a[i] == b[i]) continue;
    const double octaves = std::log2(static_cast<double>(a[i]) / static_cast<double>(b[i]));
    sum += octaves * octaves;
  }
  return sum;
}

}  // namespace

double ratio_near(OpKind kind, const Work& work, Precision precision,
                  const AcceleratorSpec& accelerator, const StackSpec& stack, double host_speed,
                  const std::vector<MeasuredKernel>& kernels) {
  constexpr double kWidth = 0.5, kReach = 3.0 * kWidth, kFormulaWeight = 0.1;
  const std::optional<Sized> wanted = sized(work);
  if (!wanted) return 1.0;
  double weights = kFormulaWeight, logarithms = 0.0;
  for (const MeasuredKernel& kernel : kernels) {
    if (kernel.kind != kind || kernel.precision != precision) continue;
    const std::optional<Sized> each = sized(kernel.work);
    if (!each || !(each->rest == wanted->rest)) continue;
    const double squared = distance_squared(each->sizes, wanted->sizes);
    if (squared > kReach * kReach) continue;
    const double weight = std::exp(-squared / (2.0 * kWidth * kWidth));
    weights += weight;
    logarithms += weight * std::log(measured_ratio(kernel, accelerator, stack, host_speed));
  }
  return std::exp(logarithms / weights);
}

KernelCost with_measurements(KernelCost formula, OpKind kind, const Work& work, Precision precision,
                             const AcceleratorSpec& accelerator, const StackSpec& stack,
                             double host_speed) {
  const std::vector<MeasuredKernel>& kernels = accelerator.measured_kernels;
  if (kernels.empty() || formula.time <= Seconds(0)) return formula;
  const Scaled wanted = scaled(work);
  const Neighbours around = neighbours_of(wanted, kind, precision, kernels);
  double ratio = 1.0;
  if (around.below == nullptr || around.above == nullptr) {
    ratio = ratio_near(kind, work, precision, accelerator, stack, host_speed, kernels);
  } else {
    const double low = std::log(measured_ratio(*around.below, accelerator, stack, host_speed));
    const double high = std::log(measured_ratio(*around.above, accelerator, stack, host_speed));
    const double span = std::log(around.above_scale / around.below_scale);
    const double place = span > 0.0 ? std::log(wanted.scale / around.below_scale) / span : 0.0;
    ratio = std::exp(low + (high - low) * place);
    formula.basis = CostBasis::Measured;
  }
  formula.time = formula.time * ratio;
  formula.efficiency /= ratio;
  return formula;
}

}  // namespace shardwright::sim
