// Programs written by hand, for mistakes that no lowering makes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/program/program.hpp"

namespace shardwright {

class TinyProgram {
 public:
  explicit TinyProgram(std::int64_t stages) {
    program_.plan.pp = stages;
    for (std::int32_t stage = 0; stage < stages; ++stage) {
      program_.stages.emplace_back();
      program_.stages.back().stage = stage;
    }
  }

  TensorRef tensor(const std::string& name) {
    program_.tensors.push_back({name, MemoryCategory::Activations, Bytes(1.0)});
    return {static_cast<TensorId>(program_.tensors.size() - 1), 0};
  }

  static Op kernel(std::vector<TensorRef> reads, std::vector<TensorRef> writes,
                   std::vector<TensorRef> frees = {}, Stream stream = Stream::Compute) {
    Op op;
    op.name = "kernel";
    op.kind = OpKind::Norm;
    op.stream = stream;
    op.work = MemoryWork{};
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    op.frees = std::move(frees);
    return op;
  }

  static Op message(OpKind kind, bool gradient, std::int32_t peer_offset) {
    Op op;
    op.name = gradient ? "gradient" : "activation";
    op.kind = kind;
    const bool sends = kind == OpKind::Send;
    op.stream = gradient ? (sends ? Stream::SendGradient : Stream::ReceiveGradient)
                         : (sends ? Stream::SendActivation : Stream::ReceiveActivation);
    CommunicationWork work;
    work.group = Group::Pipeline;
    work.bytes = Bytes(1.0);
    work.peer_offset = peer_offset;
    op.work = work;
    return op;
  }

  // Issues a block of these ops on a stage; the first op waits for ops of earlier calls. Returns
  // the number of the first op.
  std::uint32_t call(std::size_t stage, std::vector<Op> ops, std::vector<std::uint32_t> on = {},
                     std::int32_t microbatch = 0) {
    RankProgram& rank = program_.stages[stage];
    const std::uint32_t first = rank.ops;
    rank.calls.push_back({static_cast<BlockId>(program_.blocks.size()), 0, microbatch, 0, first,
                          static_cast<std::uint32_t>(rank.waits.size())});
    for (const std::uint32_t each : on) rank.waits.push_back({first, each});
    rank.ops += static_cast<std::uint32_t>(ops.size());
    program_.blocks.push_back({"block", std::move(ops)});
    return first;
  }

  Program& program() { return program_; }

 private:
  Program program_;
};

}  // namespace shardwright
