// Device code that the kernels share: packs of bf16 numbers, block reductions, grids.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "executor/kernels/cuda/launch.cuh"

namespace shardwright::executor {

using Bf16 = __nv_bfloat16;

constexpr unsigned kWarp = 32, kAllLanes = 0xffffffffU;
// bf16 elements of a 16-byte access.
constexpr int kWide = 8;

// kVec numbers that are read and written in one access.
template <int kVec, class Number = Bf16>
struct alignas(sizeof(Number) * kVec) Pack {
  Number values[kVec];
};

template <int kVec>
__device__ inline void load(const Bf16* from, float (&values)[kVec]) {
  const Pack<kVec> pack = *reinterpret_cast<const Pack<kVec>*>(from);
#pragma unroll
  for (int i = 0; i < kVec; ++i) values[i] = __bfloat162float(pack.values[i]);
}

template <int kVec>
__device__ inline void store(Bf16* to, const float (&values)[kVec]) {
  Pack<kVec> pack;
#pragma unroll
  for (int i = 0; i < kVec; ++i) pack.values[i] = __float2bfloat16(values[i]);
  *reinterpret_cast<Pack<kVec>*>(to) = pack;
}

template <int kVec>
__device__ inline void load(const float* from, float (&values)[kVec]) {
  const auto pack = *reinterpret_cast<const Pack<kVec, float>*>(from);
#pragma unroll
  for (int i = 0; i < kVec; ++i) values[i] = pack.values[i];
}

template <int kVec>
__device__ inline void store(float* to, const float (&values)[kVec]) {
  Pack<kVec, float> pack;
#pragma unroll
  for (int i = 0; i < kVec; ++i) pack.values[i] = values[i];
  *reinterpret_cast<Pack<kVec, float>*>(to) = pack;
}

// Returns the sum over the threads of a block, identical in each thread and run. All threads call
// it; their number is a multiple of 32, at most 1024.
template <class Real>
__device__ inline Real block_sum(Real value) {
  __shared__ Real parts[kWarp];
  for (unsigned lane = kWarp / 2; lane > 0; lane /= 2)
    value += __shfl_xor_sync(kAllLanes, value, lane);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  Real sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += parts[warp];
  // The next call must not write `parts` before all threads have read it.
  __syncthreads();
  return sum;
}

__device__ inline float block_max(float value) {
  __shared__ float parts[kWarp];
  for (unsigned lane = kWarp / 2; lane > 0; lane /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, lane));
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  float most = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) most = fmaxf(most, parts[warp]);
  __syncthreads();
  return most;
}

// The index of this thread in the grid, and the number of threads.
__device__ inline std::int64_t grid_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline std::int64_t grid_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// Returns a / b. GPUs divide in software, 64-bit numbers several times slower than 32-bit ones.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  constexpr int kShortBits = 32;
  if (((a | b) >> kShortBits) != 0) return a / b;
  return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
}

constexpr unsigned kElementThreads = 256;

inline std::int64_t divide_up(std::int64_t amount, std::int64_t parts) {
  return (amount + parts - 1) / parts;
}

// Returns a grid for a kernel whose threads stride over `items`: enough blocks to fill a device
// several times.
inline dim3 grid_over(std::int64_t items) {
  constexpr std::int64_t kMaxBlocks = 132 * 16;
  return dim3(static_cast<unsigned>(
      std::clamp<std::int64_t>(divide_up(items, kElementThreads), 1, kMaxBlocks)));
}

inline bool is_wide(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % (kWide * sizeof(Bf16)) == 0;
}

// True if rows of `width` elements and all pointers (null included) allow 16-byte accesses.
template <class... Pointers>
bool is_wide(std::int64_t width, const Pointers*... pointers) {
  return width % kWide == 0 && (is_wide(static_cast<const void*>(pointers)) && ...);
}

inline const Bf16* as_bf16(const void* data) {
  return static_cast<const Bf16*>(data);
}

inline Bf16* as_bf16(void* data) {
  return static_cast<Bf16*>(data);
}

}  // namespace shardwright::executor
