// Causal attention as graphs for cuDNN, which recognises and fuses them.
//
// The operations, their order and the formats of what lies between them are those that NVIDIA's
// cudnn-frontend 1 (github.com/NVIDIA/cudnn-frontend) lowers its `sdpa` and `sdpa_backward` with a
// causal mask to, for cuDNN 9. They have not run on a GPU: a later release of the frontend (1.19.1
// is public) may lower them in another way.
#pragma once

#include <memory>

#include "core/op/op.hpp"
#include "executor/kernels/cuda/cudnn_graph.hpp"

namespace shardwright::executor {

struct AttentionForwardGraph {
  CudnnGraph graph;
  CudnnGraph::Id query, key, value, out, statistics;
};

struct AttentionBackwardGraph {
  CudnnGraph graph;
  CudnnGraph::Id query, key, value, out, statistics, dout, dquery, dkey, dvalue;
  // fp32 memory of the caller's: sums of dout * out [batch, heads, tokens], and the gradient of the
  // queries [batch, heads, tokens, head_dim].
  CudnnGraph::Id sums, dquery_sums;
};

// Not planned yet. Throw CudaError.
std::unique_ptr<AttentionForwardGraph> attention_forward_graph(const AttentionWork& work);
std::unique_ptr<AttentionBackwardGraph> attention_backward_graph(const AttentionWork& work);

}  // namespace shardwright::executor
