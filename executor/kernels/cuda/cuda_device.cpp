#include "executor/kernels/cuda/cuda_device.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace shardwright::executor {

int count_gpus(std::string& why) {
  constexpr int kKeep = 0;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", kKeep);
  setenv("CUDA_MODULE_LOADING", "EAGER", kKeep);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  why = status == cudaSuccess ? "the driver names none" : cudaGetErrorString(status);
  return 0;
}

std::string gpu_bus_id(int ordinal) {
  constexpr int kLongest = 32;
  std::array<char, kLongest> text{};
  check_cuda(cudaDeviceGetPCIBusId(text.data(), kLongest, ordinal), "cudaDeviceGetPCIBusId");
  return text.data();
}

void use_gpu(int ordinal) {
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
}

std::shared_ptr<void> gpu_memory(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
  return {memory, &cudaFree};
}

CudaStream::CudaStream() {
  check_cuda(cudaStreamCreateWithFlags(stream_.out(), cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaEvent::CudaEvent(bool timed) {
  check_cuda(
      cudaEventCreateWithFlags(event_.out(), timed ? cudaEventDefault : cudaEventDisableTiming),
      "cudaEventCreate");
}

void CudaEvent::record(cudaStream_t stream) {
  check_cuda(cudaEventRecord(event_.get(), stream), "cudaEventRecord");
}

bool CudaEvent::has_passed() const {
  const cudaError_t status = cudaEventQuery(event_.get());
  if (status == cudaErrorNotReady) return false;
  check_cuda(status, "what runs on the device");
  return true;
}

double CudaEvent::seconds_since(const CudaEvent& earlier) const {
  float milliseconds = 0.0F;
  check_cuda(cudaEventElapsedTime(&milliseconds, earlier.get(), get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace shardwright::executor
