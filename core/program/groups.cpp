#include "core/program/groups.hpp"

#include <algorithm>

#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

std::int64_t data_ranks(const Plan& plan) {
  return plan.dp * plan.cp;
}

// Ranks that share one copy of the states: all that could, or a hybrid group of the plan's size.
std::int64_t shard_ranks(std::int64_t ranks, const Plan& plan) {
  return plan.shard_group > 0 ? std::min(plan.shard_group, ranks) : ranks;
}

}  // namespace

std::int64_t group_size(Group group, const Plan& plan) {
  switch (group) {
    case Group::Tensor:
      return plan.tp;
    case Group::Context:
      return plan.cp;
    case Group::Expert:
      return plan.ep;
    case Group::ExpertTensor:
      return plan.expert_tp;
    case Group::Data:
      return data_ranks(plan);
    case Group::ExpertData:
      return expert_replicas(plan);
    case Group::ShardInner:
      return shard_ranks(data_ranks(plan), plan);
    case Group::ShardOuter:
      return plan.shard_group == 0 ? 1 : data_ranks(plan) / shard_ranks(data_ranks(plan), plan);
    case Group::ExpertShardInner:
      return shard_ranks(expert_replicas(plan), plan);
    case Group::ExpertShardOuter:
      return plan.shard_group == 0
                 ? 1
                 : expert_replicas(plan) / shard_ranks(expert_replicas(plan), plan);
    case Group::Pipeline:
    case Group::EmbeddingTie:
      return std::min<std::int64_t>(plan.pp, 2);
    case Group::ModelParallel:
      return plan.tp * plan.pp;
    case Group::Mirror:
      return plan.schedule == ScheduleKind::DualPipe ? std::min<std::int64_t>(plan.pp, 2) : 1;
  }
  return 1;
}

bool shards_parameters(const ModelSpec& model, const Plan& plan) {
  if (plan.zero_stage != 3) return false;
  return group_size(Group::ShardInner, plan) > 1 ||
         (model.moe && group_size(Group::ExpertShardInner, plan) > 1);
}

Axis axis_of(Group group) {
  switch (group) {
    case Group::Tensor:
      return Axis::Tensor;
    case Group::Context:
      return Axis::Context;
    case Group::Expert:
    case Group::ExpertTensor:
      return Axis::Expert;
    case Group::Pipeline:
    case Group::EmbeddingTie:
    case Group::ModelParallel:
      return Axis::Pipeline;
    case Group::Mirror:
    case Group::Data:
    case Group::ExpertData:
    case Group::ShardInner:
    case Group::ShardOuter:
    case Group::ExpertShardInner:
    case Group::ExpertShardOuter:
      return Axis::Data;
  }
  return Axis::Data;
}

Bytes sent_bytes(OpKind kind, Bytes bytes, std::int64_t members) {
  const double others = static_cast<double>(members - 1) / static_cast<double>(members);
  switch (kind) {
    case OpKind::AllReduce:
      return bytes * (2.0 * others);
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::AllToAll:
      return bytes * others;
    case OpKind::Broadcast:
    case OpKind::RingShift:
    case OpKind::Push:
    case OpKind::Send:
      return bytes;
    default:
      return Bytes();
  }
}

}  // namespace shardwright
