#include "executor/kernels/cuda/column_sums.cuh"
#include "executor/kernels/cuda/fused_kernels.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kRowsOfPart = 256;

// Writes to parts[blockIdx.y, c] the sum of column c over every gridDim.y-th group of rows.
template <int kVec>
__global__ void __launch_bounds__(kColumnLanes* kRowLanes)
    column_sums_kernel(std::int64_t rows, std::int64_t width, const Bf16* matrix, float* parts) {
  __shared__ float lanes[kRowLanes][kColumnLanes * kVec];
  const unsigned lane = threadIdx.x % kColumnLanes, row_lane = threadIdx.x / kColumnLanes;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * kColumnLanes + lane) * kVec;
  float sums[kVec] = {};
  if (column < width) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * kRowLanes;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kRowLanes + row_lane;
         row < rows; row += step) {
      float values[kVec];
      load<kVec>(matrix + row * width + column, values);
#pragma unroll
      for (int i = 0; i < kVec; ++i) sums[i] += values[i];
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) lanes[row_lane][lane * kVec + i] = sums[i];
  __syncthreads();
  if (row_lane != 0 || column >= width) return;
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    for (unsigned other = 1; other < kRowLanes; ++other) sums[i] += lanes[other][lane * kVec + i];
    parts[static_cast<std::int64_t>(blockIdx.y) * width + column + i] = sums[i];
  }
}

}  // namespace

void FusedKernels::add_column_sums(std::int64_t rows, std::int64_t width, const void* matrix,
                                   void* sums, Queue queue) {
  const std::span<float> memory = scratch(queue);
  const std::int64_t parts = parts_that_fit(divide_up(rows, kRowsOfPart), width, memory);
  const bool wide = is_wide(width, matrix);
  const std::int64_t columns = divide_up(width, kColumnLanes * (wide ? kWide : 1));
  const dim3 grid(static_cast<unsigned>(columns), static_cast<unsigned>(parts));
  launch(wide ? column_sums_kernel<kWide> : column_sums_kernel<1>, grid, kColumnLanes * kRowLanes,
         queue, rows, width, as_bf16(matrix), memory.data());
  add_parts(parts, width, memory.data(), sums, queue);
}

}  // namespace shardwright::executor
