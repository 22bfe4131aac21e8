// Our CUDA kernels run on the CPU (launch.cuh in this folder) with the ops that all backends run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/cuda/fused_attention.hpp"
#include "executor/kernels/cuda/fused_kernels.hpp"
#include "tests/executor/kernels/op_table.hpp"

namespace shardwright::executor {
namespace {

constexpr std::size_t kScratchFloats = std::size_t{1} << 18U;

[[noreturn]] void not_emulated() {
  throw std::logic_error("libraries are not emulated");
}

class EmulatedKernels final : public FusedKernels {
 public:
  // Allocates exactly the requested size, so that sanitizers see accesses beyond it.
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    void* memory = std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, &std::free};
  }
  std::size_t memory_used() const override { return 0; }
  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void linear(const LinearShape&, const void*, const void*, const void*, void*, Queue) override {
    not_emulated();
  }
  void linear_input_gradient(const LinearShape&, const void*, const void*, void*, Queue) override {
    not_emulated();
  }
  void linear_weight_gradient(const LinearShape&, const void*, const void*, void*, void*,
                              Queue) override {
    not_emulated();
  }
  void attention(const AttentionWork&, const void*, void*, void*, Queue) override {
    not_emulated();
  }
  void attention_backward(const AttentionWork&, const void*, const void*, const void*, const void*,
                          void*, Queue) override {
    not_emulated();
  }
  void zero(void* data, std::size_t bytes, Queue) override { std::memset(data, 0, bytes); }
  void copy(void* to, const void* from, std::size_t bytes, Queue) override {
    std::memcpy(to, from, bytes);
  }

  using FusedKernels::add_column_sums;

 protected:
  std::span<float> scratch(Queue) override { return scratch_; }

 private:
  std::vector<float> scratch_ = std::vector<float>(kScratchFloats);
};

class EmulatedOp : public testing::TestWithParam<OpCase> {};

TEST_P(EmulatedOp, AgreesWithTheCpuKernels) {
  EmulatedKernels kernels;
  OpBench bench(kernels);
  expect_same_results(GetParam(), bench);
}

std::vector<OpCase> own_kernels() {
  std::vector<OpCase> cases;
  for (const OpCase& op : op_table()) {
    if (!op.by_library) cases.push_back(op);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Ops, EmulatedOp, testing::ValuesIn(own_kernels()),
                         [](const auto& op) { return op.param.name; });

// The op table covers the longest rows; longer ones, which check_executable refuses, are not
// computed.
TEST(EmulatedNorm, RefusesLongerRows) {
  for (const std::int64_t width : {longest_norm_row(true) + 8, longest_norm_row(false) + 1}) {
    EmulatedKernels kernels;
    OpBench bench(kernels);
    void* row = bench.activations(std::vector<float>(static_cast<std::size_t>(width), 1.0F));
    EXPECT_THROW(kernels.norm({NormKind::RmsNorm, 1, width}, row, row, nullptr, row, nullptr),
                 CudaError);
  }
}

// In the backend these follow a product by cuBLASLt.
TEST(EmulatedColumnSums, AreAdded) {
  for (const std::int64_t width : {5, 40, 520}) {
    constexpr std::int64_t kRows = 700;
    EmulatedKernels kernels;
    OpBench bench(kernels);
    std::vector<float> matrix(static_cast<std::size_t>(kRows * width));
    std::vector<float> expected(static_cast<std::size_t>(width), 3.0F);
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      matrix[i] = static_cast<float>(i % 7) - 3.0F;
      expected[i % static_cast<std::size_t>(width)] += matrix[i];
    }
    void* sums = bench.states(std::vector<float>(static_cast<std::size_t>(width), 3.0F));
    kernels.add_column_sums(kRows, width, bench.activations(matrix), sums, nullptr);
    EXPECT_EQ(bench.read_states(sums, width), expected);
  }
}

// Only a GPU shows which engine of cuDNN runs them.
TEST(AttentionGraphs, AreAcceptedByCudnn) {
  for (const std::int64_t kv_heads : {4, 2, 1}) {
    for (const std::int64_t dim : {8, 64, 128}) {
      AttentionWork work;
      work.batch = 2;
      work.heads = 4;
      work.kv_heads = kv_heads;
      work.q_tokens = work.kv_tokens = 96;
      work.qk_head_dim = work.v_head_dim = dim;
      EXPECT_NO_THROW(attention_forward_graph(work)) << kv_heads << " " << dim;
      EXPECT_NO_THROW(attention_backward_graph(work)) << kv_heads << " " << dim;
    }
  }
}

// A transposed value in place of a matrix of another size.
TEST(AttentionGraphs, AreRefusedIfSizesDoNotFit) {
  CudnnGraph graph;
  const auto a = graph.buffer({{1, 1, 8, 16}, {128, 128, 16, 1}}, CUDNN_DATA_BFLOAT16);
  const auto b = graph.buffer({{1, 1, 32, 8}, {256, 256, 8, 1}}, CUDNN_DATA_BFLOAT16);
  const auto out = graph.buffer({{1, 1, 8, 8}, {64, 64, 8, 1}}, CUDNN_DATA_BFLOAT16);
  EXPECT_ANY_THROW(graph.matmul(a, b, out));
}

}  // namespace
}  // namespace shardwright::executor
