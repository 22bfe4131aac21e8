// Kernels of their own handle the tokens of experts, by stack and by model.
#include <gtest/gtest.h>

#include <variant>

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

LoweringCase cast_case(Fp8Recipe recipe) {
  LoweringCase made = expert_case();
  made.plan.precision = Precision::Fp8;
  made.stack.fusion.fp8_recipe = recipe;
  return made;
}

// Four experts of a rank, six products: each expert's operands are cast apart, and the scales of
// both operands of each product are put into the order of the matrix units, a byte for 32 elements.
TEST(ExpertOps, ScalesOfMxfp8AreKernelsForEachExpertUnlessOneKernelComputesAll) {
  LoweringCase made = cast_case(Fp8Recipe::Mxfp8);
  int casts = 0, orders = 0;
  const Program program = made.lower();
  for (const Block& block : program.blocks) {
    if (block.name != "layer.forward" && block.name != "layer.backward") continue;
    for (const Op& op : block.ops) {
      if (op.kind != OpKind::Cast || op.name.find("experts.") == std::string::npos) continue;
      const bool order = op.name.find(".scales") != std::string::npos;
      EXPECT_EQ(std::get<MemoryWork>(op.work).kernels, order ? 8 : 4) << op.name;
      EXPECT_EQ(op.further_launches, 0);
      ++(order ? orders : casts);
    }
  }
  EXPECT_EQ(casts, 4);
  EXPECT_EQ(orders, 6);
  made.stack.fusion.grouped_gemm = true;
  EXPECT_EQ(find_ops(made, ".scales").ops, 0);
  EXPECT_EQ(find_ops(cast_case(Fp8Recipe::Delayed), ".scales").ops, 0);
}

// The epilogue of a GEMM has the activation function's operands in registers.
TEST(ExpertOps, AKernelForTheWholeExpertHidesItsActivationAndTheirCasts) {
  LoweringCase made = cast_case(Fp8Recipe::Mxfp8);
  made.stack.fusion.grouped_gemm = made.stack.fusion.grouped_mlp = true;
  for (const char* hidden : {"experts.activation", "experts.limit", "experts.down.input.cast",
                             "experts.up.gradient.cast"})
    EXPECT_EQ(find_ops(made, hidden).ops, 0) << hidden;
  EXPECT_EQ(find_ops(made, "experts.up.input.cast").ops, 1);
  EXPECT_EQ(find_ops(made, "experts.down.gradient.cast").ops, 1);
  made.plan.precision = Precision::Bf16;
  EXPECT_EQ(find_ops(made, "experts.activation").ops, 2);
}

}  // namespace
}  // namespace shardwright
