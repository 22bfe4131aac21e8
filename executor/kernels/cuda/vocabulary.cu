// The token embedding and the cross-entropy, each over the part of the vocabulary that a rank
// holds.
#include <cmath>

#include "executor/kernels/cuda/device_code.cuh"
#include "executor/kernels/cuda/fused_kernels.hpp"

namespace shardwright::executor {
namespace {

// Elements per pack of an embedding row: 8 bytes, so that a block covers 1,024 columns.
constexpr int kNarrow = 4;
constexpr unsigned kWarps = kElementThreads / kWarp;
constexpr unsigned kRowThreads = 512, kSumThreads = 1024;

// Returns the row of the shard for a token, or -1 if another rank holds it.
__device__ inline std::int64_t row_of(const VocabularyShard& shard, std::int32_t token) {
  const std::int64_t index = token - shard.first;
  return index >= 0 && index < shard.count ? index : -1;
}

template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    embedding_kernel(EmbeddingShape shape, std::int64_t count, const std::int32_t* tokens,
                     const Bf16* table, const Bf16* positions, Bf16* out) {
  const std::int64_t packs = shape.width / kVec, items = count * packs;
  for (std::int64_t item = grid_index(); item < items; item += grid_threads()) {
    const std::int64_t token = quotient(item, packs), column = (item - token * packs) * kVec;
    const std::int64_t held = row_of(shape.vocabulary, tokens[token]);
    float values[kVec] = {}, shift[kVec] = {};
    if (held >= 0) load<kVec>(table + held * shape.width + column, values);
    if (positions != nullptr)
      load<kVec>(positions + token % shape.seq_len * shape.width + column, shift);
#pragma unroll
    for (int i = 0; i < kVec; ++i) values[i] += shift[i];
    store<kVec>(out + token * shape.width + column, values);
  }
}

// Lists in order the places, among the block's tokens from `base` on, that hold `token`; returns
// their number. All threads call it and synchronise before the next call.
__device__ inline int list_places(std::int64_t base, std::int64_t count, const std::int32_t* tokens,
                                  std::int32_t token, std::int64_t* places) {
  __shared__ int counts[kWarps];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t place = base + threadIdx.x;
  const bool same = place < count && tokens[place] == token;
  const unsigned lanes = __ballot_sync(kAllLanes, same);
  if (lane == 0) counts[warp] = __popc(lanes);
  __syncthreads();
  int before = __popc(lanes & ((1U << lane) - 1U)), all = 0;
  for (unsigned other = 0; other < kWarps; ++other) {
    if (other < warp) before += counts[other];
    all += counts[other];
  }
  if (same) places[before] = place;
  __syncthreads();
  return all;
}

// The block of a token's first occurrence adds the gradients of all its occurrences in order.
template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    embedding_backward_kernel(EmbeddingShape shape, std::int64_t count, const std::int32_t* tokens,
                              const Bf16* gradient, float* dtable) {
  __shared__ std::int64_t places[kElementThreads];
  const std::int64_t own = blockIdx.x;
  const std::int32_t token = tokens[own];
  const std::int64_t held = row_of(shape.vocabulary, token);
  if (held < 0) return;
  for (std::int64_t base = 0; base < own; base += blockDim.x) {
    const std::int64_t place = base + threadIdx.x;
    if (__syncthreads_or(place < own && tokens[place] == token) != 0) return;
  }
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kVec;
  float sums[kVec] = {};
  for (std::int64_t base = own; base < count; base += blockDim.x) {
    const int found = list_places(base, count, tokens, token, places);
    if (column < shape.width) {
#pragma unroll 4
      for (int i = 0; i < found; ++i) {
        float values[kVec];
        load<kVec>(gradient + places[i] * shape.width + column, values);
#pragma unroll
        for (int v = 0; v < kVec; ++v) sums[v] += values[v];
      }
    }
    __syncthreads();
  }
  if (column >= shape.width) return;
#pragma unroll
  for (int v = 0; v < kVec; ++v) dtable[held * shape.width + column + v] += sums[v];
}

// One block per position.
template <int kVec>
__global__ void __launch_bounds__(kElementThreads)
    position_backward_kernel(EmbeddingShape shape, std::int64_t count, const Bf16* gradient,
                             float* dpositions) {
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kVec;
  if (column >= shape.width) return;
  const std::int64_t position = blockIdx.x;
  float sums[kVec] = {};
  for (std::int64_t token = position; token < count; token += shape.seq_len) {
    float values[kVec];
    load<kVec>(gradient + token * shape.width + column, values);
#pragma unroll
    for (int v = 0; v < kVec; ++v) sums[v] += values[v];
  }
#pragma unroll
  for (int v = 0; v < kVec; ++v) dpositions[position * shape.width + column + v] += sums[v];
}

template <int kVec>
__global__ void __launch_bounds__(kRowThreads)
    loss_statistics_kernel(LossShape shape, const std::int32_t* targets, const Bf16* logits,
                           float* statistics) {
  const std::int64_t row = blockIdx.x, width = shape.vocabulary.rows;
  const std::int64_t count = shape.vocabulary.count;
  const Bf16* here = logits + row * width;
  // `sum` adds exponentials relative to `most`.
  float most = -INFINITY, sum = 0.0F;
  for (std::int64_t column = threadIdx.x * kVec; column < count; column += blockDim.x * kVec) {
    float values[kVec], largest = -INFINITY;
    load<kVec>(here + column, values);
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      if (column + i >= count) values[i] = -INFINITY;
      largest = fmaxf(largest, values[i]);
    }
    if (largest > most) {
      sum *= __expf(most - largest);
      most = largest;
    }
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum += __expf(values[i] - most);
  }
  const float all_most = block_max(most);
  const float all_sum = block_sum(most == -INFINITY ? 0.0F : sum * __expf(most - all_most));
  if (threadIdx.x != 0) return;
  const std::int64_t held = row_of(shape.vocabulary, targets[row]);
  statistics[row] = all_most;
  statistics[shape.rows + row] = all_sum;
  statistics[2 * shape.rows + row] = held >= 0 ? __bfloat162float(here[held]) : 0.0F;
}

__global__ void __launch_bounds__(kElementThreads)
    loss_rescale_kernel(std::int64_t rows, const float* own_maxima, float* statistics) {
  for (std::int64_t row = grid_index(); row < rows; row += grid_threads())
    statistics[rows + row] *= expf(own_maxima[row] - statistics[row]);
}

__global__ void __launch_bounds__(kSumThreads)
    loss_sum_kernel(std::int64_t rows, const float* statistics, double* loss) {
  double sum = 0.0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    sum += static_cast<double>(statistics[row] + logf(statistics[rows + row])) -
           static_cast<double>(statistics[2 * rows + row]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss += sum;
}

template <int kVec>
__global__ void __launch_bounds__(kRowThreads)
    loss_probabilities_kernel(LossShape shape, const Bf16* logits, const float* statistics,
                              Bf16* probabilities) {
  const std::int64_t row = blockIdx.x, width = shape.vocabulary.rows;
  const float log_sum = statistics[row] + logf(statistics[shape.rows + row]);
  for (std::int64_t column = threadIdx.x * kVec; column < width; column += blockDim.x * kVec) {
    float values[kVec];
    load<kVec>(logits + row * width + column, values);
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      values[i] = column + i < shape.vocabulary.count ? __expf(values[i] - log_sum) : 0.0F;
    store<kVec>(probabilities + row * width + column, values);
  }
}

template <int kVec>
__global__ void __launch_bounds__(kRowThreads)
    loss_backward_kernel(LossShape shape, const std::int32_t* targets, float scale,
                         const Bf16* probabilities, Bf16* dlogits) {
  const std::int64_t row = blockIdx.x, width = shape.vocabulary.rows;
  const std::int64_t held = row_of(shape.vocabulary, targets[row]);
  for (std::int64_t column = threadIdx.x * kVec; column < width; column += blockDim.x * kVec) {
    float values[kVec];
    load<kVec>(probabilities + row * width + column, values);
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      values[i] = (values[i] - (column + i == held ? 1.0F : 0.0F)) * scale;
    store<kVec>(dlogits + row * width + column, values);
  }
}

dim3 blocks(std::int64_t count) {
  return dim3(static_cast<unsigned>(count));
}

// Returns a grid whose blocks cover kElementThreads packs of a row each.
dim3 blocks_by_columns(std::int64_t count, std::int64_t width, int vec) {
  return dim3(
      static_cast<unsigned>(count),
      static_cast<unsigned>(divide_up(
          width, static_cast<std::int64_t>(vec) * static_cast<std::int64_t>(kElementThreads))));
}

}  // namespace

void FusedKernels::embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                             const void* table, const void* positions, void* out, Queue queue) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const bool wide = is_wide(shape.width, table, positions, out);
  launch(wide ? embedding_kernel<kWide> : embedding_kernel<1>,
         grid_over(count * shape.width / (wide ? kWide : 1)), kElementThreads, queue, shape, count,
         tokens.data(), as_bf16(table), as_bf16(positions), as_bf16(out));
}

void FusedKernels::embedding_backward(const EmbeddingShape& shape,
                                      std::span<const std::int32_t> tokens, const void* gradient,
                                      void* dtable, void* dpositions, Queue queue) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const bool wide = is_wide(shape.width, gradient);
  const int vec = wide ? kNarrow : 1;
  launch(wide ? embedding_backward_kernel<kNarrow> : embedding_backward_kernel<1>,
         blocks_by_columns(count, shape.width, vec), kElementThreads, queue, shape, count,
         tokens.data(), as_bf16(gradient), static_cast<float*>(dtable));
  if (dpositions == nullptr) return;
  launch(wide ? position_backward_kernel<kNarrow> : position_backward_kernel<1>,
         blocks_by_columns(std::min(shape.seq_len, count), shape.width, vec), kElementThreads,
         queue, shape, count, as_bf16(gradient), static_cast<float*>(dpositions));
}

void FusedKernels::loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                                   const void* logits, void* statistics, Queue queue) {
  const bool wide = is_wide(shape.vocabulary.rows, logits);
  launch(wide ? loss_statistics_kernel<kWide> : loss_statistics_kernel<1>, blocks(shape.rows),
         kRowThreads, queue, shape, targets.data(), as_bf16(logits),
         static_cast<float*>(statistics));
}

void FusedKernels::loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                                Queue queue) {
  launch(loss_rescale_kernel, grid_over(rows), kElementThreads, queue, rows,
         static_cast<const float*>(own_maxima), static_cast<float*>(statistics));
}

void FusedKernels::loss_probabilities(const LossShape& shape, const void* logits,
                                      const void* statistics, void* probabilities, double* loss,
                                      Queue queue) {
  const auto* table = static_cast<const float*>(statistics);
  const bool wide = is_wide(shape.vocabulary.rows, logits, probabilities);
  launch(wide ? loss_probabilities_kernel<kWide> : loss_probabilities_kernel<1>, blocks(shape.rows),
         kRowThreads, queue, shape, as_bf16(logits), table, as_bf16(probabilities));
  launch(loss_sum_kernel, blocks(1), kSumThreads, queue, shape.rows, table, loss);
}

void FusedKernels::loss_backward(const LossShape& shape, std::span<const std::int32_t> targets,
                                 float scale, const void* probabilities, void* dlogits,
                                 Queue queue) {
  const bool wide = is_wide(shape.vocabulary.rows, probabilities, dlogits);
  launch(wide ? loss_backward_kernel<kWide> : loss_backward_kernel<1>, blocks(shape.rows),
         kRowThreads, queue, shape, targets.data(), scale, as_bf16(probabilities),
         as_bf16(dlogits));
}

}  // namespace shardwright::executor
