#include "executor/kernels/cuda/fused_attention.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <map>
#include <tuple>

#include "executor/kernels/cuda/attention_graphs.hpp"
#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {
namespace {

// Identifies the graph of a shape.
using Key =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

Key key_of(const AttentionWork& work) {
  return {work.batch, work.heads, work.kv_heads, work.q_tokens, work.qk_head_dim, work.v_head_dim};
}

// Pointers to the first queries, keys and values.
struct RowParts {
  void *query, *key, *value;

  RowParts(const AttentionWork& work, const void* qkv) {
    auto* start = static_cast<__nv_bfloat16*>(const_cast<void*>(qkv));
    query = start;
    key = start + work.heads * work.qk_head_dim;
    value = start + (work.heads + work.kv_heads) * work.qk_head_dim;
  }
};

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The parts of a backward call's workspace before cuDNN's own: row sums and gradients of the
// queries, both fp32.
struct BackwardMemory {
  std::size_t sums, gradients;

  explicit BackwardMemory(const AttentionWork& work) {
    const auto queries = static_cast<std::size_t>(work.batch * work.heads * work.q_tokens);
    sums = aligned(queries * sizeof(float));
    gradients = aligned(queries * static_cast<std::size_t>(work.qk_head_dim) * sizeof(float));
  }
};

}  // namespace

struct FusedAttention::Implementation {
  CudnnHandle handle;
  std::map<Key, std::unique_ptr<AttentionForwardGraph>> forward;
  std::map<Key, std::unique_ptr<AttentionBackwardGraph>> backward;

  template <class Graph, class Make>
  Graph& planned(std::map<Key, std::unique_ptr<Graph>>& known, const AttentionWork& work,
                 Make make) {
    std::unique_ptr<Graph>& graph = known[key_of(work)];
    if (graph) return *graph;
    if (work.q_tokens != work.kv_tokens)
      throw CudaError("attention", "queries and keys of different lengths");
    std::unique_ptr<Graph> made = make(work);
    made->graph.plan(handle);
    graph = std::move(made);
    return *graph;
  }
};

FusedAttention::FusedAttention() : implementation_(std::make_unique<Implementation>()) {}
FusedAttention::~FusedAttention() = default;

std::size_t FusedAttention::workspace_bytes(const AttentionWork& work) {
  Implementation& with = *implementation_;
  if (!work.backward)
    return with.planned(with.forward, work, attention_forward_graph).graph.workspace_bytes();
  const BackwardMemory memory(work);
  return memory.sums + memory.gradients +
         with.planned(with.backward, work, attention_backward_graph).graph.workspace_bytes();
}

void FusedAttention::forward(const AttentionWork& work, const void* qkv, void* out,
                             void* statistics, const Workspace& workspace, Queue queue) {
  const auto& with =
      implementation_->planned(implementation_->forward, work, attention_forward_graph);
  const RowParts in(work, qkv);
  with.graph.run(implementation_->handle,
                 {{with.query, in.query},
                  {with.key, in.key},
                  {with.value, in.value},
                  {with.out, out},
                  {with.statistics, statistics}},
                 workspace(with.graph.workspace_bytes()), queue);
}

void FusedAttention::backward(const AttentionWork& work, const void* qkv, const void* out,
                              const void* statistics, const void* dout, void* dqkv,
                              const Workspace& workspace, Queue queue) {
  const auto& with =
      implementation_->planned(implementation_->backward, work, attention_backward_graph);
  const auto [sums, gradients] = BackwardMemory(work);
  auto* memory =
      static_cast<std::byte*>(workspace(sums + gradients + with.graph.workspace_bytes()));
  // The engines add to the queries' gradients, and cuDNN does not document whether they clear them
  // first.
  check_cuda(cudaMemsetAsync(memory + sums, 0, gradients, stream_of(queue)), "cudaMemset");
  const RowParts in(work, qkv), gradient(work, dqkv);
  with.graph.run(implementation_->handle,
                 {{with.query, in.query},
                  {with.key, in.key},
                  {with.value, in.value},
                  {with.out, const_cast<void*>(out)},
                  {with.statistics, const_cast<void*>(statistics)},
                  {with.dout, const_cast<void*>(dout)},
                  {with.dquery, gradient.query},
                  {with.dkey, gradient.key},
                  {with.dvalue, gradient.value},
                  {with.sums, memory},
                  {with.dquery_sums, memory + sums}},
                 memory + sums + gradients, queue);
}

}  // namespace shardwright::executor
