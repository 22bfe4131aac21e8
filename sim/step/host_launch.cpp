#include "sim/step/host_launch.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "core/spec/precision.hpp"

namespace shardwright::sim {
namespace {

// Casts and scales of FP8 more than double what a linear module's host work takes
// (github.com/NVIDIA/TransformerEngine/issues/761: forward passes of 140 against 77 ms).
constexpr double kCastingModule = 1.8;

// The number of kernels that have to be launched before the op may start.
std::int64_t kernels_of(const Op& op) {
  const auto* memory = std::get_if<MemoryWork>(&op.work);
  return memory == nullptr ? 1 : memory->kernels;
}

bool issued_by_module(const Op& op) {
  return op.kind == OpKind::Gemm || op.kind == OpKind::GroupedGemm || op.kind == OpKind::Attention;
}

OpLaunch launch_of(const Op& op, const HostLaunch& host) {
  const double kernel = host.kernel.value(), further = kernel * op.further_launches;
  if (!issued_by_module(op)) return {kernel * static_cast<double>(kernels_of(op)), further};
  const bool casts = op.kind != OpKind::Attention && casts_operands(op.precision);
  return {std::max(kernel, host.module.value() * (casts ? kCastingModule : 1.0)), further};
}

// A range of the ops of a block.
struct IndexRange {
  std::size_t begin = 0, end = 0;
};

// The ops from the first permutation of tokens to the last one, which a graph has no room for as
// long as the host does not know how many tokens there are; all ops of a block that permutes none.
IndexRange exchanged(const Block& block) {
  const auto permutes = [](const Op& op) { return op.kind == OpKind::Permute; };
  const auto first = std::find_if(block.ops.begin(), block.ops.end(), permutes);
  if (first == block.ops.end()) return {0, block.ops.size()};
  const auto last = std::find_if(block.ops.rbegin(), block.ops.rend(), permutes);
  return {static_cast<std::size_t>(first - block.ops.begin()),
          static_cast<std::size_t>(last.base() - block.ops.begin())};
}

}  // namespace

std::vector<OpLaunch> HostLaunch::of(const Block& block) const {
  std::vector<OpLaunch> launches(block.ops.size());
  if (launches.empty()) return launches;
  if (per_call) {
    launches.front().before = kernel.value();
    return launches;
  }
  const IndexRange eager = graphs_to_dispatch ? exchanged(block) : IndexRange{0, block.ops.size()};
  for (std::size_t i = eager.begin; i < eager.end; ++i)
    launches[i] = launch_of(block.ops[i], *this);
  if (eager.begin > 0) launches.front().before = kernel.value();
  if (eager.end < block.ops.size()) launches[eager.end].before = kernel.value();
  return launches;
}

HostLaunch host_launch(const StackSpec& stack, const ClusterSpec& cluster) {
  const double speed = cluster.node.host.speed;
  return {stack.host.launch_time / speed, stack.host.cuda_graphs,
          stack.host.module_launch_time / speed, stack.host.graphs_to_dispatch};
}

}  // namespace shardwright::sim
