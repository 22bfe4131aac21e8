// A descriptor of cuDNN's backend API. Included by cudnn_graph.cpp alone.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <utility>

#include "executor/kernels/cuda/cuda_error.hpp"

namespace shardwright::executor {

inline void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  constexpr std::size_t kMax = 512;
  char detail[kMax] = {};
  cudnnGetLastErrorString(detail, kMax);
  throw CudaError(call, std::string(cudnnGetErrorString(status)) + " (" + detail + ")");
}

class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    check_cudnn(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
  }
  ~CudnnDescriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::int64_t count, const void* values) {
    check_cudnn(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
                "cudnnBackendSetAttribute");
    return *this;
  }
  template <class Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const Value& value) {
    return set(name, type, 1, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.descriptor_);
  }
  CudnnDescriptor&& finish() && {
    check_cudnn(cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize");
    return std::move(*this);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace shardwright::executor
