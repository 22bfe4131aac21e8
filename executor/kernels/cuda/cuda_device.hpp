// The GPU of a rank: its memory, streams and events; errors of CUDA and its libraries.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "executor/kernels/element.hpp"

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

// Returns the number of GPUs that this process sees; if it is 0, `why` says why. It must be the
// first CUDA call, since it sets the environment that the driver reads at its start, unless the
// user has set it: CUDA_DEVICE_MAX_CONNECTIONS=32, as many hardware queues as a stage's streams
// need (streams that share one of the default 8 wait for each other), and CUDA_MODULE_LOADING=EAGER
// (loading a kernel later may wait for the device, and so for a collective that waits for this
// rank). See "CUDA Environment Variables" and "Lazy Loading" in the CUDA C++ Programming Guide.
int count_gpus(std::string& why);

// Returns the GPU's bus address, "0000:1b:00.0", which identifies it on its host whichever GPUs a
// process sees. Throws CudaError.
std::string gpu_bus_id(int ordinal);

// Selects the GPU for the calling thread. Throws CudaError.
void use_gpu(int ordinal);

// Allocates memory of the GPU. Releasing it waits for all running work. Throws CudaError.
std::shared_ptr<void> gpu_memory(std::size_t bytes);

inline cudaStream_t stream_of(Queue queue) {
  return static_cast<cudaStream_t>(queue);
}

// Owns an object of CUDA or one of its libraries; null until it is created through `out`.
template <class Object, auto kDestroy>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (object_ != nullptr) kDestroy(object_);
  }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  Object get() const { return object_; }
  Object* out() { return &object_; }

 private:
  Object object_ = nullptr;
};

// A stream that does not synchronise with the default stream. Throws CudaError.
class CudaStream {
 public:
  CudaStream();

  cudaStream_t get() const { return stream_.get(); }

 private:
  Owned<cudaStream_t, cudaStreamDestroy> stream_;
};

// An event. Throws CudaError.
class CudaEvent {
 public:
  explicit CudaEvent(bool timed);

  void record(cudaStream_t stream);
  // True once all earlier work of the stream has ended. Throws CudaError if that failed.
  bool has_passed() const;
  // Returns the time between two timed events that have passed.
  double seconds_since(const CudaEvent& earlier) const;

  cudaEvent_t get() const { return event_.get(); }

 private:
  Owned<cudaEvent_t, cudaEventDestroy> event_;
};

}  // namespace shardwright::executor
