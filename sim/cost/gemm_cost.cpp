#include "sim/cost/gemm_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim {
namespace {

struct Tile {
  double m = 0, n = 0;
};

// Thread-block tiles that the vendors' libraries ship.
constexpr std::array<Tile, 6> kTiles = {
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}}};
constexpr std::array<Tile, 10> kWarpGroupTiles = {{{256, 128},
                                                   {128, 256},
                                                   {192, 128},
                                                   {128, 192},
                                                   {256, 64},
                                                   {64, 256},
                                                   {128, 128},
                                                   {128, 64},
                                                   {64, 128},
                                                   {64, 64}}};
constexpr std::array<Tile, 11> kPairedTiles = {{{256, 256},
                                                {256, 192},
                                                {192, 256},
                                                {256, 128},
                                                {128, 256},
                                                {192, 128},
                                                {128, 192},
                                                {128, 128},
                                                {128, 64},
                                                {64, 128},
                                                {64, 64}}};
constexpr std::array<double, 6> kSplits = {2, 3, 4, 6, 8, 16};

// Shared by all devices.
// Elements: a tile of edges m, n loses kTileEdgeLoss * (1/m + 1/n) of its rate to moving its
// operands.
constexpr double kTileEdgeLoss = 20.0;
// The same for 4-byte operands up to Hopper, which pass through registers unless both lie along k.
constexpr double kWideTileEdgeLoss = 100.0;
// Elements of k, at 16 bits, whose time filling and draining a tile's pipeline takes.
constexpr double kFillElements = 164.0;
// The traffic of split-k's partial sums, per fp32 element and part.
constexpr double kSplitTraffic = 1.4;
// The traffic of 4-byte operands, which are re-laid out on their way.
constexpr double kWideOperandTraffic = 1.6;
// The alignment in bytes that matrix units need.
constexpr double kAlignment = 16.0;
// Elements of k that a part of split-k has at least.
constexpr double kLeastSplitDepth = 64.0;

std::span<const Tile> tiles_of(const AcceleratorSpec& accelerator) {
  if (accelerator.architecture == Architecture::Blackwell) return kPairedTiles;
  if (accelerator.architecture == Architecture::Hopper) return kWarpGroupTiles;
  return kTiles;
}

// Sizes in elements, as doubles, of one of `products` alike GEMMs.
struct Shape {
  double rows, n, k, products, operand_bytes;
};

Shape shape_of(const GemmWork& work, Precision precision) {
  const auto groups = static_cast<double>(std::max<std::int64_t>(1, work.groups));
  Shape shape{static_cast<double>(work.m), static_cast<double>(work.n), static_cast<double>(work.k),
              groups * static_cast<double>(work.batch), operand_bytes(precision).value()};
  (work.groups_share_k ? shape.k : shape.rows) /= groups;
  return shape;
}

// True if the rows of all matrices begin at multiples of 16 bytes, as matrix units load them: of A
// and B along n or k, of C along n.
bool is_aligned(const GemmWork& work, Precision precision) {
  const double element = operand_bytes(precision).value();
  return std::fmod(static_cast<double>(work.n) * element, kAlignment) == 0.0 &&
         std::fmod(static_cast<double>(work.k) * element, kAlignment) == 0.0;
}

// Libraries have no batched kernels of the matrix units for rows that are not aligned: those of the
// vector units take over.
FlopPerSecond reachable_rate(const GemmWork& work, Precision precision,
                             const AcceleratorSpec& accelerator, FlopPerSecond peak) {
  const FlopPerSecond matrix = peak * matrix_efficiency(accelerator, precision);
  const bool on_vector_units = work.batch > 1 && !is_aligned(work, precision);
  return on_vector_units ? std::min(matrix, accelerator.vector_fp32) : matrix;
}

// Each operand once.
Bytes operand_traffic(const Shape& shape) {
  return Bytes(shape.products * (shape.rows + shape.n) * shape.k * shape.operand_bytes);
}

// The result once; an fp32 accumulator is read and written.
Bytes result_traffic(const GemmWork& work, const Shape& shape, Precision precision) {
  const double element = work.accumulate_fp32 ? 8.0 : storage_bytes(precision).value();
  return Bytes(shape.products * shape.rows * shape.n * element);
}

struct Machine {
  double units, flop_per_unit_s, operand_bytes_per_s, wave_loss, overhead_s, tile_edge_loss;
};

double cubed(double value) {
  return value * value * value;
}

// Cube of the time that one choice of tile and split takes.
double split_time_cubed(const Shape& shape, const Machine& machine, const Tile& tile, double blocks,
                        double split, double operands_s) {
  const double waves = blocks * split / machine.units;
  const double effective_waves =
      machine.wave_loss * std::ceil(waves) + (1.0 - machine.wave_loss) * std::max(1.0, waves);
  const double fill = kFillElements * 2.0 / shape.operand_bytes;
  const double tile_s = 2.0 * tile.m * tile.n * (shape.k / split + fill) / machine.flop_per_unit_s;
  const double reduce_s = split > 1.0 ? shape.rows * shape.n * shape.products * 4.0 * split *
                                                kSplitTraffic / machine.operand_bytes_per_s +
                                            machine.overhead_s
                                      : 0.0;
  return cubed(effective_waves * tile_s + reduce_s) + cubed(operands_s);
}

// The best choice of tile and split; cubed, as cubes order like their roots.
double best_time_cubed(const Shape& shape, const Machine& machine, std::span<const Tile> tiles) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    Machine with_tile = machine;
    with_tile.flop_per_unit_s /= 1.0 + machine.tile_edge_loss * (1.0 / tile.m + 1.0 / tile.n);
    const double blocks =
        std::ceil(shape.rows / tile.m) * std::ceil(shape.n / tile.n) * shape.products;
    const double operands_s = blocks * (tile.m + tile.n) * shape.k * shape.operand_bytes *
                              (shape.operand_bytes > 2.0 ? kWideOperandTraffic : 1.0) /
                              machine.operand_bytes_per_s;
    best = std::min(best, split_time_cubed(shape, with_tile, tile, blocks, 1.0, operands_s));
    for (const double split : kSplits) {
      const bool fills_device = blocks * split > 4.0 * machine.units;
      if (fills_device || shape.k / split < kLeastSplitDepth) break;
      best = std::min(best, split_time_cubed(shape, with_tile, tile, blocks, split, operands_s));
    }
  }
  return best;
}

double power_factor(Seconds work, const KernelEfficiency& efficiency) {
  return 1.0 + efficiency.power_slowdown * (work / (work + efficiency.power_delay));
}

double tile_edge_loss(const Shape& shape, const AcceleratorSpec& accelerator) {
  const bool through_registers =
      shape.operand_bytes > 2.0 && accelerator.architecture != Architecture::Blackwell;
  return through_registers ? kWideTileEdgeLoss : kTileEdgeLoss;
}

Machine machine_of(const Shape& shape, const AcceleratorSpec& accelerator, FlopPerSecond reachable,
                   BytesPerSecond bandwidth) {
  const KernelEfficiency& efficiency = accelerator.efficiency;
  const auto units = static_cast<double>(accelerator.compute_units);
  const double edge_loss = tile_edge_loss(shape, accelerator);
  // The efficiency is that of a 256 x 256 pair of edges; smaller ones lose more.
  const double widest = 1.0 + edge_loss * 2.0 / 256.0;
  return {units,
          reachable.value() * widest / units,
          bandwidth.value() * efficiency.operand_bandwidth_ratio,
          efficiency.wave_loss,
          efficiency.gemm_overhead.value(),
          edge_loss};
}

}  // namespace

KernelCost gemm_cost(const GemmWork& work, Precision precision, const AcceleratorSpec& accelerator,
                     std::optional<Seconds> issue) {
  if (work.flop() <= Flop(0)) return {};
  const KernelEfficiency& efficiency = accelerator.efficiency;
  const FlopPerSecond peak = matrix_peak(accelerator, precision);
  const FlopPerSecond reachable = reachable_rate(work, precision, accelerator, peak);
  const BytesPerSecond bandwidth = accelerator.memory_bandwidth * efficiency.memory;
  Shape shape = shape_of(work, precision);
  const double launches = work.groups > 1 && issue ? shape.products : 1.0;
  shape.products /= launches;

  const Machine machine = machine_of(shape, accelerator, reachable, bandwidth);
  const double computing = std::cbrt(best_time_cubed(shape, machine, tiles_of(accelerator))) *
                           power_factor(work.flop() / reachable, efficiency);
  const Bytes result = result_traffic(work, shape, precision);
  const Bytes traffic = operand_traffic(shape) + result;
  const double moving = (traffic / bandwidth).value();
  Seconds busy = Seconds(std::cbrt(cubed(computing) + cubed(moving))) +
                 result / bandwidth * efficiency.result_exposed;
  if (launches > 1.0) busy = std::max(busy, *issue) * launches;
  const Seconds time = efficiency.gemm_overhead + busy;
  const bool compute_bound = computing >= moving;
  return {time,
          compute_bound ? work.flop() / time / peak
                        : traffic * launches / time / accelerator.memory_bandwidth,
          compute_bound};
}

}  // namespace shardwright::sim
