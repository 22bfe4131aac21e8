#include "executor/runtime/tensor_plan.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

// Tensor, layer and microbatch.
using Key = std::tuple<TensorId, std::int32_t, std::int32_t>;

class Planner {
 public:
  Planner(const Program& program, const Queues& queues, const TensorBytes& bytes_in_arena)
      : program_(program),
        queues_(queues),
        bytes_in_arena_(bytes_in_arena),
        transfers_in_flight_(2 * static_cast<std::size_t>(program.plan.chunks())),
        sent_(queues.count()),
        waited_for_(queues.count(), Users(queues.count(), kNoOp)) {}

  OpMemory add(const PlacedOp& placed, std::span<const PartId> covered) {
    const std::size_t queue = queues_.of(placed.op);
    queue_of_.push_back(queue);
    Users waits(queues_.count(), kNoOp);
    for (const std::uint16_t on : placed.op.waits) wait_for(placed.call.first_op + on, waits);
    for (const Wait& wait : placed.waits) wait_for(wait.on, waits);
    if (program_.plan.zero_stage >= 2) wait_for_reductions(placed, covered, waits);
    OpMemory memory;
    for (const TensorRef ref : placed.op.reads) {
      const auto found = alive_.find(key_of(ref, placed.call));
      SHARDWRIGHT_CHECK(found != alive_.end(),
                        program_.tensors[ref.tensor].name + " is read before it is written");
      memory.reads.push_back(use(found->second, queue, placed.number));
    }
    for (const TensorRef ref : placed.op.writes) {
      const bool begins = !alive_.contains(key_of(ref, placed.call));
      const bool gradient = program_.tensors[ref.tensor].category == MemoryCategory::Gradients;
      memory.begins_gradient = memory.begins_gradient || (begins && gradient);
      memory.writes.push_back(use(written(ref, placed.call, waits), queue, placed.number));
    }
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

  // The gradients of each microbatch are reduced in place (with FSDP those of norms), so the next
  // one adds to them afterwards.
  void wait_for_reductions(const PlacedOp& placed, std::span<const PartId> covered, Users& waits) {
    if (placed.op.payload == Payload::Gradients) {
      for (const PartId part : covered) reduced_[part] = placed.number;
      if (covered.empty()) reduced_[placed.call.layer] = placed.number;
    }
    if (placed.op.parameters.empty()) return;
    for (const auto& [part, reduction] : reduced_) {
      // The head may apply the embedding.
      const bool adds = part == placed.call.layer || part == kEmbeddingPart;
      if (adds) wait_for(reduction, waits);
    }
  }

  static std::size_t use(Block& block, std::size_t queue, std::uint32_t op) {
    block.users[queue] = op;
    return block.offset;
  }

  Block& written(TensorRef ref, const Call& call, Users& waits) {
    const auto [place, is_new] = alive_.try_emplace(key_of(ref, call));
    Block& block = place->second;
    if (!is_new) return block;
    block.offset = arena_.place(bytes_in_arena_(ref, call), waits);
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
  const TensorBytes& bytes_in_arena_;
  Arena arena_;
  std::map<Key, Block> alive_;
  std::size_t alive_bytes_ = 0, peak_bytes_ = 0;
  std::size_t transfers_in_flight_;
  // Sent tensors that are not freed yet, by queue.
  std::vector<std::deque<Block>> sent_;
  // The queue of each op.
  std::vector<std::size_t> queue_of_;
  // The last op that reduced the gradients of a part.
  std::map<PartId, std::uint32_t> reduced_;
  // For each queue, the last op of each other queue that it has waited for.
  std::vector<Users> waited_for_;
};

}  // namespace

void for_each_placed(
    const Program& program, const RankProgram& rank,
    const std::function<void(const PlacedOp&, std::span<const PartId> covered)>& visit) {
  std::size_t call = 0;
  for_each_op(program, rank, [&](const PlacedOp& placed) {
    while (&rank.calls[call] != &placed.call) ++call;
    visit(placed, Program::covered(rank, call));
  });
}

TensorPlan::TensorPlan(const Program& program, const RankProgram& rank, const Queues& queues,
                       const TensorBytes& bytes_of) {
  Planner planner(program, queues, bytes_of);
  ops_.reserve(rank.ops);
  for_each_placed(program, rank, [&](const PlacedOp& placed, std::span<const PartId> covered) {
    ops_.push_back(planner.add(placed, covered));
  });
  arena_bytes_ = planner.arena_bytes();
  peak_bytes_ = planner.peak_bytes();
}

void add_users(Users& users, const Users& more) {
  users.resize(std::max(users.size(), more.size()), kNoOp);
  for (std::size_t queue = 0; queue < more.size(); ++queue) {
    if (more[queue] == kNoOp) continue;
    const std::uint32_t known = users[queue];
    users[queue] = known == kNoOp ? more[queue] : std::max(known, more[queue]);
  }
}

std::size_t Arena::place(std::size_t bytes, Users& users) {
  const std::size_t needed =
      std::max((bytes + kAlignment - 1) / kAlignment, std::size_t{1}) * kAlignment;
  auto range = best_fit(needed);
  if (range == ranges_.end()) range = grow(needed);
  Range& taken = range->second;
  add_users(users, taken.users);
  if (taken.bytes > needed)
    ranges_[range->first + needed] = {taken.bytes - needed, true, taken.users};
  taken = {needed, false, {}};
  return range->first;
}

Arena::Ranges::iterator Arena::best_fit(std::size_t bytes) {
  auto best = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const Range& here = range->second;
    if (!here.free || here.bytes < bytes) continue;
    if (best == ranges_.end() || here.bytes < best->second.bytes) best = range;
  }
  return best;
}

// Extends a free range at the end, or appends a new one.
Arena::Ranges::iterator Arena::grow(std::size_t bytes) {
  if (!ranges_.empty() && ranges_.rbegin()->second.free) {
    const auto last = std::prev(ranges_.end());
    last->second.bytes = bytes;
    end_ = last->first + bytes;
    return last;
  }
  const auto added = ranges_.emplace(end_, Range{bytes, true, {}}).first;
  end_ += bytes;
  return added;
}

void Arena::free(std::size_t offset, const Users& users) {
  auto range = ranges_.find(offset);
  SHARDWRIGHT_CHECK(range != ranges_.end() && !range->second.free, "no block of the arena");
  range->second.free = true;
  range->second.users = users;
  const auto join = [this](Ranges::iterator first, Ranges::iterator second) {
    first->second.bytes += second->second.bytes;
    add_users(first->second.users, second->second.users);
    ranges_.erase(second);
  };
  const auto next = std::next(range);
  if (next != ranges_.end() && next->second.free) join(range, next);
  if (range == ranges_.begin()) return;
  const auto before = std::prev(range);
  if (before->second.free) join(before, range);
}

}  // namespace shardwright::executor
