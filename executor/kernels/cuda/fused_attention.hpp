// Attention forward and backward, by cuDNN.
#pragma once

#include <functional>
#include <memory>

#include "core/op/op.hpp"
#include "executor/kernels/element.hpp"

namespace shardwright::executor {

// Caches cuDNN's plan of each shape after its first call. Throws CudaError: head widths must be a
// multiple of 8 and at most what cuDNN has kernels for (128 everywhere; up to 256 on some GPUs).
class FusedAttention {
 public:
  // Returns memory for the duration of a call.
  using Workspace = std::function<void*(std::size_t bytes)>;

  FusedAttention();
  ~FusedAttention();

  // Returns the size of the workspace of a forward or backward call, and plans it.
  std::size_t workspace_bytes(const AttentionWork& work);

  // See Kernels.
  void forward(const AttentionWork& work, const void* qkv, void* out, void* statistics,
               const Workspace& workspace, Queue queue);
  void backward(const AttentionWork& work, const void* qkv, const void* out, const void* statistics,
                const void* dout, void* dqkv, const Workspace& workspace, Queue queue);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace shardwright::executor
