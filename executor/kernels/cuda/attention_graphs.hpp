// Causal attention as graphs that cuDNN recognises and fuses.
//
// Operations, order and intermediate formats are those to which NVIDIA's cudnn-frontend 1
// (github.com/NVIDIA/cudnn-frontend) lowers `sdpa` and `sdpa_backward` with a causal mask for cuDNN
// 9. They have not run on a GPU. Later releases of the frontend (1.19.1 is public) may lower them
// differently.
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
  // fp32 buffers of the caller: row sums of dout * out [batch, heads, tokens], and the gradient of
  // the queries [batch, heads, tokens, head_dim].
  CudnnGraph::Id sums, dquery_sums;
};

// Return graphs that are not planned yet. Throw CudaError.
std::unique_ptr<AttentionForwardGraph> attention_forward_graph(const AttentionWork& work);
std::unique_ptr<AttentionBackwardGraph> attention_backward_graph(const AttentionWork& work);

}  // namespace shardwright::executor
