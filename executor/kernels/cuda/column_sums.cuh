// Column sums in two steps: each block writes the sums of its rows, which are then added in order.
#pragma once

#include <span>

#include "executor/kernels/cuda/device_code.cuh"

namespace shardwright::executor {

// A block adds 32 columns (or packs of columns) with 8 threads each.
constexpr unsigned kColumnLanes = 32, kRowLanes = 8;
// Parts are few and far apart in memory, so many threads must read them at once.
constexpr unsigned kPartLanes = 32;

// sums[c] += the sum over the parts of parts[part, c]
static __global__ void __launch_bounds__(kColumnLanes* kPartLanes)
    add_parts_kernel(std::int64_t parts, std::int64_t width, const float* from, float* sums) {
  __shared__ float lanes[kPartLanes][kColumnLanes];
  const unsigned lane = threadIdx.x % kColumnLanes, part_lane = threadIdx.x / kColumnLanes;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumnLanes + lane;
  float sum = 0.0F;
  if (column < width) {
#pragma unroll 4
    for (std::int64_t part = part_lane; part < parts; part += kPartLanes)
      sum += from[part * width + column];
  }
  lanes[part_lane][lane] = sum;
  __syncthreads();
  if (part_lane != 0 || column >= width) return;
  for (unsigned other = 1; other < kPartLanes; ++other) sum += lanes[other][lane];
  sums[column] += sum;
}

inline void add_parts(std::int64_t parts, std::int64_t width, const float* from, void* sums,
                      Queue queue) {
  launch(add_parts_kernel, dim3(static_cast<unsigned>(divide_up(width, kColumnLanes))),
         kColumnLanes * kPartLanes, queue, parts, width, from, static_cast<float*>(sums));
}

// Returns how many parts of `width` sums fit into the scratch memory, at most `wanted`.
inline std::int64_t parts_that_fit(std::int64_t wanted, std::int64_t width,
                                   std::span<float> scratch) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(scratch.size()) / width, 1, wanted);
}

}  // namespace shardwright::executor
