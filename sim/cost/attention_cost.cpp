#include "sim/cost/attention_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim {
namespace {

// Where the rate of exponentials is not known: the width of a head whose two products cost as much
// as its softmax, fitted over A100, H100 and B200 together.
constexpr double kSoftmaxWidth = 36.0;
// The share of its exponentials' peak that a softmax reaches beside maximum, sum and conversion.
constexpr double kExponentialEfficiency = 0.8;
// The speedup of products of 8-bit elements inside of attention over that of their peak.
constexpr double kEightBitEfficiency = 0.8;
// The fixed cost of a block of queries, in keys.
constexpr double kForwardStartKeys = 153.0;
constexpr double kBackwardStartKeys = 240.0;
// Masked keys in the tiles along the diagonal.
constexpr double kDiagonalKeys = 74.0;
constexpr double kQueryTile = 128.0;
constexpr double kReferenceWidth = 128.0;
constexpr double kForwardProducts = 2.0, kBackwardProducts = 5.0;
// Rounds the corner between all blocks and the longest one.
constexpr double kCornerPower = 4.0;

struct AttentionProblem {
  double sequences, heads, kv_heads, q_tokens, kv_tokens, width, products, share;
};

AttentionProblem problem_of(const AttentionWork& work) {
  return {static_cast<double>(work.batch),
          static_cast<double>(work.heads),
          static_cast<double>(work.kv_heads),
          static_cast<double>(work.q_tokens),
          static_cast<double>(work.kv_tokens),
          static_cast<double>(std::max(work.qk_head_dim, work.v_head_dim)),
          work.backward ? kBackwardProducts : kForwardProducts,
          work.score_share};
}

// The time of a score: its products and its softmax, of which the shorter one runs beside the
// longer one in part.
Seconds score_time(const AcceleratorSpec& accelerator, double width, double products,
                   double speedup) {
  // At the clock of the peaks, which exponentials have as well, and as fast as in the largest
  // GEMMs.
  const FlopPerSecond peak =
      matrix_peak(accelerator, Precision::Bf16) / accelerator.sustained_clock_ratio;
  const double reached = accelerator.efficiency.matrix;
  const Seconds multiplying = Flop(2.0 * width * products) / (peak * reached * speedup);
  const double exponentials = accelerator.exponentials_per_s * kExponentialEfficiency;
  const Seconds softmax = exponentials > 0.0
                              ? Seconds(1.0 / exponentials)
                              : Flop(2.0 * kSoftmaxWidth * kForwardProducts) / (peak * reached);
  return std::max(multiplying, softmax) +
         std::min(multiplying, softmax) * (1.0 - accelerator.efficiency.softmax_overlap);
}

// Speed of the products over that at the reference width in 16 bits.
double score_efficiency(const AcceleratorSpec& accelerator, const AttentionProblem& p,
                        double speedup) {
  return p.width / kReferenceWidth * score_time(accelerator, kReferenceWidth, p.products, 1.0) /
         score_time(accelerator, p.width, p.products, speedup);
}

// The speed of the products of attention over that in 16 bits.
double operand_speedup(const AcceleratorSpec& accelerator, Precision precision,
                       const StackSpec& stack) {
  const MatrixPeaks& peaks = accelerator.matrix;
  const bool in_fp8 = casts_operands(precision) && stack.fusion.fp8_attention;
  if (!in_fp8 || peaks.fp8 <= FlopPerSecond(0) || peaks.bf16 <= FlopPerSecond(0)) return 1.0;
  return std::max(1.0, peaks.fp8 / peaks.bf16 * kEightBitEfficiency);
}

Seconds rounded_max(Seconds a, Seconds b) {
  const double larger = std::max(a, b).value();
  if (larger <= 0.0) return {};
  const double ratio = std::min(a, b).value() / larger;
  return Seconds(larger * std::pow(1.0 + std::pow(ratio, kCornerPower), 1.0 / kCornerPower));
}

// Speed of attention in a step of the stack over that of the best kernel for the device.
double kernel_ratio(const AcceleratorSpec& accelerator, const StackSpec& stack) {
  const StackFusion& fusion = stack.fusion;
  return attention_kernel_speed(fusion.attention_kernel, accelerator) *
         (has_asynchronous_matrix_units(accelerator) ? fusion.hopper_attention_kernel_ratio
                                                     : fusion.attention_kernel_ratio);
}

// Keys that a block of queries which sees `seen` of them works on.
double worked_keys(const AttentionProblem& p, double seen) {
  return p.share < 1.0 ? std::min(p.kv_tokens, seen + kDiagonalKeys) : p.kv_tokens;
}

Bytes traffic_of(const AttentionWork& work, const AttentionProblem& p, Precision precision) {
  const auto widths = static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const double elements = p.sequences * (p.heads * p.q_tokens + p.kv_heads * p.kv_tokens) * widths;
  return storage_bytes(precision) * (elements * (work.backward ? 2.0 : 1.0));
}

}  // namespace

bool has_asynchronous_matrix_units(const AcceleratorSpec& accelerator) {
  return accelerator.architecture == Architecture::Hopper ||
         accelerator.architecture == Architecture::Blackwell;
}

// FlashAttention 1: 85 to 124 TFLOP/s on an A100 where FlashAttention-2 has 165 to 203 (arXiv
// 2307.08691, figure 4). On an H100 FlashAttention-2 has 350 of the 616 TFLOP/s of
// FlashAttention-3, and cuDNN 0.93 of its speed forward and 0.97 backward (arXiv 2407.08608,
// figures 5 and 6).
double attention_kernel_speed(AttentionKernel kernel, const AcceleratorSpec& accelerator) {
  const bool asynchronous = has_asynchronous_matrix_units(accelerator);
  switch (kernel) {
    case AttentionKernel::FlashAttention1:
      return asynchronous ? 0.342 : 0.6;
    case AttentionKernel::FlashAttention2:
      return asynchronous ? 0.57 : 1.0;
    case AttentionKernel::FlashAttention3:
      return 1.0;
    case AttentionKernel::Cudnn:
      return asynchronous ? 0.94 : 1.0;
  }
  return 1.0;
}

KernelCost attention_cost(const AttentionWork& work, Precision precision,
                          const AcceleratorSpec& accelerator, const StackSpec& stack) {
  if (work.flop() <= Flop(0)) return {};
  const KernelEfficiency& efficiency = accelerator.efficiency;
  const AttentionProblem p = problem_of(work);
  const FlopPerSecond peak =
      matrix_peak(accelerator, casts_operands(precision) ? Precision::Bf16 : precision);
  const double share = work.backward ? efficiency.attention_backward : efficiency.attention_forward;
  const double speedup = operand_speedup(accelerator, precision, stack);
  const FlopPerSecond rate =
      peak * std::min(speedup, share * kernel_ratio(accelerator, stack) *
                                   score_efficiency(accelerator, p, speedup));

  const double start = work.backward ? kBackwardStartKeys : kForwardStartKeys;
  const double keys = worked_keys(p, p.kv_tokens * p.share) + start;
  const double longest_keys = worked_keys(p, 2.0 * p.kv_tokens * p.share) + start;
  const double flop_per_score = 2.0 * p.width * p.products;
  const Seconds computing = Flop(p.sequences * p.heads * p.q_tokens * keys * flop_per_score) / rate;
  const Seconds longest_block =
      Flop(std::min(kQueryTile, p.q_tokens) * longest_keys * flop_per_score) /
      (rate / static_cast<double>(accelerator.compute_units));
  const Bytes traffic = traffic_of(work, p, precision);
  const Seconds moving = traffic / (accelerator.memory_bandwidth * efficiency.memory);
  const Seconds busy = rounded_max(computing, longest_block);
  const Seconds time = efficiency.kernel_overhead + std::max(busy, moving);
  const bool compute_bound = busy >= moving;
  return {time,
          compute_bound ? work.flop() / time / (peak * speedup)
                        : traffic / time / accelerator.memory_bandwidth,
          compute_bound};
}

}  // namespace shardwright::sim
