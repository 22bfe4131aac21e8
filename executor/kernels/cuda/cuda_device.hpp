// The GPU of a rank, and what is allocated on it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "executor/kernels/queue.hpp"

namespace shardwright::executor {

// How many GPUs this process sees; 0 with the reason in `why` if it sees none. Comes before all
// else of CUDA, so it sets what the driver reads from the environment at its start, unless the user
// has: as many hardware queues as a stage's streams need (CUDA_DEVICE_MAX_CONNECTIONS, 8 by
// default, 32 at most; streams that share one wait for each other), and kernels loaded at the start
// (CUDA_MODULE_LOADING=EAGER: loading one later may wait for the device, and so for an exchange
// that waits for this rank). CUDA C++ Programming Guide, "CUDA Environment Variables", "Lazy
// Loading".
int count_gpus(std::string& why);

// "NVIDIA H200"
std::string gpu_name(int ordinal);

// Its place on the host's buses, "0000:1b:00.0", which tells the GPUs of a host apart whichever of
// them a process sees. Throws CudaError.
std::string gpu_bus_id(int ordinal);

// Makes the GPU that of the calling thread. Throws CudaError.
void use_gpu(int ordinal);

// Throws CudaError; back to the device with the last owner, which waits for all that runs on it.
std::shared_ptr<void> gpu_memory(std::size_t bytes);

inline cudaStream_t stream_of(Queue queue) {
  return static_cast<cudaStream_t>(queue);
}

// A stream that runs beside the others. Throws CudaError.
class CudaStream {
 public:
  CudaStream();
  ~CudaStream();
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&& other) noexcept;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A place in a stream. Throws CudaError.
class CudaEvent {
 public:
  explicit CudaEvent(bool timed);
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept;
  CudaEvent& operator=(CudaEvent&& other) noexcept;

  void record(cudaStream_t stream);
  // True once what the stream had to do before has ended. Throws CudaError if that failed.
  bool has_passed() const;
  // Of two timed events that have passed.
  double seconds_since(const CudaEvent& earlier) const;

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace shardwright::executor
