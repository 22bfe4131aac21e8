// The ops of the CUDA backend against the CPU kernels. Skipped without a GPU.
#include <gtest/gtest.h>

#include "executor/launch/rank_backend.hpp"
#include "tests/executor/kernels/op_table.hpp"

namespace shardwright::executor {
namespace {

class CudaOp : public testing::TestWithParam<OpCase> {};

TEST_P(CudaOp, AgreesWithTheCpuKernels) {
  std::string why;
  if (visible_gpus(why) == 0) GTEST_SKIP() << "no CUDA device: " << why;
  static const std::unique_ptr<RankBackend> backend = open_cuda(nullptr, LaunchPlace{}, {});
  OpBench bench(backend->kernels());
  expect_same_results(GetParam(), bench);
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaOp, testing::ValuesIn(op_table()),
                         [](const auto& op) { return op.param.name; });

}  // namespace
}  // namespace shardwright::executor
