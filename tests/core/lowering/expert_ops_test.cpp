// Kernels of their own handle the tokens of experts, by stack and by model.
#include <gtest/gtest.h>

#include "core/lowering/lowering.hpp"
#include "core/program/validate.hpp"
#include "tests/core/lowering/random_lowering.hpp"

namespace shardwright {
namespace {

LoweringCase expert_case() {
  LoweringCase made = small_case(2);
  made.model.mlp.bias = made.model.mlp.clamped = true;
  made.model.moe = MoeSpec{.experts = 16, .top_k = 4, .expert_ffn = 32};
  made.plan.dp = made.plan.ep = 4;
  made.plan.global_batch = 4;
  return made;
}

struct Found {
  int ops = 0;
  double read = 0.0, written = 0.0;
};

Found find_ops(const LoweringCase& made, const std::string& part) {
  const Program program = made.lower();
  EXPECT_TRUE(validate(program).empty());
  Found found;
  for (const Block& block : program.blocks) {
    if (block.name != "layer.forward" && block.name != "layer.backward") continue;
    for (const Op& op : block.ops) {
      if (op.name.find(part) == std::string::npos) continue;
      const auto& work = std::get<MemoryWork>(op.work);
      ++found.ops;
      found.read += work.read.value();
      found.written += work.written.value();
    }
  }
  return found;
}

// 64 tokens x 4 experts on a rank, 64 elements of 2 bytes each.
constexpr double kRows = 64.0 * 4.0 * 64.0 * 2.0;

TEST(ExpertOps, ReceivedRowsAreSortedOnceEachWay) {
  const Found found = find_ops(expert_case(), ".sort");
  EXPECT_EQ(found.ops, 4);  // to the experts and back, forward and backward
  EXPECT_EQ(found.read, 4.0 * kRows);
  EXPECT_EQ(found.written, 4.0 * kRows);
}

TEST(ExpertOps, NothingIsSortedWhereOneExpertOrTheDispatcherHasThemInOrder) {
  LoweringCase made = expert_case();
  made.stack.communication.sends_tokens_once_per_node = true;
  EXPECT_EQ(find_ops(made, ".sort").ops, 0);
  made = expert_case();
  made.plan.dp = made.plan.ep = 16;  // one expert a rank
  made.plan.global_batch = 16;
  EXPECT_EQ(find_ops(made, ".sort").ops, 0);
  made = expert_case();
  made.plan.ep = 1;  // nothing travels
  EXPECT_EQ(find_ops(made, ".sort").ops, 0);
}

TEST(ExpertOps, BiasesAndLimitsAreKernelsOfTheirOwnOnlyWhereTheStackDoesNotFuseThem) {
  LoweringCase made = expert_case();
  made.stack.fusion.expert_bias = true;
  EXPECT_EQ(find_ops(made, "experts.bias").ops + find_ops(made, "experts.limit").ops, 0);
  made.stack.fusion.expert_bias = false;
  EXPECT_EQ(find_ops(made, "experts.bias").ops, 2);
  EXPECT_EQ(find_ops(made, "experts.limit").ops, 2);
  made.model.mlp.bias = false;
  EXPECT_EQ(find_ops(made, "experts.bias").ops, 0);
  made.model.mlp.clamped = false;
  EXPECT_EQ(find_ops(made, "experts.limit").ops, 0);
}

// Forward: product and sum each read and write the rows, and so does their concatenation.
TEST(ExpertOps, AnUnfusedBiasMovesTheRowsThreeTimesForward) {
  LoweringCase made = expert_case();
  made.stack.fusion.expert_bias = false;
  const Program program = made.lower();
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (op.name.find("experts.bias") == std::string::npos || op.phase != Phase::Forward) continue;
      const auto& work = std::get<MemoryWork>(op.work);
      EXPECT_EQ(work.read.value(), 3.0 * kRows);
      EXPECT_EQ(work.written.value(), 3.0 * kRows);
    }
  }
}

}  // namespace
}  // namespace shardwright
