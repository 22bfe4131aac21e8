#include "core/program/volumes.hpp"

#include <algorithm>

#include "core/program/groups.hpp"

namespace shardwright {
namespace {

void add(RankVolumes& sum, const RankVolumes& more) {
  for (std::size_t i = 0; i < sum.flop.size(); ++i) sum.flop[i] += more.flop[i];
  for (std::size_t i = 0; i < sum.sent.size(); ++i) sum.sent[i] += more.sent[i];
  sum.received_messages += more.received_messages;
}

RankVolumes volumes_of(const Block& block, const Plan& plan) {
  RankVolumes sum;
  for (const Op& op : block.ops) {
    sum.flop[static_cast<std::size_t>(op.phase)] += model_flop(op.work);
    const auto* work = std::get_if<CommunicationWork>(&op.work);
    if (work == nullptr) continue;
    sum.sent[static_cast<std::size_t>(work->group)] +=
        sent_bytes(op.kind, work->bytes, group_size(work->group, plan));
    if (op.kind == OpKind::Receive) sum.received_messages += work->bytes;
  }
  return sum;
}

}  // namespace

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
    case OpKind::Send:
      return bytes;
    default:
      return Bytes();
  }
}

std::vector<RankVolumes> volumes(const Program& program) {
  std::vector<RankVolumes> of_block;
  of_block.reserve(program.blocks.size());
  for (const Block& block : program.blocks) of_block.push_back(volumes_of(block, program.plan));
  std::vector<RankVolumes> of_stage(program.stages.size());
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    for (const Call& call : program.stages[s].calls) add(of_stage[s], of_block[call.block]);
  }
  return of_stage;
}

Bytes kept_bytes(const Block& block, const std::vector<TensorSpec>& tensors) {
  // The tensors that are alive, as far as the block has touched them.
  std::vector<TensorRef> known;
  Bytes kept;
  for (const Op& op : block.ops) {
    const auto is_known = [&known](TensorRef ref) {
      return std::find(known.begin(), known.end(), ref) != known.end();
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
