#include "sim/memory/memory_replay.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <variant>

#include "core/program/groups.hpp"
#include "core/spec/adapters.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright::sim {
namespace {

// Calls `change(op, tensor, bytes)` for each allocation (positive) before an op and each free
// (negative) after it. A tensor that an op writes without reading it is allocated, unless an
// earlier op of the block wrote it already.
void walk_block(
    const Block& block, const std::vector<TensorSpec>& tensors,
    const std::function<void(std::size_t op, const TensorSpec& tensor, double bytes)>& change) {
  std::vector<TensorRef> alive;
  const auto is_alive = [&alive](TensorRef ref) {
    return std::find(alive.begin(), alive.end(), ref) != alive.end();
  };
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const Op& op = block.ops[i];
    for (const TensorRef ref : op.reads) {
      if (!is_alive(ref)) alive.push_back(ref);
    }
    for (const TensorRef ref : op.writes) {
      if (is_alive(ref)) continue;
      alive.push_back(ref);
      change(i, tensors[ref.tensor], tensors[ref.tensor].bytes.value());
    }
    for (const TensorRef ref : op.frees) {
      std::erase(alive, ref);
      change(i, tensors[ref.tensor], -tensors[ref.tensor].bytes.value());
    }
  }
}

// ZeRO reduces over the ranks that share the states, and beside them over their replicas; without
// it all data-parallel ranks are one group.
bool uses(Group group, const Plan& plan, const ModelSpec& model) {
  const bool shards = plan.zero_stage >= 1;
  const bool trains_experts = model.moe && (!plan.lora || adapts_experts(model, *plan.lora));
  const bool trains_others = !plan.lora || adapts_others(model, *plan.lora);
  switch (group) {
    case Group::Data:
      return !shards && trains_others;
    case Group::ShardInner:
      return shards;
    case Group::ShardOuter:
      return shards && trains_others;
    case Group::ExpertData:
      return !shards && trains_experts;
    case Group::ExpertShardInner:
      return shards && (trains_experts || (model.moe && plan.zero_stage == 3));
    case Group::ExpertShardOuter:
      return shards && trains_experts;
    case Group::Expert:
    case Group::ExpertTensor:
      return model.moe.has_value();
    case Group::EmbeddingTie:
      // These schedules have the first and the last part of the model on one stage.
      return ties_embedding_gradients(model, plan) && !plan.lora &&
             plan.schedule != ScheduleKind::ZbV && plan.schedule != ScheduleKind::DualPipe;
    case Group::Tensor:
    case Group::Context:
    case Group::Pipeline:
    case Group::ModelParallel:
    case Group::Mirror:
      return true;
  }
  return true;
}

}  // namespace

double communicators(const Plan& plan, const ModelSpec& model) {
  double count = 0.0;
  for (const Group group : enumerators<Group>())
    if (group_size(group, plan) > 1 && uses(group, plan, model)) count += 1.0;
  return count;
}

double communicators(const Program& program) {
  EnumArray<Group, bool> used{};
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (const auto* work = std::get_if<CommunicationWork>(&op.work)) used[work->group] = true;
    }
  }
  double count = 0.0;
  for (const Group group : enumerators<Group>())
    if (used[group] && group_size(group, program.plan) > 1) count += 1.0;
  return count;
}

BlockMemory replay_block(const Block& block, const std::vector<TensorSpec>& tensors) {
  BlockMemory memory;
  const auto change = [&memory](std::size_t op, const TensorSpec& tensor, double bytes) {
    memory.net += bytes;
    memory.net_by_category[tensor.category] += bytes;
    if (memory.net > memory.rise) {
      memory.rise = memory.net;
      memory.at_rise = memory.net_by_category;
      memory.rise_op = static_cast<std::uint32_t>(op);
    }
  };
  walk_block(block, tensors, change);
  return memory;
}

MemoryPeak peak_memory(const RankProgram& rank, const std::vector<BlockMemory>& blocks,
                       double communicators, const StackSpec& stack) {
  CategoryBytes held{};
  for (const PersistentMemory& state : rank.persistent) held[state.category] += state.bytes.value();
  double level = std::accumulate(held.begin(), held.end(), 0.0);
  double peak = level;
  const Call* peak_call = nullptr;
  for (const Call& call : rank.calls) {
    const BlockMemory& block = blocks[call.block];
    if (level + block.rise > peak) {
      peak = level + block.rise;
      peak_call = &call;
    }
    level += block.net;
  }
  MemoryPeak result;
  // A second walk up to the peak finds what was held there: cheaper than categories along the whole
  // way.
  for (const Call& call : rank.calls) {
    const bool there = &call == peak_call;
    if (peak_call == nullptr) break;
    const CategoryBytes& change =
        there ? blocks[call.block].at_rise : blocks[call.block].net_by_category;
    for (std::size_t i = 0; i < held.size(); ++i) held[i] += change[i];
    if (there) result.op = call.first_op + blocks[call.block].rise_op;
    if (there) break;
  }
  const Bytes nccl = stack.memory.communicator * communicators;
  result.outside_allocator = stack.memory.context + nccl;
  held[MemoryCategory::CommunicationBuffers] += nccl.value();
  held[MemoryCategory::Context] += stack.memory.context.value();
  held[MemoryCategory::Fragmentation] += peak * stack.memory.fragmentation;
  for (std::size_t i = 0; i < held.size(); ++i) {
    result.breakdown[i] = Bytes(held[i]);
    result.peak += result.breakdown[i];
  }
  return result;
}

std::vector<MemoryPeak> peak_memory(const Program& program, const StackSpec& stack) {
  std::vector<BlockMemory> blocks;
  blocks.reserve(program.blocks.size());
  for (const Block& block : program.blocks) blocks.push_back(replay_block(block, program.tensors));
  std::vector<MemoryPeak> peaks;
  peaks.reserve(program.stages.size());
  const double opened = communicators(program);
  for (const RankProgram& rank : program.stages)
    peaks.push_back(peak_memory(rank, blocks, opened, stack));
  return peaks;
}

std::vector<MemorySample> memory_curve(const Program& program, std::int32_t stage) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  double level = 0.0;
  for (const PersistentMemory& state : rank.persistent) level += state.bytes.value();
  std::vector<MemorySample> curve = {{0, Bytes(level)}};
  for (const Call& call : rank.calls) {
    walk_block(program.blocks[call.block], program.tensors,
               [&](std::size_t op, const TensorSpec&, double bytes) {
                 level += bytes;
                 curve.push_back({call.first_op + static_cast<std::uint32_t>(op), Bytes(level)});
               });
  }
  return curve;
}

ReservedMemory reserved_memory(const Plan& plan, const ModelSpec& model, const StackSpec& stack) {
  return {stack.memory.context + stack.memory.communicator * communicators(plan, model),
          stack.memory.fragmentation};
}

void add_reserved_memory(Timeline& timeline, const Plan& plan, const ModelSpec& model,
                         const StackSpec& stack) {
  const ReservedMemory reserved = reserved_memory(plan, model, stack);
  // The highest level of each rank.
  std::map<std::int32_t, Bytes> highest;
  for (MemoryLevel& memory : timeline.memory) {
    Bytes& most = highest[memory.rank];
    most = std::max(most, memory.level);
    memory.level += reserved.beside(most);
  }
}

}  // namespace shardwright::sim
