#include "executor/kernels/cuda/fused_attention.hpp"

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <limits>

#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {
namespace {

using Id = CudnnGraph::Id;
using Shape = CudnnGraph::Shape;

constexpr cudnnDataType_t kBf16 = CUDNN_DATA_BFLOAT16;

// Sizes are [batch, heads, tokens, elements of a head].
struct AttentionShapes {
  std::int64_t batch, heads, kv_heads, tokens, qk_dim, v_dim, row;

  explicit AttentionShapes(const AttentionWork& work)
      : batch(work.batch),
        heads(work.heads),
        kv_heads(work.kv_heads),
        tokens(work.q_tokens),
        qk_dim(work.qk_head_dim),
        v_dim(work.v_head_dim),
        row((heads + kv_heads) * qk_dim + kv_heads * v_dim) {}

  // Shapes of heads that lie next to each other in rows of `row` elements.
  Shape in_rows(std::int64_t count, std::int64_t dim) const {
    return {{batch, count, tokens, dim}, {tokens * row, dim, row, 1}};
  }
  Shape query() const { return in_rows(heads, qk_dim); }
  Shape key() const { return in_rows(kv_heads, qk_dim); }
  Shape value() const { return in_rows(kv_heads, v_dim); }
  Shape out() const {
    return {{batch, heads, tokens, v_dim}, {tokens * heads * v_dim, v_dim, heads * v_dim, 1}};
  }
  // Shapes of one value per query, and one per pair of tokens.
  Shape of_queries() const { return {{batch, heads, tokens, 1}, {heads * tokens, tokens, 1, 1}}; }
  Shape scores() const {
    return {{batch, heads, tokens, tokens}, {heads * tokens * tokens, tokens * tokens, tokens, 1}};
  }
  // Shape of a tensor that stores one head after another.
  Shape by_head(std::int64_t dim) const {
    return {{batch, heads, tokens, dim}, {heads * tokens * dim, tokens * dim, dim, 1}};
  }
};

Shape transposed(Shape shape) {
  std::swap(shape.sizes[2], shape.sizes[3]);
  std::swap(shape.strides[2], shape.strides[3]);
  return shape;
}

float scale_of(const AttentionWork& work) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(work.qk_head_dim)));
}

// Masks the keys after each query with minus infinity.
Id mask(CudnnGraph& graph, const Shape& scores, Id x) {
  const Id row = graph.virtual_tensor(scores, CUDNN_DATA_INT32);
  const Id column = graph.virtual_tensor(scores, CUDNN_DATA_INT32);
  const Id seen = graph.virtual_tensor(scores, CUDNN_DATA_BOOLEAN);
  const Id masked = graph.virtual_tensor(scores);
  const Id nothing = graph.scalar(-std::numeric_limits<float>::infinity());
  graph.index(x, 2, row);
  graph.index(x, 3, column);
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, seen, CUDNN_DATA_BOOLEAN);
  graph.select(x, nothing, seen, masked);
  return masked;
}

// Returns the probabilities; writes the log of the sum of exponentials to `statistics`.
Id softmax(CudnnGraph& graph, const AttentionShapes& shapes, Id scores, Id statistics) {
  const Id most = graph.virtual_tensor(shapes.of_queries()),
           sum = graph.virtual_tensor(shapes.of_queries());
  const Id log = graph.virtual_tensor(shapes.of_queries());
  const Id less = graph.virtual_tensor(shapes.scores()),
           exponentials = graph.virtual_tensor(shapes.scores());
  const Id probabilities = graph.virtual_tensor(shapes.scores(), kBf16);
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  graph.pointwise(CUDNN_POINTWISE_SUB, scores, most, less);
  graph.pointwise(CUDNN_POINTWISE_EXP, less, exponentials);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  graph.pointwise(CUDNN_POINTWISE_LOG, sum, log);
  graph.pointwise(CUDNN_POINTWISE_ADD, most, log, statistics);
  graph.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
  return probabilities;
}

// out = transpose(x) y, summed over the heads that share a key/value head.
void transposed_product(CudnnGraph& graph, const AttentionShapes& shapes, Id x, Id y,
                        std::int64_t dim, Id out) {
  const Id turned = graph.virtual_tensor(transposed(shapes.scores()), kBf16);
  graph.reshape(x, turned);
  if (shapes.heads == shapes.kv_heads) return graph.matmul(turned, y, out);
  const Id all_heads = graph.virtual_tensor(shapes.by_head(dim), kBf16);
  graph.matmul(turned, y, all_heads);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, all_heads, out);
}

}  // namespace

std::unique_ptr<AttentionForwardGraph> attention_forward_graph(const AttentionWork& work) {
  const AttentionShapes shapes(work);
  auto made = std::make_unique<AttentionForwardGraph>();
  CudnnGraph& graph = made->graph;
  made->query = graph.buffer(shapes.query(), kBf16);
  made->key = graph.buffer(transposed(shapes.key()), kBf16);
  made->value = graph.buffer(shapes.value(), kBf16);
  made->out = graph.buffer(shapes.out(), kBf16);
  made->statistics = graph.buffer(shapes.of_queries(), CUDNN_DATA_FLOAT);
  const Id scale = graph.scalar(scale_of(work));
  const Id products = graph.virtual_tensor(shapes.scores()),
           scores = graph.virtual_tensor(shapes.scores());
  graph.matmul(made->query, made->key, products);
  graph.pointwise(CUDNN_POINTWISE_MUL, products, scale, scores);
  const Id masked = mask(graph, shapes.scores(), scores);
  graph.matmul(softmax(graph, shapes, masked, made->statistics), made->value, made->out);
  return made;
}

namespace {

// Writes the row sums of dout * out, which the gradient of the scores subtracts.
void add_sums(AttentionBackwardGraph& made, const AttentionShapes& shapes) {
  CudnnGraph& graph = made.graph;
  Shape products = shapes.by_head(shapes.v_dim);
  products.strides[2] = shapes.heads * shapes.v_dim;
  const Id product = graph.virtual_tensor(products),
           sum = graph.virtual_tensor(shapes.of_queries());
  graph.pointwise(CUDNN_POINTWISE_MUL, made.dout, made.out, product);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, product, sum);
  graph.pointwise(CUDNN_POINTWISE_MUL, sum, graph.scalar(1.0F), made.sums);
}

Id recomputed_probabilities(AttentionBackwardGraph& made, const AttentionShapes& shapes, Id scale) {
  CudnnGraph& graph = made.graph;
  const Id products = graph.virtual_tensor(shapes.scores()),
           scores = graph.virtual_tensor(shapes.scores());
  const Id less = graph.virtual_tensor(shapes.scores()),
           probabilities = graph.virtual_tensor(shapes.scores());
  graph.matmul(made.query, made.key, products);
  graph.pointwise(CUDNN_POINTWISE_MUL, products, scale, scores);
  graph.pointwise(CUDNN_POINTWISE_SUB, scores, made.statistics, less);
  graph.pointwise(CUDNN_POINTWISE_EXP, mask(graph, shapes.scores(), less), probabilities);
  return probabilities;
}

Id scores_gradient(AttentionBackwardGraph& made, const AttentionShapes& shapes, Id probabilities,
                   Id scale) {
  CudnnGraph& graph = made.graph;
  const Id products = graph.virtual_tensor(shapes.scores()),
           less = graph.virtual_tensor(shapes.scores());
  const Id softmax_gradient = graph.virtual_tensor(shapes.scores());
  const Id gradient = graph.virtual_tensor(shapes.scores());
  graph.matmul(made.dout, made.value, products);
  graph.pointwise(CUDNN_POINTWISE_SUB, products, made.sums, less);
  graph.pointwise(CUDNN_POINTWISE_MUL, less, probabilities, softmax_gradient);
  graph.pointwise(CUDNN_POINTWISE_MUL, softmax_gradient, scale, gradient);
  return gradient;
}

}  // namespace

std::unique_ptr<AttentionBackwardGraph> attention_backward_graph(const AttentionWork& work) {
  const AttentionShapes shapes(work);
  auto made = std::make_unique<AttentionBackwardGraph>();
  CudnnGraph& graph = made->graph;
  made->query = graph.buffer(shapes.query(), kBf16);
  made->key = graph.buffer(transposed(shapes.key()), kBf16);
  made->value = graph.buffer(transposed(shapes.value()), kBf16);
  made->out = graph.buffer(shapes.out(), kBf16);
  made->dout = graph.buffer(shapes.out(), kBf16);
  made->statistics = graph.buffer(shapes.of_queries(), CUDNN_DATA_FLOAT);
  made->dquery = graph.buffer(shapes.query(), kBf16);
  made->dkey = graph.buffer(shapes.key(), kBf16);
  made->dvalue = graph.buffer(shapes.value(), kBf16);
  made->sums = graph.buffer(shapes.of_queries(), CUDNN_DATA_FLOAT);
  made->dquery_sums = graph.buffer(shapes.by_head(shapes.qk_dim), CUDNN_DATA_FLOAT);
  const Id scale = graph.scalar(scale_of(work));
  add_sums(*made, shapes);
  const Id probabilities = recomputed_probabilities(*made, shapes, scale);
  transposed_product(graph, shapes, probabilities, made->dout, shapes.v_dim, made->dvalue);
  const Id gradient = scores_gradient(*made, shapes, probabilities, scale);
  transposed_product(graph, shapes, gradient, made->query, shapes.qk_dim, made->dkey);
  const Id keys = graph.virtual_tensor(shapes.key());
  graph.reshape(made->key, keys);
  graph.matmul(gradient, keys, made->dquery_sums);
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, made->dquery_sums, made->dquery);
  return made;
}

namespace {

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

template <class Graph, class Make>
Graph& FusedAttention::planned(Plans<Graph>& known, const AttentionWork& work, Make make) {
  std::unique_ptr<Graph>& graph = known[{work.batch, work.heads, work.kv_heads, work.q_tokens,
                                         work.qk_head_dim, work.v_head_dim}];
  if (graph) return *graph;
  if (work.q_tokens != work.kv_tokens)
    throw CudaError("attention", "queries and keys of different lengths");
  std::unique_ptr<Graph> made = make(work);
  made->graph.plan(handle_);
  graph = std::move(made);
  return *graph;
}

std::size_t FusedAttention::workspace_bytes(const AttentionWork& work) {
  if (!work.backward)
    return planned(forward_, work, attention_forward_graph).graph.workspace_bytes();
  const BackwardMemory memory(work);
  return memory.sums + memory.gradients +
         planned(backward_, work, attention_backward_graph).graph.workspace_bytes();
}

void FusedAttention::forward(const AttentionWork& work, const void* qkv, void* out,
                             void* statistics, const Workspace& workspace, Queue queue) {
  const auto& with = planned(forward_, work, attention_forward_graph);
  const RowParts in(work, qkv);
  with.graph.run(handle_,
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
  const auto& with = planned(backward_, work, attention_backward_graph);
  const auto [sums, gradients] = BackwardMemory(work);
  auto* memory =
      static_cast<std::byte*>(workspace(sums + gradients + with.graph.workspace_bytes()));
  // The engines add to the queries' gradients, and cuDNN does not document whether they clear them
  // first.
  check_cuda(cudaMemsetAsync(memory + sums, 0, gradients, stream_of(queue)), "cudaMemset");
  const RowParts in(work, qkv), gradient(work, dqkv);
  with.graph.run(handle_,
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
