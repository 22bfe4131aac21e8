// Errors of CUDA and its libraries.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace shardwright::executor {

// Names the call that failed and CUDA's reason. Callers add the op and the rank.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& call, const std::string& why)
      : std::runtime_error(call + ": " + why) {}
};

inline void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw CudaError(call, cudaGetErrorString(status));
}

}  // namespace shardwright::executor
