#include "sim/cost/gemm_cost.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace shardwright::sim {
namespace {

struct Tile {
  double m = 0, n = 0;
};

// Thread-block tiles that the vendors' libraries ship, largest first.
constexpr Tile kLargeTiles[] = {{256, 256}, {256, 128}, {128, 256}, {128, 128},
                                {128, 64},  {64, 128},  {64, 64}};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};

std::span<const Tile> tiles_of(const AcceleratorSpec& accelerator) {
  if (accelerator.architecture == "blackwell") return kLargeTiles;
  return kTiles;
}

FlopPerSecond matrix_peak(const MatrixPeaks& peaks, Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return peaks.fp32;
    case Precision::Tf32:
      return peaks.tf32;
    case Precision::Fp16:
      return peaks.fp16;
    case Precision::Bf16:
      return peaks.bf16;
    case Precision::Fp8:
      return peaks.fp8;
  }
  return {};
}

double operand_bytes(Precision precision) {
  return precision == Precision::Fp8 ? 1.0 : storage_bytes(precision).value();
}

Bytes traffic_of(const GemmWork& work, Precision precision) {
  const auto m = static_cast<double>(work.m), n = static_cast<double>(work.n);
  const auto k = static_cast<double>(work.k), batch = static_cast<double>(work.batch);
  const auto groups = static_cast<double>(work.groups);
  const double output = work.accumulate_fp32 ? 8.0 : storage_bytes(precision).value();
  return Bytes(batch * ((m * k + groups * k * n) * operand_bytes(precision) + m * n * output));
}

}  // namespace

KernelCost gemm_cost(const GemmWork& work, Precision precision,
                     const AcceleratorSpec& accelerator) {
  const KernelEfficiency& efficiency = accelerator.efficiency;
  if (work.flop() <= Flop(0)) return {};
  const FlopPerSecond peak = matrix_peak(accelerator.matrix, precision);
  const auto units = static_cast<double>(accelerator.compute_units);
  const auto groups = static_cast<double>(work.groups);
  const double rows = static_cast<double>(work.m) / groups;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles_of(accelerator)) {
    const double blocks = std::ceil(rows / tile.m) *
                          std::ceil(static_cast<double>(work.n) / tile.n) * groups *
                          static_cast<double>(work.batch);
    const double waves = std::ceil(blocks / units);
    const double flop_per_wave = 2.0 * tile.m * tile.n * static_cast<double>(work.k) * units;
    best = std::min(best, waves * flop_per_wave);
  }
  const Seconds computing = Flop(best) / (peak * efficiency.matrix);
  const Bytes traffic = traffic_of(work, precision);
  const Seconds moving = traffic / (accelerator.memory_bandwidth * efficiency.memory);
  const Seconds time = std::max(computing, moving) + efficiency.kernel_overhead;
  const bool compute_bound = computing >= moving;
  return {time,
          compute_bound ? work.flop() / time / peak : traffic / time / accelerator.memory_bandwidth,
          compute_bound};
}

}  // namespace shardwright::sim
