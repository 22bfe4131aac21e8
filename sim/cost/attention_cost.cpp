#include "sim/cost/attention_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim {
namespace {

// Fitted over A100, H100 and B200 together.
// The d0 of a forward pass: the width of a head whose two products cost as much as its softmax.
constexpr double kSoftmaxWidth = 36.0;
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

// The softmax of a score costs the same beside two products as beside five.
double width_efficiency(const AttentionProblem& p) {
  const double softmax = kSoftmaxWidth * kForwardProducts / p.products;
  return p.width / (p.width + softmax) * (kReferenceWidth + softmax) / kReferenceWidth;
}

Seconds rounded_max(Seconds a, Seconds b) {
  const double larger = std::max(a, b).value();
  if (larger <= 0.0) return {};
  const double ratio = std::min(a, b).value() / larger;
  return Seconds(larger * std::pow(1.0 + std::pow(ratio, kCornerPower), 1.0 / kCornerPower));
}

// Speed of the stack's kernel over the best one for the device.
double kernel_ratio(const AcceleratorSpec& accelerator, const StackSpec& stack) {
  return has_asynchronous_matrix_units(accelerator) ? stack.fusion.hopper_attention_kernel_ratio
                                                    : stack.fusion.attention_kernel_ratio;
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
  return accelerator.architecture == "hopper" || accelerator.architecture == "blackwell";
}

KernelCost attention_cost(const AttentionWork& work, Precision precision,
                          const AcceleratorSpec& accelerator, const StackSpec& stack) {
  if (work.flop() <= Flop(0)) return {};
  const KernelEfficiency& efficiency = accelerator.efficiency;
  const AttentionProblem p = problem_of(work);
  const FlopPerSecond peak =
      matrix_peak(accelerator, casts_operands(precision) ? Precision::Bf16 : precision);
  const double share = work.backward ? efficiency.attention_backward : efficiency.attention_forward;
  const FlopPerSecond rate =
      peak * std::min(1.0, share * kernel_ratio(accelerator, stack) * width_efficiency(p));

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
          compute_bound ? work.flop() / time / peak : traffic / time / accelerator.memory_bandwidth,
          compute_bound};
}

}  // namespace shardwright::sim
