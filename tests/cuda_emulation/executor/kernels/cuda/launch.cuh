// Replaces the executor's header of this name: runs kernels on the CPU, so that tests cover their
// arithmetic, indices and barriers without a GPU.
//
// The threads of a block are fibers that take turns; blocks run one after another, so shared memory
// can be static. Compiled as C++.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <functional>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/element.hpp"

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)

namespace shardwright::executor {

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};

// Coordinates of the running fiber.
extern EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

// Calls `thread` for each thread of each block.
void emulate(dim3 grid, unsigned threads, const std::function<void()>& thread);

void __syncthreads();
int __syncthreads_or(int value);
// Returns the value of the thread with this lane in the warp.
float emulated_shuffle(float value, unsigned lane);
double emulated_shuffle(double value, unsigned lane);
unsigned __ballot_sync(unsigned mask, int value);

template <class Real>
Real __shfl_xor_sync(unsigned /*mask*/, Real value, unsigned lanes) {
  return emulated_shuffle(value, (threadIdx.x % 32U) ^ lanes);
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline float rsqrtf(float value) {
  return 1.0F / std::sqrt(value);
}
inline float __expf(float value) {
  return std::exp(value);
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, unsigned threads, Queue /*queue*/,
            Arguments... arguments) {
  emulate(grid, threads, [&] { kernel(arguments...); });
}

}  // namespace shardwright::executor
