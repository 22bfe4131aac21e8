// The ops of the CPU in bf16 against those in fp32.
#include <gtest/gtest.h>

#include "executor/kernels/cpu/bf16_kernels.hpp"
#include "tests/executor/kernels/op_table.hpp"

namespace shardwright::executor {
namespace {

class Bf16Op : public testing::TestWithParam<OpCase> {};

TEST_P(Bf16Op, AgreesWithTheKernelsInFp32) {
  const auto kernels = make_bf16_cpu_kernels();
  OpBench bench(*kernels);
  expect_same_results(GetParam(), bench);
}

INSTANTIATE_TEST_SUITE_P(Ops, Bf16Op, testing::ValuesIn(op_table()),
                         [](const auto& op) { return op.param.name; });

}  // namespace
}  // namespace shardwright::executor
