// The FLOP by phase of a program, its bytes on the wire by group, and the activations that a block
// keeps, for comparison with the published formulas.
#pragma once

#include <algorithm>
#include <vector>

#include "core/program/groups.hpp"
#include "core/program/program.hpp"

namespace shardwright {

// The volumes of one rank in one step.
struct RankVolumes {
  // FLOP of the matrix products.
  EnumArray<Phase, Flop> flop{};
  // Bytes as sent_bytes counts them.
  EnumArray<Group, Bytes> sent{};
  // Bytes received from other stages.
  Bytes received_messages;

  Flop of(Phase phase) const { return flop[phase]; }
  Bytes of(Group group) const { return sent[group]; }
};

inline void add(RankVolumes& sum, const RankVolumes& more) {
  for (std::size_t i = 0; i < sum.flop.size(); ++i) sum.flop[i] += more.flop[i];
  for (std::size_t i = 0; i < sum.sent.size(); ++i) sum.sent[i] += more.sent[i];
  sum.received_messages += more.received_messages;
}

inline RankVolumes volumes_of(const Block& block, const Plan& plan) {
  RankVolumes sum;
  for (const Op& op : block.ops) {
    sum.flop[op.phase] += model_flop(op.work);
    const auto* work = std::get_if<CommunicationWork>(&op.work);
    if (work == nullptr) continue;
    sum.sent[work->group] += sent_bytes(op.kind, work->bytes, group_size(work->group, plan));
    if (op.kind == OpKind::Receive) sum.received_messages += work->bytes;
  }
  return sum;
}

// The volumes by stage, in time linear in calls.
inline std::vector<RankVolumes> volumes(const Program& program) {
  std::vector<RankVolumes> of_block;
  of_block.reserve(program.blocks.size());
  for (const Block& block : program.blocks) of_block.push_back(volumes_of(block, program.plan));
  std::vector<RankVolumes> of_stage(program.stages.size());
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (const Call& call : program.stages[s].calls) add(of_stage[s], of_block[call.block]);
  }
  return of_stage;
}

// Bytes that are alive after the block and were not before, less those that it frees of what was.
inline Bytes kept_bytes(const Block& block, const std::vector<TensorSpec>& tensors) {
  // The tensors that are alive, as far as the block has touched them.
  std::vector<TensorRef> known;
  Bytes kept;
  for (const Op& op : block.ops) {
    const auto is_known = [&known](TensorRef ref) {
      return std::ranges::find(known, ref) != known.end();
    };
    for (const TensorRef ref : op.reads) {
      if (!is_known(ref)) known.push_back(ref);
    }
    for (const TensorRef ref : op.writes) {
      if (is_known(ref)) continue;
      known.push_back(ref);
      kept += tensors[ref.tensor].bytes;
    }
    for (const TensorRef ref : op.frees) {
      std::erase(known, ref);
      kept -= tensors[ref.tensor].bytes;
    }
  }
  return kept;
}

}  // namespace shardwright
