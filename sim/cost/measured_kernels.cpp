#include "sim/cost/measured_kernels.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
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

// The sizes of a product or of attention that may differ between shapes that are near to each
// other.
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

double distance_in_octaves(const Sizes& a, const Sizes& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < kMostSizes; ++i) {
    if (a[i] == b[i]) continue;
    const double octaves = std::log2(static_cast<double>(a[i]) / static_cast<double>(b[i]));
    squares += octaves * octaves;
  }
  return std::sqrt(squares);
}

// A measured kernel that differs from the wanted one in its sizes alone.
struct NearKernel {
  const MeasuredKernel* kernel = nullptr;
  Sizes sizes;
  double distance = 0.0;
};

// Returns at most 40 of them, within 1.5 octaves, the nearest first.
std::vector<NearKernel> nearest_kernels(const Sized& wanted, OpKind kind, Precision precision,
                                        const std::vector<MeasuredKernel>& kernels) {
  constexpr double kReach = 1.5;
  constexpr std::size_t kMost = 40;
  std::vector<NearKernel> found;
  for (const MeasuredKernel& kernel : kernels) {
    if (kernel.kind != kind || kernel.precision != precision) continue;
    const std::optional<Sized> each = sized(kernel.work);
    if (!each || !(each->rest == wanted.rest)) continue;
    const double distance = distance_in_octaves(each->sizes, wanted.sizes);
    if (distance <= kReach) found.push_back({&kernel, each->sizes, distance});
  }
  const auto last = found.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, found.size()));
  std::partial_sort(found.begin(), last, found.end(), [](const NearKernel& a, const NearKernel& b) {
    return a.distance < b.distance;
  });
  found.erase(last, found.end());
  return found;
}

}  // namespace

double ratio_near(OpKind kind, const Work& work, Precision precision,
                  const AcceleratorSpec& accelerator, const StackSpec& stack, double host_speed,
                  const std::vector<MeasuredKernel>& kernels) {
  constexpr double kSpread = 0.1, kOctaves = 2.0, kOwnSpread = 0.055;
  const std::optional<Sized> wanted = sized(work);
  if (!wanted) return 1.0;
  const std::vector<NearKernel> near = nearest_kernels(*wanted, kind, precision, kernels);
  if (near.empty()) return 1.0;
  const auto covariance = [](double distance) {
    return kSpread * kSpread * std::exp(-distance / kOctaves);
  };
  const auto count = static_cast<Eigen::Index>(near.size());
  Eigen::MatrixXd among(count, count);
  Eigen::VectorXd to_wanted(count), logarithms(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const NearKernel& each = near[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < i; ++j)
      among(i, j) =
          covariance(distance_in_octaves(each.sizes, near[static_cast<std::size_t>(j)].sizes));
    among(i, i) = covariance(0.0) + kOwnSpread * kOwnSpread;
    to_wanted(i) = covariance(each.distance);
    logarithms(i) = std::log(measured_ratio(*each.kernel, accelerator, stack, host_speed));
  }
  // The decomposition reads the lower triangle.
  return std::exp(to_wanted.dot(among.llt().solve(logarithms)));
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
