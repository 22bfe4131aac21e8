// Attention forward and backward, by cuDNN.
#pragma once

#include <functional>
#include <memory>

#include "core/op/op.hpp"
#include "executor/kernels/queue.hpp"

namespace shardwright::executor {

// cuDNN's plans are made at the first call of a shape and kept. Throws CudaError: heads must be a
// multiple of 8 wide, and no wider than cuDNN has kernels for (128 everywhere; up to 256 on some
// GPUs).
class FusedAttention {
 public:
  // Memory that a call needs while it runs.
  using Workspace = std::function<void*(std::size_t bytes)>;

  FusedAttention();
  ~FusedAttention();

  // Of forward or backward, as `work` says; plans it.
  std::size_t workspace_bytes(const AttentionWork& work);

  // As in Kernels.
  void forward(const AttentionWork& work, const void* qkv, void* out, void* statistics,
               const Workspace& workspace, Queue queue);
  void backward(const AttentionWork& work, const void* qkv, const void* out, const void* statistics,
                const void* dout, void* dqkv, const Workspace& workspace, Queue queue);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace shardwright::executor
