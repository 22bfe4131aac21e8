// Kernel launches. Included by the .cu files of this folder alone; tests replace this header by one
// that runs kernels on the CPU.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/element.hpp"

namespace shardwright::executor {

// Launches `kernel` with `grid` blocks of `threads` threads.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, unsigned threads, Queue queue,
            Arguments&&... arguments) {
  kernel<<<grid, threads, 0, static_cast<cudaStream_t>(queue)>>>(
      std::forward<Arguments>(arguments)...);
  check_cuda(cudaGetLastError(), "kernel launch");
}

}  // namespace shardwright::executor
