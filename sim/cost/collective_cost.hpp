// The time of a collective or of a message between two ranks.
//
// An algorithm (ring, tree, in-switch reduction) under a protocol (LL, LL128, Simple) has a latency
// and a bandwidth on the path that the group's placement gives; the fastest pair is taken, as
// NCCL's own tuning does (github.com/NVIDIA/nccl, src/graph/tuning.cc). CPUs have no such choice
// (socket_cost.hpp). Where the profile has a curve for groups of this shape, it goes before all of
// that.
#pragma once

#include <cstdint>
#include <optional>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

enum class Algorithm : std::uint8_t {
  // One member: nothing moves.
  None,
  Ring,
  // Double binary trees over nodes, chains within them.
  Tree,
  // Reduction and multicast in the scale-up switch.
  Nvls,
  // The same within nodes, trees between them.
  NvlsTree,
  // Reduction in the network's switches (SHARP).
  CollNet,
  // Rings within nodes, then rings across them.
  Hierarchical,
  // Every pair at once: all-to-all and point-to-point.
  Direct,
  // The algorithm that ran when the profile's curve was measured.
  Measured,
};
constexpr auto enum_names(Algorithm) {
  return std::array{"none",    "ring",         "tree",   "nvls",    "nvls_tree",
                    "collnet", "hierarchical", "direct", "measured"};
}

enum class Protocol : std::uint8_t { LL, LL128, Simple };
constexpr auto enum_names(Protocol) {
  return std::array{"ll", "ll128", "simple"};
}

struct CollectiveCost {
  Seconds time;
  Algorithm algorithm = Algorithm::None;
  Protocol protocol = Protocol::Simple;
  // Blocks of threads that move it; 0 if the number is not known.
  int channels = 0;
};

// Bus bandwidth over algorithm bandwidth (bytes / time), nccl-tests doc/PERFORMANCE.md:
// all-reduce 2(n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n; else 1.
double bus_factor(OpKind kind, std::int64_t members);

// `kind` is a communication; `bytes` as in `CommunicationWork`. Send and receive cross the node's
// boundary where `placement.nodes` is above one. With `forced`, only that algorithm is considered;
// an algorithm that the path does not offer gives way to the ring. `tokens` says what an all-to-all
// of tokens sends (placement.hpp); where it counts some, the stack's own kernels send them.
CollectiveCost collective_cost(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                               const ClusterSpec& cluster, const StackSpec& stack,
                               std::optional<Algorithm> forced = std::nullopt,
                               const TokenTraffic& tokens = {});

// The time of `collective_cost` between the kernels of a step. The stack's `collective_ratio` slows
// down what the accelerators and their links do for a collective, and not what waits for the
// network (docs/models/collectives.md).
Seconds collective_time(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                        const ClusterSpec& cluster, const StackSpec& stack,
                        const TokenTraffic& tokens = {});

}  // namespace shardwright::sim
