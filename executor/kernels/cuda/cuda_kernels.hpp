// The kernels of a CUDA device: matrix products by cuBLASLt, attention by cuDNN, and fused kernels
// of our own for the rest.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/kernels/cuda/cuda_device.hpp"
#include "executor/kernels/cuda/fused_attention.hpp"
#include "executor/kernels/cuda/fused_kernels.hpp"
#include "executor/kernels/cuda/matrix_products.hpp"
#include "executor/kernels/nvml.hpp"

namespace shardwright::executor {

// Queues are streams. One thread uses the kernels, on the GPU that it has selected (use_gpu). Calls
// throw CudaError.
class CudaKernels final : public FusedKernels {
 public:
  // `shares_gpu`: other ranks use the GPU too, so its used memory is not this process's.
  explicit CudaKernels(bool shares_gpu = false);

  std::shared_ptr<void> allocate(std::size_t bytes) override { return gpu_memory(bytes); }
  // Asks NVML for this process at most once a second. If NVML cannot tell, returns all used memory
  // of the GPU, or 0 if ranks share it.
  std::size_t memory_used() const override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;

  void prepare_queue(Queue queue) override;
  void prepare_attention(const AttentionWork& work, Queue queue) override;
  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, Queue queue) override;
  void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                             Queue queue) override;
  void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                              void* dweight, void* dbias, Queue queue) override;
  void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                 Queue queue) override;
  void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                          const void* statistics, const void* dout, void* dqkv,
                          Queue queue) override;
  // Without a queue, waits for the device.
  void zero(void* data, std::size_t bytes, Queue queue) override;
  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override;

 protected:
  std::span<float> scratch(Queue queue) override;

 private:
  struct Workspace {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
  };

  // Returns the workspace of a queue, whose calls use it one after another.
  Workspace& workspace(Queue queue, std::size_t least_bytes);
  ProductWorkspace product_workspace(Queue queue);

  bool shares_gpu_;
  std::string bus_id_;
  Nvml nvml_;
  // NVML's last answer and the time of asking.
  mutable std::optional<std::size_t> reported_;
  mutable std::optional<std::chrono::steady_clock::time_point> asked_at_;
  std::map<Queue, Workspace> workspaces_;
  MatrixProducts products_;
  FusedAttention attention_;
};

}  // namespace shardwright::executor
