// Causal attention forward and backward, by cuDNN, as graphs that it recognises and fuses.
//
// Operations, order and intermediate formats are those to which NVIDIA's cudnn-frontend 1
// (github.com/NVIDIA/cudnn-frontend) lowers `sdpa` and `sdpa_backward` with a causal mask for cuDNN
// 9. They ran with cuDNN 9.19 on an H200. Later releases of the frontend (1.19.1 is public) may
// lower them differently.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/op/op.hpp"
#include "executor/kernels/cuda/cudnn_graph.hpp"
#include "executor/kernels/element.hpp"

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

// Caches cuDNN's plan of each shape after its first call. Throws CudaError: head widths must be a
// multiple of 8 and at most what cuDNN has kernels for (128 everywhere; up to 256 on some GPUs).
class FusedAttention {
 public:
  // Returns memory for the duration of a call.
  using Workspace = std::function<void*(std::size_t bytes)>;

  // Returns the size of the workspace of a forward or backward call, and plans it.
  std::size_t workspace_bytes(const AttentionWork& work);

  // See Kernels.
  void forward(const AttentionWork& work, const void* qkv, void* out, void* statistics,
               const Workspace& workspace, Queue queue);
  void backward(const AttentionWork& work, const void* qkv, const void* out, const void* statistics,
                const void* dout, void* dqkv, const Workspace& workspace, Queue queue);

 private:
  // Graphs by the sizes of the work.
  template <class Graph>
  using Plans = std::map<std::array<std::int64_t, 6>, std::unique_ptr<Graph>>;

  template <class Graph, class Make>
  Graph& planned(Plans<Graph>& known, const AttentionWork& work, Make make);

  CudnnHandle handle_;
  Plans<AttentionForwardGraph> forward_;
  Plans<AttentionBackwardGraph> backward_;
};

}  // namespace shardwright::executor
