// Prices of the messages of plans, one plan after the other: neighbouring plans send the same ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// True if the ranks of both plans have the same degrees and lie alike.
bool ranks_alike(const Plan& a, const Plan& b);

class MessageTimes {
 public:
  // The cluster and the stack must outlive this object. `apart`: the stages of a pipeline message
  // lie on different nodes, wherever their ranks would.
  MessageTimes(const ClusterSpec& cluster, const StackSpec& stack, bool apart = false)
      : cluster_(cluster), stack_(stack), apart_(apart) {}

  // Collectives of replicas on several pools take as long from now on as between nodes of the
  // slowest one. `pools`: as messages to other pools find them. They must outlive this object.
  void join_replicas_on(std::span<const ClusterSpec> pools);

  // Prices the groups of `plan` from now on.
  void use_groups_of(const Plan& plan);

  // Seconds that a collective or message over one group takes; nothing without bytes or in a group
  // of one.
  double of(OpKind kind, Group group, double bytes);

 private:
  struct Message {
    OpKind kind = OpKind::Send;
    Group group = Group::Data;
    std::int64_t shard_group = 0;
    // The size; 0 in a place that holds no message.
    double bytes = 0.0;
    double time = 0.0;
  };

  double price(OpKind kind, Group group, double bytes);

  const ClusterSpec& cluster_;
  const StackSpec& stack_;
  bool apart_;
  // Where replicas lie on several pools: the messages between these.
  std::vector<MessageTimes> between_;
  // True for groups with members on several pools.
  EnumArray<Group, bool> joins_pools_{};
  std::optional<Plan> plan_;
  // True for groups of one member.
  EnumArray<Group, bool> alone_{};
  EnumArray<Group, std::optional<GroupPlacement>> placements_;
  // Messages by a hash of their kind, group and bytes; each place holds the last one that fell to
  // it.
  std::array<Message, 256> known_{};
};

}  // namespace shardwright::sim
