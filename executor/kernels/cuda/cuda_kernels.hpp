// The kernels of a CUDA device: matrix products by cuBLASLt, attention by cuDNN, all else of our
// own.
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

// Queues are streams. One thread uses the kernels, and their GPU is its own (use_gpu). Calls throw
// CudaError.
class CudaKernels final : public FusedKernels {
 public:
  // `shares_gpu`: with other ranks, so that what is taken of the GPU says nothing of this process.
  explicit CudaKernels(bool shares_gpu = false);

  std::shared_ptr<void> allocate(std::size_t bytes) override { return gpu_memory(bytes); }
  // As NVML tells it of this process, asked at most once a second; where it does not, all that is
  // taken of the GPU, or 0 if ranks share it.
  std::size_t memory_taken() const override;
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
  // Without a queue: returns when it is done.
  void zero(void* data, std::size_t bytes, Queue queue) override;
  void copy(void* to, const void* from, std::size_t bytes, Queue queue) override;

 protected:
  std::span<float> scratch(Queue queue) override;

 private:
  struct Workspace {
    std::shared_ptr<void> memory;
    std::size_t bytes = 0;
  };

  // Memory of a queue's calls, which take turns with it.
  Workspace& workspace(Queue queue, std::size_t least_bytes);
  ProductWorkspace product_workspace(Queue queue);

  bool shares_gpu_;
  std::string bus_id_;
  Nvml nvml_;
  // What NVML has told last, and when.
  mutable std::optional<std::size_t> told_;
  mutable std::optional<std::chrono::steady_clock::time_point> asked_;
  std::map<Queue, Workspace> workspaces_;
  MatrixProducts products_;
  FusedAttention attention_;
};

}  // namespace shardwright::executor
