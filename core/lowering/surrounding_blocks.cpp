#include "core/lowering/surrounding_blocks.hpp"

#include <algorithm>
#include <utility>

namespace shardwright {
namespace {

CommunicationWork communication(Group group, Bytes bytes, std::int32_t peer_offset = 0) {
  CommunicationWork work;
  work.group = group;
  work.bytes = bytes;
  work.peer_offset = peer_offset;
  return work;
}

Op data_parallel_op(const std::string& name, OpKind kind, Group group, Stream stream, Phase phase,
                    Bytes bytes) {
  Op op;
  op.name = name;
  op.kind = kind;
  op.stream = stream;
  op.phase = phase;
  op.work = communication(group, bytes);
  return op;
}

bool same(const Op& a, const Op& b) {
  return a.kind == b.kind && a.stream == b.stream && a.phase == b.phase && a.work == b.work &&
         a.name == b.name && a.holds_host == b.holds_host && a.payload == b.payload &&
         a.every == b.every && a.first == b.first && a.beside_steps == b.beside_steps &&
         a.reads == b.reads && a.writes == b.writes && a.frees == b.frees;
}

}  // namespace

BlockId SurroundingBlocks::add(Op op) {
  const std::string name = op.name;
  return add(Block{name, {std::move(op)}});
}

BlockId SurroundingBlocks::add(Block block) {
  for (Op& op : block.ops) op.precision = program_.plan.precision;
  for (std::size_t id = program_.blocks.size(); id-- > first_own_;) {
    const std::vector<Op>& ops = program_.blocks[id].ops;
    if (std::equal(ops.begin(), ops.end(), block.ops.begin(), block.ops.end(), same))
      return static_cast<BlockId>(id);
  }
  program_.blocks.push_back(std::move(block));
  return static_cast<BlockId>(program_.blocks.size() - 1);
}

template <class Write>
BlockId SurroundingBlocks::once(const Key& key, Write write) {
  for (const auto& [known, block] : known_) {
    if (known == key) return block;
  }
  const BlockId block = write();
  known_.emplace_back(key, block);
  return block;
}

BlockId SurroundingBlocks::send(TensorRef tensor, bool gradient, std::int32_t peer_offset) {
  return once({OpKind::Send, tensor, gradient, peer_offset, {}, {}}, [&] {
    Op op;
    op.name = gradient ? "send_gradient" : "send_activation";
    op.kind = OpKind::Send;
    op.stream = gradient ? Stream::SendGradient : Stream::SendActivation;
    op.phase = gradient ? Phase::BackwardInput : Phase::Forward;
    op.work = communication(Group::Pipeline, message_, peer_offset);
    op.reads = {tensor};
    op.frees = {tensor};
    return add(std::move(op));
  });
}

BlockId SurroundingBlocks::receive(TensorRef tensor, bool gradient, std::int32_t peer_offset) {
  return once({OpKind::Receive, tensor, gradient, peer_offset, {}, {}}, [&] {
    Op op;
    op.name = gradient ? "receive_gradient" : "receive_activation";
    op.kind = OpKind::Receive;
    op.holds_host = host_waits_;
    op.stream = gradient ? Stream::ReceiveGradient : Stream::ReceiveActivation;
    op.phase = gradient ? Phase::BackwardInput : Phase::Forward;
    op.work = communication(Group::Pipeline, message_, peer_offset);
    op.writes = {tensor};
    const Bytes whole = program_.tensors[tensor.tensor].bytes;
    if (message_ == whole) return add(std::move(op));
    Op gather;
    gather.name = op.name + ".all_gather";
    gather.kind = OpKind::AllGather;
    gather.stream = Stream::TensorParallel;
    gather.phase = op.phase;
    gather.work = communication(Group::Tensor, whole);
    gather.reads = gather.writes = {tensor};
    gather.waits = {0};
    return add(Block{op.name, {op, gather}});
  });
}

BlockId SurroundingBlocks::data_parallel(const std::string& name, OpKind kind, Group group,
                                         Stream stream, Phase phase, Bytes bytes, Payload payload) {
  Op op = data_parallel_op(name, kind, group, stream, phase, bytes);
  op.payload = payload;
  return add(std::move(op));
}

BlockId SurroundingBlocks::exchange(const std::string& name, const ExchangeOps& ops, Group group,
                                    Phase phase, Payload payload, std::int64_t every,
                                    std::int64_t first) {
  Block block{name, {}};
  for (const ExchangeOp& each : ops) {
    Op op;
    op.name = name + "." + each.name;
    op.kind = each.kind;
    op.stream = Stream::GradientReduce;
    op.phase = phase;
    op.work =
        is_communication(each.kind) ? Work(communication(group, each.bytes)) : Work(each.kernel);
    op.payload = payload;
    op.every = every;
    op.first = first + each.delay;
    if (each.beside) op.beside_steps = program_.plan.replicas.overlap_steps;
    block.ops.push_back(std::move(op));
  }
  return add(std::move(block));
}

BlockId SurroundingBlocks::gather(TensorRef gathered, const Bucket& bucket) {
  const Key key{OpKind::AllGather, gathered, false, 0, Bytes(bucket.dense), Bytes(bucket.expert)};
  return once(key, [&] {
    Block block{"parameters.all_gather", {}};
    for_each_gather(bucket, [&](const ParameterGather& gather) {
      if (gather.bytes <= 0.0) return;
      Op op = data_parallel_op(std::string(gather.name) + ".all_gather", OpKind::AllGather,
                               gather.group, Stream::ParameterGather, Phase::Forward,
                               Bytes(gather.bytes));
      if (!block.ops.empty()) op.reads = {gathered};
      op.writes = {gathered};
      op.payload = Payload::Parameters;
      block.ops.push_back(std::move(op));
    });
    return add(std::move(block));
  });
}

BlockId SurroundingBlocks::reduce_gradient(TensorRef gradient, const Bucket& bucket) {
  const Key key{OpKind::ReduceScatter, gradient, true, 0, Bytes(bucket.dense),
                Bytes(bucket.expert)};
  return once(key, [&] {
    Block block{"gradients.reduce_scatter", {}};
    for_each_reduction(bucket, program_.plan, [&](const GradientReduction& each) {
      if (each.kind != OpKind::ReduceScatter || each.bytes <= 0.0) return;
      Op op = data_parallel_op(std::string(each.name()) + ".reduce_scatter", each.kind, each.group,
                               Stream::ParameterGather, Phase::BackwardWeight, Bytes(each.bytes));
      op.reads = {gradient};
      op.payload = Payload::Gradients;
      block.ops.push_back(std::move(op));
    });
    block.ops.back().frees = {gradient};
    return add(std::move(block));
  });
}

BlockId SurroundingBlocks::over_parameters(const std::string& name, OpKind kind, Work work) {
  Op op;
  op.name = name;
  op.kind = kind;
  op.phase = Phase::Optimizer;
  op.work = std::move(work);
  return add(std::move(op));
}

}  // namespace shardwright
