// The places of a plan's communication groups on the cluster.
//
// Ranks fill the scale-up domains in the order of their numbers (core/program/group_lattice.hpp).
#pragma once

#include <cstdint>

#include "core/op/op.hpp"
#include "core/program/group_lattice.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::sim {

// The shape of a group on the cluster. A "node" here is a scale-up domain: a server, or a rack such
// as an NVL72. Where the groups of one kind lie differently (degrees that do not divide the node),
// it is the worst of them: the collectives of a step wait for the slowest.
struct GroupPlacement {
  // The number of members.
  std::int64_t size = 1;
  // Members on the node that holds the most of them.
  std::int64_t per_node = 1;
  // Nodes that hold members.
  std::int64_t nodes = 1;
  // Groups of this kind that share one node's NICs: those with members on it and elsewhere. It is
  // at least 1.
  std::int64_t groups_per_node = 1;
  // Nodes from the first to the last that hold members.
  std::int64_t span = 1;
  // The places of the members' nodes, where all groups of the kind lie alike; empty: evenly over
  // `span`. For pairs of stages they are those of the whole pipeline, which messages cross at once.
  GroupLattice grid = {};
  // Nodes of all groups; 0: those from the group's first node to its last.
  std::int64_t job_nodes = 0;

  bool operator==(const GroupPlacement&) const = default;
};

// Nodes from the first to the last that the group, or the pipeline of the pair, lies on.
std::int64_t extent_of(const GroupPlacement& placement);

// Accelerators in one scale-up domain of the cluster.
std::int64_t domain_size(const ClusterSpec& cluster);

// Domains below one switch of the level, which counts nodes. At least 1: where the nodes of a
// domain lie below several switches, these stand for one.
std::int64_t domains_below(const FabricLevel& level, const ClusterSpec& cluster);

// The accelerators of a domain that a job of `world_size` ranks takes: all of them where it fills
// whole domains or fits into one. Elsewhere groups would straddle domains of many nodes, so that a
// job takes the most whole nodes of each that share it evenly, in eights that tensor-parallel
// groups fill, as schedulers allocate them by segments: of domains of 72 a job of 256 takes 64.
std::int64_t domain_block(const ClusterSpec& cluster, std::int64_t world_size);

// The placement of one kind of group of a valid plan. For `Group::Pipeline` it is a pair of
// neighbouring stages, and for `Group::EmbeddingTie` and `Group::Mirror` the pair of the first and
// the last, of all mirrored pairs the one that lies farthest apart; there `groups_per_node` counts
// the pairs whose earlier stage is on the node.
GroupPlacement place(Group group, const Plan& plan, const ClusterSpec& cluster);

// The placement of the groups that translations of `lattice` cut `world` ranks into, on domains of
// `domain` accelerators.
GroupPlacement place_on_domains(const GroupLattice& lattice, std::int64_t domain,
                                std::int64_t world);

// The largest scale-up domain that DeepEP's kernels know; larger ones run HybridEP.
inline constexpr std::int64_t kDeepEpDomain = 8;

// What an all-to-all of tokens sends, compared with one that sends each expert of a token a copy of
// its own.
struct TokenTraffic {
  // Tokens that a rank sends; 0 where the all-to-all carries none.
  std::int64_t count = 0;
  // The share of the copies to other nodes that crosses the network.
  double remote = 1.0;
  // The share of the copies that the links inside of a node carry, to its own members and on behalf
  // of other nodes.
  double local = 1.0;
};

// What is sent where kernels send each node one copy, which each of its ranks gets once, however
// many experts it holds (github.com/deepseek-ai/DeepEP). k copies, which are spread independently
// over n nodes or ranks, hit n (1 - (1 - 1/n)^k) of them, and at most `most_nodes` nodes, as
// DeepSeek-V3's router limits them (arXiv 2412.19437, section 2.1.2). Both are 1 where all copies
// are sent (`tokens`, `copies` and `most_nodes` as CommunicationWork has them).
TokenTraffic token_traffic(std::int64_t tokens, std::int64_t copies, std::int64_t most_nodes,
                           const GroupPlacement& placement);

}  // namespace shardwright::sim
