#include "executor/kernels/cuda/cuda_kernels.hpp"

#include <unistd.h>

#include <algorithm>

#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {
namespace {

// The default workspace of cuBLAS on Hopper (cuBLAS documentation, "cublasSetWorkspace").
constexpr std::size_t kProductBytes = std::size_t{32} << 20U;
constexpr std::size_t kMinBytes = std::size_t{64} << 20U;

std::string own_bus_id() {
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "cudaGetDevice");
  return gpu_bus_id(ordinal);
}

}  // namespace

CudaKernels::CudaKernels(bool shares_gpu) : shares_gpu_(shares_gpu), bus_id_(own_bus_id()) {}

// Our streams do not wait for the default stream, so the host waits. (cudaMemcpy alone may return
// before pageable memory has arrived.)
void CudaKernels::upload(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
  check_cuda(cudaStreamSynchronize(nullptr), "cudaMemcpy to the device");
}

void CudaKernels::download(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
}

std::size_t CudaKernels::memory_used() const {
  constexpr std::chrono::seconds kBetween{1};
  const auto now = std::chrono::steady_clock::now();
  if (!asked_at_ || now - *asked_at_ >= kBetween) {
    reported_ = nvml_.memory_of(bus_id_, getpid());
    asked_at_ = now;
  }
  if (reported_) return *reported_;
  if (shares_gpu_) return 0;
  std::size_t free = 0, all = 0;
  check_cuda(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return all - free;
}

void CudaKernels::prepare_queue(Queue queue) {
  workspace(queue, kMinBytes);
}

void CudaKernels::prepare_attention(const AttentionWork& work, Queue queue) {
  workspace(queue, attention_.workspace_bytes(work));
}

CudaKernels::Workspace& CudaKernels::workspace(Queue queue, std::size_t least_bytes) {
  Workspace& own = workspaces_[queue];
  if (own.bytes >= least_bytes) return own;
  // Running work may still use the old workspace.
  check_cuda(cudaStreamSynchronize(stream_of(queue)), "cudaStreamSynchronize");
  own = {};
  const std::size_t bytes = std::max(least_bytes, kMinBytes);
  own = {gpu_memory(bytes), bytes};
  return own;
}

std::span<float> CudaKernels::scratch(Queue queue) {
  const Workspace& own = workspace(queue, kMinBytes);
  return {static_cast<float*>(own.memory.get()), own.bytes / sizeof(float)};
}

ProductWorkspace CudaKernels::product_workspace(Queue queue) {
  return {workspace(queue, kMinBytes).memory.get(), kProductBytes};
}

void CudaKernels::linear(const LinearShape& shape, const void* x, const void* weight,
                         const void* bias, void* y, Queue queue) {
  products_.linear(shape, x, weight, bias, y, product_workspace(queue), queue);
}

void CudaKernels::linear_input_gradient(const LinearShape& shape, const void* dy,
                                        const void* weight, void* dx, Queue queue) {
  products_.input_gradient(shape, dy, weight, dx, product_workspace(queue), queue);
}

void CudaKernels::linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                                         void* dweight, void* dbias, Queue queue) {
  products_.add_weight_gradient(shape, dy, x, dweight, product_workspace(queue), queue);
  if (dbias != nullptr) add_column_sums(shape.rows, shape.outputs, dy, dbias, queue);
}

void CudaKernels::attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                            Queue queue) {
  const auto memory = [&](std::size_t bytes) { return workspace(queue, bytes).memory.get(); };
  attention_.forward(work, qkv, out, statistics, memory, queue);
}

void CudaKernels::attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                                     const void* statistics, const void* dout, void* dqkv,
                                     Queue queue) {
  const auto memory = [&](std::size_t bytes) { return workspace(queue, bytes).memory.get(); };
  attention_.backward(work, qkv, out, statistics, dout, dqkv, memory, queue);
}

void CudaKernels::zero(void* data, std::size_t bytes, Queue queue) {
  check_cuda(cudaMemsetAsync(data, 0, bytes, stream_of(queue)), "cudaMemset");
  if (queue == nullptr) check_cuda(cudaStreamSynchronize(nullptr), "cudaMemset");
}

void CudaKernels::copy(void* to, const void* from, std::size_t bytes, Queue queue) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(queue)),
             "cudaMemcpy within the device");
  if (queue == nullptr) check_cuda(cudaStreamSynchronize(nullptr), "cudaMemcpy within the device");
}

}  // namespace shardwright::executor
