#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/cuda/fused_attention.hpp"
#include "executor/kernels/cuda/fused_kernels.hpp"
#include "executor/kernels/cuda/matrix_products.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/kernels/nvml.hpp"

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

class CudaKernels final : public FusedKernels {
 public:
  explicit CudaKernels(bool shares_gpu) : shares_gpu_(shares_gpu) {}

  std::shared_ptr<void> allocate(std::size_t bytes) override { return gpu_memory(bytes); }

  // Asks NVML at most once a second for the memory of this process. If NVML does not know it,
  // returns what all processes use of the GPU, and 0 on a GPU that several ranks share.
  std::size_t memory_used() const override {
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

  // Our streams do not wait for the default stream, so the host waits. (cudaMemcpy alone may return
  // before pageable memory has arrived.)
  void upload(void* to, const void* from, std::size_t bytes) override {
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
    check_cuda(cudaStreamSynchronize(nullptr), "cudaMemcpy to the device");
  }

  void download(void* to, const void* from, std::size_t bytes) override {
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
  }

  void prepare_queue(Queue queue) override { workspace(queue, kMinBytes); }

  void prepare_attention(const AttentionWork& work, Queue queue) override {
    workspace(queue, attention_.workspace_bytes(work));
  }

  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, Queue queue) override {
    products_.run({.m = shape.outputs,
                   .n = shape.rows,
                   .k = shape.inputs,
                   .a_transposed = true,
                   .has_bias = bias != nullptr},
                  {weight, x, bias, y}, product_workspace(queue), queue);
  }

  void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                             Queue queue) override {
    products_.run({.m = shape.inputs, .n = shape.rows, .k = shape.outputs},
                  {weight, dy, nullptr, dx}, product_workspace(queue), queue);
  }

  void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                              void* dweight, void* dbias, Queue queue) override {
    products_.run({.m = shape.inputs,
                   .n = shape.outputs,
                   .k = shape.rows,
                   .b_transposed = true,
                   .adds_fp32 = true},
                  {x, dy, nullptr, dweight}, product_workspace(queue), queue);
    if (dbias != nullptr) add_column_sums(shape.rows, shape.outputs, dy, dbias, queue);
  }

  void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                 Queue queue) override {
    const auto memory = [&](std::size_t bytes) { return workspace(queue, bytes).memory.get(); };
    attention_.forward(work, qkv, out, statistics, memory, queue);
  }

  void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                          const void* statistics, const void* dout, void* dqkv,
                          Queue queue) override {
    const auto memory = [&](std::size_t bytes) { return workspace(queue, bytes).memory.get(); };
    attention_.backward(work, qkv, out, statistics, dout, dqkv, memory, queue);
  }

  // Without a queue, waits for the device.
  void zero(void* data, std::size_t bytes, Queue queue) override {
    check_cuda(cudaMemsetAsync(data, 0, bytes, stream_of(queue)), "cudaMemset");
    if (queue == nullptr) check_cuda(cudaStreamSynchronize(nullptr), "cudaMemset");
  }

  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(queue)),
               "cudaMemcpy within the device");
    if (queue == nullptr)
      check_cuda(cudaStreamSynchronize(nullptr), "cudaMemcpy within the device");
  }

 protected:
  std::span<float> scratch(Queue queue) override {
    const Workspace& own = workspace(queue, kMinBytes);
    return {static_cast<float*>(own.memory.get()), own.bytes / sizeof(float)};
  }

 private:
  struct Workspace {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
  };

  // Returns the workspace of a queue, whose calls use it one after another.
  Workspace& workspace(Queue queue, std::size_t least_bytes) {
    Workspace& own = workspaces_[queue];
    if (own.bytes >= least_bytes) return own;
    // Running work may still use the old workspace.
    check_cuda(cudaStreamSynchronize(stream_of(queue)), "cudaStreamSynchronize");
    own = {};
    const std::size_t bytes = std::max(least_bytes, kMinBytes);
    own = {gpu_memory(bytes), bytes};
    return own;
  }

  ProductWorkspace product_workspace(Queue queue) {
    return {workspace(queue, kMinBytes).memory.get(), kProductBytes};
  }

  bool shares_gpu_;
  std::string bus_id_ = own_bus_id();
  Nvml nvml_;
  // NVML's last answer and the time of asking.
  mutable std::optional<std::size_t> reported_;
  mutable std::optional<std::chrono::steady_clock::time_point> asked_at_;
  std::map<Queue, Workspace> workspaces_;
  MatrixProducts products_;
  FusedAttention attention_;
};

}  // namespace

std::unique_ptr<Kernels> make_cuda_kernels(bool shares_gpu) {
  return std::make_unique<CudaKernels>(shares_gpu);
}

}  // namespace shardwright::executor
