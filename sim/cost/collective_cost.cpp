#include "sim/cost/collective_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "sim/cost/collective_path.hpp"
#include "sim/cost/curve_cost.hpp"
#include "sim/cost/socket_cost.hpp"

namespace shardwright::sim {
namespace {

// The costs of a protocol. LL sends a flag with each word of data and never waits; LL128 sends 8
// bytes of flags with each 120 bytes; Simple moves whole slices and synchronises between them.
// Times are relative to the path's own, bandwidths are shares of the path's. NCCL's tuning tables
// (src/graph/tuning.cc) have the same structure; the figures are fitted on measured collectives.
struct ProtocolTraits {
  Protocol protocol = Protocol::Simple;
  double overhead = 1.0;
  double local_hop = 1.0;
  double remote_hop = 1.0;
  double bandwidth = 1.0;
  double remote_bandwidth = 1.0;
  // The bytes that a channel is worth having for: threads of a block times the bytes that each
  // should have to move.
  double channel_bytes = 0.0;
};

constexpr std::array<ProtocolTraits, 3> kProtocols = {{
    {Protocol::LL, 1.0, 1.0, 2.5, 0.42, 0.12, 512.0 * 8.0},
    {Protocol::LL128, 1.75, 2.2, 4.0, 0.92, 0.92, 640.0 * 8.0},
    {Protocol::Simple, 1.86, 1.76, 5.2, 1.0, 1.0, 512.0 * 64.0},
}};

// Messages are cut into chunks that follow each other through the hops. The best cut costs
// 2 sqrt(latency * transfer) beyond their sum (a linear pipeline); buffers are finite, so that it
// stops growing at kLargestPipelined. Chunks of a reduction in a switch wait for all members.
constexpr double kPipelineFill = 1.0;
constexpr double kSwitchFill = 1.5;
constexpr Bytes kLargestPipelined = Bytes(144e6);

// A reduction in a switch: multiples of the path's overhead and hops.
constexpr double kSwitchOverhead = 1.34;
constexpr double kSwitchHops = 4.3;
// Hops per level of the tree between nodes.
constexpr double kSwitchRemoteHops = 7.6;

// A tree's hops wait for their children.
constexpr double kTreeRemoteHops = 1.8;
// The share of the path's bandwidth that trees reach: NCCL's own allowance.
constexpr double kTreeBandwidth = 0.92;

// All-to-all and point-to-point: multiples of the overhead, of which the second is a proxy thread's
// for each peer on another node, one after the other.
constexpr double kPairOverhead = 1.37;
constexpr double kPostOverhead = 0.19;

// In the last step of a ring a channel receives and no longer sends: the steps that this costs a
// ring which gathers. Fitted on 2, 4 and 8 A100, H100 and B200.
constexpr double kGatherTail = 0.4;

Seconds pipeline_fill(Seconds latency, Bytes bytes, Seconds transfer, double factor) {
  const double share = std::min(1.0, kLargestPipelined / bytes);
  return Seconds(factor * std::sqrt(latency.value() * transfer.value() * share));
}

// NCCL drops channels until the threads of each have enough to do; in a ring under LL they take
// turns with all members. A fraction stands for a channel that has less to do than the others, so
// that more bytes never take less time.
double channels_of(const ProtocolTraits& traits, Algorithm algorithm, Bytes bytes,
                   const CollectivePath& path) {
  const bool turns = traits.protocol == Protocol::LL && algorithm == Algorithm::Ring;
  const double enough = traits.channel_bytes * (turns ? path.members : 1.0);
  return std::clamp(bytes.value() / enough, 1.0, path.channels);
}

void keep_faster(CollectiveCost& best, Seconds time, Algorithm algorithm, Protocol protocol,
                 double channels) {
  if (best.algorithm == Algorithm::None || time < best.time)
    best = {time, algorithm, protocol, static_cast<int>(channels)};
}

// A pipelined transfer under one protocol; only Simple has chunks that are worth a pipeline.
Seconds transfer_time(Seconds latency, Bytes bytes, Seconds transfer, Protocol protocol,
                      double factor = kPipelineFill) {
  const Seconds fill =
      protocol == Protocol::Simple ? pipeline_fill(latency, bytes, transfer, factor) : Seconds(0);
  return latency + transfer + fill;
}

// 2(n-1) steps of an all-reduce, n-1 of the others; every node boundary is crossed once a round.
void try_rings(OpKind kind, Bytes bytes, const CollectivePath& path, CollectiveCost& best) {
  const double rounds = kind == OpKind::AllReduce ? 2.0 : 1.0;
  const double remote_steps = rounds * (path.nodes - 1.0);
  const double steps = rounds * (path.members - 1.0);
  const double local_steps = steps - remote_steps;
  const bool reduces = kind == OpKind::AllReduce || kind == OpKind::ReduceScatter;
  const double tail = reduces ? path.reduction_tail : kGatherTail;
  const Bytes carried = bytes * bus_factor(kind, static_cast<std::int64_t>(path.members));
  for (const ProtocolTraits& traits : kProtocols) {
    const double channels = channels_of(traits, Algorithm::Ring, bytes, path);
    BytesPerSecond bus =
        path.ring * (traits.bandwidth * channels / path.channels * steps / (steps + tail));
    if (path.nodes > 1.0) bus = std::min(bus, path.remote * traits.remote_bandwidth);
    const Seconds latency = path.overhead * traits.overhead +
                            path.local_hop * (traits.local_hop * local_steps) +
                            path.remote_hop * (traits.remote_hop * remote_steps);
    keep_faster(best, transfer_time(latency, bytes, carried / bus, traits.protocol),
                Algorithm::Ring, traits.protocol, channels);
  }
}

// Bytes per second of an all-reduce over trees between nodes. With two nodes each sends its part of
// the sum to the other; a node of a longer double binary tree sends and receives every byte twice.
BytesPerSecond tree_rate(const CollectivePath& path) {
  return path.nodes > 2.0 ? path.remote * 0.5 : path.remote;
}

double tree_depth(const CollectivePath& path) {
  return 2.0 * std::log2(path.nodes);
}

void try_trees(Bytes bytes, const CollectivePath& path, CollectiveCost& best) {
  for (const ProtocolTraits& traits : kProtocols) {
    const double channels = channels_of(traits, Algorithm::Tree, bytes, path);
    const BytesPerSecond rate =
        std::min(path.ring * (0.5 * kTreeBandwidth * traits.bandwidth * channels / path.channels),
                 tree_rate(path) * (kTreeBandwidth * traits.remote_bandwidth));
    const Seconds latency =
        path.overhead * traits.overhead +
        path.local_hop * (traits.local_hop * 2.0 * (path.per_node - 1.0)) +
        path.remote_far_hop * (traits.remote_hop * kTreeRemoteHops * tree_depth(path));
    keep_faster(best, transfer_time(latency, bytes, bytes / rate, traits.protocol), Algorithm::Tree,
                traits.protocol, channels);
  }
}

// Each member sends its data once and its share of the sum again for the multicast: 1 + 1/n.
BytesPerSecond switch_rate(const CollectivePath& path) {
  return path.in_switch / (1.0 + 1.0 / path.per_node);
}

Seconds switch_latency(const CollectivePath& path) {
  return path.overhead * kSwitchOverhead + path.local_hop * kSwitchHops;
}

void try_nvls(Bytes bytes, const CollectivePath& path, CollectiveCost& best) {
  BytesPerSecond rate = switch_rate(path);
  Seconds latency = switch_latency(path);
  const bool one_node = path.nodes == 1.0;
  if (!one_node) {
    rate = std::min(rate, tree_rate(path));
    latency += path.remote_far_hop * (kSwitchRemoteHops * tree_depth(path));
  }
  keep_faster(best, transfer_time(latency, bytes, bytes / rate, Protocol::Simple, kSwitchFill),
              one_node ? Algorithm::Nvls : Algorithm::NvlsTree, Protocol::Simple, path.channels);
}

// The network's switches add up: every byte leaves and enters a node once.
void try_collnet(Bytes bytes, const CollectivePath& path, CollectiveCost& best) {
  const BytesPerSecond rate = std::min(path.ring * 0.5, path.remote);
  const Seconds latency = switch_latency(path) + path.remote_far_hop * (2.0 * kSwitchRemoteHops);
  keep_faster(best, transfer_time(latency, bytes, bytes / rate, Protocol::Simple, kSwitchFill),
              Algorithm::CollNet, Protocol::Simple, path.channels);
}

// Reduce-scatter within the nodes, all-reduce of the parts across them, all-gather within.
void try_hierarchy(OpKind kind, Bytes bytes, const CollectivePath& path, CollectiveCost& best) {
  CollectivePath inside = path, across = path;
  inside.members = inside.per_node = path.per_node;
  inside.nodes = 1.0;
  across.members = across.nodes = path.nodes;
  across.per_node = 1.0;
  across.remote = path.remote / path.per_node;
  CollectiveCost local, remote;
  try_rings(kind, bytes, inside, local);
  try_rings(kind, bytes / path.per_node, across, remote);
  keep_faster(best, local.time + remote.time, Algorithm::Hierarchical, remote.protocol,
              remote.channels);
}

void try_all_to_all(Bytes bytes, const CollectivePath& path, const TokenTraffic& tokens,
                    CollectiveCost& best) {
  // A node spreads what comes to it once for several members.
  const double inside = tokens.local < 1.0 ? path.per_node : path.members;
  Seconds transfer = bytes * (tokens.local * (path.per_node - 1.0) / inside) / path.pairwise;
  // Each channel serves its peers one after the other.
  Seconds latency = path.overhead * kPairOverhead +
                    path.local_hop * std::max(1.0, (path.members - 1.0) / path.channels);
  if (path.nodes > 1.0) {
    const double outside = (path.members - path.per_node) / path.members;
    transfer = std::max(transfer,
                        bytes * (tokens.remote * outside * path.per_node) / path.remote_pairwise);
    latency +=
        path.remote_far_hop + path.overhead * (kPostOverhead * (path.members - path.per_node));
  }
  keep_faster(best, transfer_time(latency, bytes, transfer, Protocol::Simple), Algorithm::Direct,
              Protocol::Simple, path.channels);
}

void try_message(Bytes bytes, const CollectivePath& path, CollectiveCost& best) {
  const bool remote = path.nodes > 1.0;
  const Seconds latency =
      path.overhead * kPairOverhead + (remote ? path.remote_hop : path.local_hop);
  const Seconds transfer = bytes / (remote ? path.remote_member : path.pairwise);
  keep_faster(best, transfer_time(latency, bytes, transfer, Protocol::Simple), Algorithm::Direct,
              Protocol::Simple, path.channels);
}

CollectiveCost cheapest(OpKind kind, Bytes bytes, const CollectivePath& path,
                        const ClusterSpec& cluster, std::optional<Algorithm> forced,
                        const TokenTraffic& tokens) {
  const auto wanted = [&](Algorithm algorithm) { return !forced || *forced == algorithm; };
  CollectiveCost best;
  if (kind == OpKind::AllToAll) {
    try_all_to_all(bytes, path, tokens, best);
    return best;
  }
  if (kind == OpKind::Send || kind == OpKind::Receive) {
    try_message(bytes, path, best);
    return best;
  }
  const bool sums = kind == OpKind::AllReduce;
  const bool many_nodes = path.nodes > 1.0;
  if (forced == Algorithm::Hierarchical && many_nodes && path.per_node > 1.0)
    try_hierarchy(kind, bytes, path, best);
  if (sums && many_nodes && wanted(Algorithm::Tree)) try_trees(bytes, path, best);
  if (sums && cluster.node.scale_up.in_network_reduction && path.per_node > 1.0 &&
      wanted(many_nodes ? Algorithm::NvlsTree : Algorithm::Nvls))
    try_nvls(bytes, path, best);
  if (sums && many_nodes && cluster.fabric.in_network_reduction && wanted(Algorithm::CollNet))
    try_collnet(bytes, path, best);
  if (wanted(Algorithm::Ring) || best.algorithm == Algorithm::None)
    try_rings(kind, bytes, path, best);
  return best;
}

}  // namespace

double bus_factor(OpKind kind, std::int64_t members) {
  const auto n = static_cast<double>(members);
  switch (kind) {
    case OpKind::AllReduce:
      return 2.0 * (n - 1.0) / n;
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::AllToAll:
      return (n - 1.0) / n;
    default:
      return 1.0;
  }
}

namespace {

// Whether DeepEP's kernels send the tokens. HybridEP's have no figures.
bool sends_by_deepep(const TokenTraffic& tokens, const ClusterSpec& cluster) {
  return tokens.count > 0 && domain_size(cluster) <= kDeepEpDomain;
}

// Without a measured curve.
CollectiveCost cost_over(CollectivePath path, OpKind kind, Bytes bytes, const ClusterSpec& cluster,
                         const StackSpec& stack, std::optional<Algorithm> forced,
                         const TokenTraffic& tokens) {
  if (talks_over_sockets(cluster)) return socket_cost(kind, bytes, path, cluster);
  path.reduction_tail = stack.communication.reduction_tail;
  const BytesPerSecond kernels = stack.communication.token_bandwidth;
  const bool by_deepep = sends_by_deepep(tokens, cluster);
  if (by_deepep && kernels > BytesPerSecond(0)) path.pairwise = std::min(path.pairwise, kernels);
  CollectiveCost cost = cheapest(kind, bytes, path, cluster, forced, tokens);
  if (by_deepep) cost.time += stack.communication.token_time * static_cast<double>(tokens.count);
  return cost;
}

// The path if the network carried whatever the accelerators' own links and kernels move.
CollectivePath without_network_limit(CollectivePath path) {
  path.remote = path.remote_pairwise = BytesPerSecond(std::numeric_limits<double>::infinity());
  return path;
}

}  // namespace

CollectiveCost collective_cost(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                               const ClusterSpec& cluster, const StackSpec& stack,
                               std::optional<Algorithm> forced, const TokenTraffic& tokens) {
  SHARDWRIGHT_CHECK(is_communication(kind), "not a communication");
  if (placement.size <= 1 || bytes <= Bytes(0)) return {};
  const ExchangeCurve* measured = forced ? nullptr : curve_of(cluster, kind, placement);
  if (measured == nullptr)
    return cost_over(path_of(placement, cluster), kind, bytes, cluster, stack, forced, tokens);
  CollectiveCost cost;
  cost.time = curve_time(*measured, bytes);
  cost.algorithm = Algorithm::Measured;
  return cost;
}

Seconds collective_time(OpKind kind, Bytes bytes, const GroupPlacement& placement,
                        const ClusterSpec& cluster, const StackSpec& stack,
                        const TokenTraffic& tokens) {
  const StackCommunication& figures = stack.communication;
  const Seconds alone =
      collective_cost(kind, bytes, placement, cluster, stack, std::nullopt, tokens).time;
  const bool over_network = placement.nodes > 1;
  if (kind == OpKind::AllToAll && (over_network || figures.sends_tokens_once_per_node))
    return alone / figures.all_to_all_ratio;
  const bool message = kind == OpKind::Send || kind == OpKind::Receive;
  if (!over_network || message || figures.collective_ratio == 1.0)
    return alone / figures.collective_ratio;
  const CollectivePath links = without_network_limit(path_of(placement, cluster));
  const Seconds over_links =
      cost_over(links, kind, bytes, cluster, stack, std::nullopt, tokens).time;
  return alone + std::min(alone, over_links) * (1.0 / figures.collective_ratio - 1.0);
}

}  // namespace shardwright::sim
