// The ops of a ring, followed on all of its ranks: who meets whose keys and values, and who has
// added to their gradients when these are back.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/core/lowering/random_lowering.hpp"

namespace shardwright {
namespace {

// Keys and values, or their gradients.
struct RingBlock {
  std::int64_t owner = 0;
  // The ranks that have added to the gradients, as often as they did.
  std::multiset<std::int64_t> added_by{};

  bool operator==(const RingBlock&) const = default;
};

class RingOfRanks {
 public:
  explicit RingOfRanks(std::size_t ranks) : met(ranks), held_(ranks) {}

  void run(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (op.kind == OpKind::RingShift) {
        shift(op);
      } else if (op.kind == OpKind::Attention) {
        for (std::size_t rank = 0; rank < held_.size(); ++rank) attend(op, rank);
      } else if (op.kind == OpKind::GradientAccumulation) {
        for (auto& tensors : held_) accumulate(tensors[op.writes[0]], tensors.at(op.reads[1]));
      }
    }
  }
  const RingBlock& held(std::size_t rank, TensorRef tensor) const { return held_[rank].at(tensor); }

  // The owners of what each rank's queries have met, in order.
  std::vector<std::vector<std::int64_t>> met;

 private:
  using Tensors = std::map<TensorRef, RingBlock>;

  void attend(const Op& op, std::size_t rank) {
    Tensors& tensors = held_[rank];
    const auto own = static_cast<std::int64_t>(rank);
    const std::int64_t owner = tensors.try_emplace(op.reads[1], RingBlock{own}).first->second.owner;
    met[rank].push_back(owner);
    if (op.phase == Phase::BackwardInput) {
      tensors[op.writes.back()] = {owner, {own}};
    } else if (op.writes.size() > 2) {
      tensors[op.writes.back()] = {owner};
    }
  }

  // The first block that is sent is the rank's own.
  void shift(const Op& op) {
    const std::size_t ranks = held_.size(), up = op.phase == Phase::BackwardInput ? ranks - 1 : 1;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      held_[rank].try_emplace(op.reads[0], RingBlock{static_cast<std::int64_t>(rank)});
    const std::vector<Tensors> before = held_;
    for (std::size_t i = 0; i < op.writes.size(); ++i) {
      for (std::size_t rank = 0; rank < ranks; ++rank)
        held_[(rank + up) % ranks][op.writes[i]] = before[rank].at(op.reads[i]);
    }
  }

  static void accumulate(RingBlock& sum, const RingBlock& summand) {
    EXPECT_EQ(sum.owner, summand.owner);
    sum.added_by.insert(summand.added_by.begin(), summand.added_by.end());
  }

  std::vector<Tensors> held_;
};

std::vector<Op> ops_of_block(const Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.blocks, name, &Block::name);
  return found == program.blocks.end() ? std::vector<Op>{} : found->ops;
}

// Forward the queries of rank r meet the blocks of r, r-1, ...; backward of r+1, r+2, ..., r.
TEST(RingAttention, MeetsAllBlocksAndBringsTheirGradientsHome) {
  for (const RecomputePolicy policy :
       {RecomputePolicy::None, RecomputePolicy::Selective, RecomputePolicy::Full}) {
    for (const std::int64_t cp : {2, 3, 4}) {
      LoweringCase made = small_case(1);
      made.plan.seq_len = 96;
      made.plan.cp = cp;
      made.plan.recompute = policy;
      if (policy == RecomputePolicy::Selective)
        made.plan.recompute_modules = {RecomputeModule::CoreAttention};
      const Program program = made.lower();
      const bool whole = policy == RecomputePolicy::Full;
      const std::string kind = whole ? "layer.recomputed" : "layer";
      // A layer that runs again projects its keys and values anew.
      std::vector<Op> ops = ops_of_block(program, kind + (whole ? ".recompute" : ".forward"));
      const std::vector<Op> backward = ops_of_block(program, kind + ".backward");
      ops.insert(ops.end(), backward.begin(), backward.end());
      RingOfRanks ring(static_cast<std::size_t>(cp));
      ring.run(ops);
      const int forward_passes = policy == RecomputePolicy::Selective ? 2 : 1;
      const auto last_sum =
          std::ranges::find(ops.rbegin(), ops.rend(), OpKind::GradientAccumulation, &Op::kind);
      ASSERT_NE(last_sum, ops.rend());
      RingBlock complete;
      for (std::int64_t rank = 0; rank < cp; ++rank) complete.added_by.insert(rank);
      for (std::int64_t rank = 0; rank < cp; ++rank) {
        std::vector<std::int64_t> expected;
        for (std::int64_t step = 0; step < forward_passes * cp; ++step)
          expected.push_back((rank + forward_passes * cp - step) % cp);
        for (std::int64_t step = 0; step < cp; ++step) expected.push_back((rank + 1 + step) % cp);
        EXPECT_EQ(ring.met[static_cast<std::size_t>(rank)], expected);
        complete.owner = rank;
        EXPECT_EQ(ring.held(static_cast<std::size_t>(rank), last_sum->writes[0]), complete);
      }
      EXPECT_EQ(std::ranges::count(ops, OpKind::RingShift, &Op::kind),
                forward_passes * (cp - 1) + cp);
    }
  }
}

}  // namespace
}  // namespace shardwright
