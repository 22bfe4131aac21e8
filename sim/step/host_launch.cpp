#include "sim/step/host_launch.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
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
  return is_matrix_product(op.kind) || op.kind == OpKind::Attention;
}

OpLaunch launch_of(const Op& op, const HostLaunch& host) {
  const double kernel = host.kernel.value(), further = op.further_launches;
  if (!issued_by_module(op))
    return {kernel * static_cast<double>(kernels_of(op)), kernel * further};
  const bool casts = op.kind != OpKind::Attention && casts_operands(op.precision);
  const double module = host.module.value();
  // The GEMMs of further experts cost the host as much as a module does: 33 us each in Transformer
  // Engine's multi-stream GEMM (github.com/NVIDIA/TransformerEngine/pull/3134: 0.267 ms for 8).
  return {std::max(kernel, module * (casts ? kCastingModule : 1.0)),
          std::max(kernel, module) * further};
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

bool of_router(const Op& op) {
  return op.kind == OpKind::Router ||
         std::ranges::any_of(op.parameters,
                             [](const std::string& name) { return name.ends_with("moe.router"); });
}

}  // namespace

std::vector<OpLaunch> HostLaunch::of(const Block& block) const {
  std::vector<OpLaunch> launches(block.ops.size());
  if (launches.empty()) return launches;
  if (per_call) {
    launches.front().before = kernel.value();
    return launches;
  }
  const IndexRange eager =
      graph_modules.empty() ? IndexRange{0, block.ops.size()} : exchanged(block);
  bool in_graph = false;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    const bool graphed =
        (i < eager.begin || i >= eager.end) &&
        graph_modules.contains(of_router(op) ? GraphModule::Router : GraphModule::Attention);
    if (!graphed) {
      launches[i] = launch_of(op, *this);
    } else if (!in_graph) {
      launches[i].before = kernel.value();
    }
    in_graph = graphed;
  }
  return launches;
}

HostLaunch host_launch(const StackSpec& stack, const ClusterSpec& cluster) {
  const double speed = cluster.node.host.speed;
  return {stack.host.launch_time / speed, stack.host.cuda_graphs,
          stack.host.module_launch_time / speed, stack.host.graph_modules};
}

}  // namespace shardwright::sim
