// The small blocks around the layers: pipeline messages, data-parallel gathers and reductions, the
// optimizer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/lowering/data_parallel_messages.hpp"
#include "core/lowering/replica_exchange.hpp"
#include "core/program/program.hpp"

namespace shardwright {

// Adds blocks to a program, each distinct one once.
class SurroundingBlocks {
 public:
  // `message`: what a rank sends of a hidden state; `host_waits`: for messages to arrive.
  SurroundingBlocks(Program& program, Bytes message, bool host_waits)
      : program_(program),
        first_own_(program.blocks.size()),
        message_(message),
        host_waits_(host_waits) {}

  // A message to or from the stage `peer_offset` away: the hidden state, or its gradient. Where
  // each tensor-parallel rank receives a part of it, a gather follows.
  BlockId send(TensorRef tensor, bool gradient, std::int32_t peer_offset);
  BlockId receive(TensorRef tensor, bool gradient, std::int32_t peer_offset);

  // One collective on the parameters or gradients of a rank: `bytes` as in CommunicationWork.
  BlockId data_parallel(const std::string& name, OpKind kind, Group group, Stream stream,
                        Phase phase, Bytes bytes, Payload payload);
  // The ops of an exchange between the replicas of `group`, one after another on the stream of
  // gradients. They run in each `every` steps, from step number `first` on.
  BlockId exchange(const std::string& name, const ExchangeOps& ops, Group group, Phase phase,
                   Payload payload, std::int64_t every = 1, std::int64_t first = 1);
  // FSDP: gathers a part's parameters into `gathered`; reduces the part's gradient and frees it.
  // Dense parameters and those of experts go over different groups.
  BlockId gather(TensorRef gathered, const Bucket& bucket);
  BlockId reduce_gradient(TensorRef gradient, const Bucket& bucket);

  // Work on all parameters of the rank after the last gradient.
  BlockId over_parameters(const std::string& name, OpKind kind, Work work);

  const Block& block(BlockId id) const { return program_.blocks[id]; }

 private:
  // The key that tells the blocks of layers and messages apart. There is one for each layer and
  // microbatch, so they are looked up before they are written.
  struct Key {
    OpKind kind;
    TensorRef tensor;
    bool gradient = false;
    std::int32_t peer_offset = 0;
    Bytes dense, expert;

    bool operator==(const Key&) const = default;
  };

  template <class Write>
  BlockId once(const Key& key, Write write);
  BlockId add(Op op);
  BlockId add(Block block);

  Program& program_;
  // The first block that is not one of the model's parts.
  std::size_t first_own_;
  Bytes message_;
  bool host_waits_;
  std::vector<std::pair<Key, BlockId>> known_;
};

}  // namespace shardwright
