#include "executor/runtime/tensor_plan.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "executor/runtime/arena.hpp"

namespace shardwright::executor {
namespace {

// Tensor, layer and microbatch.
using Key = std::tuple<TensorId, std::int32_t, std::int32_t>;

class Planner {
 public:
  Planner(const Program& program, const Queues& queues)
      : program_(program),
        queues_(queues),
        transfers_in_flight_(2 * static_cast<std::size_t>(program.plan.chunks())),
        sent_(queues.count()),
        waited_for_(queues.count(), Users(queues.count(), kNoOp)) {}

  OpMemory add(const PlacedOp& placed) {
    const std::size_t queue = queues_.of(placed.op);
    queue_of_.push_back(queue);
    Users waits(queues_.count(), kNoOp);
    for (const std::uint16_t on : placed.op.waits) wait_for(placed.call.first_op + on, waits);
    for (const Wait& wait : placed.waits) wait_for(wait.on, waits);
    OpMemory memory;
    for (const TensorRef ref : placed.op.reads) {
      const auto found = alive_.find(key_of(ref, placed.call));
      SHARDWRIGHT_CHECK(found != alive_.end(),
                        program_.tensors[ref.tensor].name + " is read before it is written");
      memory.reads.push_back(use(found->second, queue, placed.number));
    }
    for (const TensorRef ref : placed.op.writes)
      memory.writes.push_back(use(written(ref, placed.call, waits), queue, placed.number));
    for (const TensorRef ref : placed.op.frees) release(ref, placed);
    memory.waits = new_waits(queue, waits);
    return memory;
  }

  std::size_t arena_bytes() const { return arena_.bytes(); }
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Block {
    std::size_t offset = 0;
    Users users;
  };

  Key key_of(TensorRef ref, const Call& call) const {
    const bool per_microbatch = program_.tensors[ref.tensor].per_microbatch;
    return {ref.tensor, call.layer + ref.layer_offset, per_microbatch ? call.microbatch : -1};
  }

  std::size_t bytes_of(TensorRef ref) const {
    return static_cast<std::size_t>(std::ceil(program_.tensors[ref.tensor].bytes.value()));
  }

  void wait_for(std::uint32_t op, Users& waits) const {
    Users one(queues_.count(), kNoOp);
    one[queue_of_[op]] = op;
    add_users(waits, one);
  }

  static std::size_t use(Block& block, std::size_t queue, std::uint32_t op) {
    block.users[queue] = op;
    return block.offset;
  }

  Block& written(TensorRef ref, const Call& call, Users& waits) {
    const auto [place, is_new] = alive_.try_emplace(key_of(ref, call));
    Block& block = place->second;
    if (!is_new) return block;
    block.offset = arena_.place(bytes_of(ref), waits);
    block.users.assign(queues_.count(), kNoOp);
    alive_bytes_ += bytes_of(ref);
    peak_bytes_ = std::max(peak_bytes_, alive_bytes_);
    return block;
  }

  void release(TensorRef ref, const PlacedOp& placed) {
    const auto found = alive_.find(key_of(ref, placed.call));
    if (found == alive_.end()) return;
    alive_bytes_ -= bytes_of(ref);
    Block block = std::move(found->second);
    alive_.erase(found);
    if (placed.op.kind != OpKind::Send) return arena_.free(block.offset, block.users);
    std::deque<Block>& sent = sent_[queues_.of(placed.op)];
    sent.push_back(std::move(block));
    if (sent.size() <= transfers_in_flight_) return;
    arena_.free(sent.front().offset, sent.front().users);
    sent.pop_front();
  }

  // Removes ops of the queue itself and those that an earlier op of the queue has waited for.
  std::vector<std::uint32_t> new_waits(std::size_t queue, const Users& waits) {
    std::vector<std::uint32_t> left;
    for (std::size_t other = 0; other < waits.size(); ++other) {
      if (waits[other] == kNoOp || other == queue) continue;
      std::uint32_t& known = waited_for_[queue][other];
      if (known != kNoOp && known >= waits[other]) continue;
      known = waits[other];
      left.push_back(waits[other]);
    }
    return left;
  }

  const Program& program_;
  const Queues& queues_;
  Arena arena_;
  std::map<Key, Block> alive_;
  std::size_t alive_bytes_ = 0, peak_bytes_ = 0;
  std::size_t transfers_in_flight_;
  // Sent tensors that are not freed yet, by queue.
  std::vector<std::deque<Block>> sent_;
  // The queue of each op.
  std::vector<std::size_t> queue_of_;
  // By queue, the last op of each other queue that it has waited for.
  std::vector<Users> waited_for_;
};

}  // namespace

TensorPlan::TensorPlan(const Program& program, const RankProgram& rank, const Queues& queues) {
  Planner planner(program, queues);
  ops_.reserve(rank.ops);
  for_each_op(program, rank, [&](const PlacedOp& placed) { ops_.push_back(planner.add(placed)); });
  arena_bytes_ = planner.arena_bytes();
  peak_bytes_ = planner.peak_bytes();
}

}  // namespace shardwright::executor
