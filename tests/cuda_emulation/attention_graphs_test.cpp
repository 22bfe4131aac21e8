// cuDNN accepts the operations of attention's graphs. Only a GPU shows which engine runs them.
#include "executor/kernels/cuda/attention_graphs.hpp"

#include <gtest/gtest.h>

namespace shardwright::executor {
namespace {

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
