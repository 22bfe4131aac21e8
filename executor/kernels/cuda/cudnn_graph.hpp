// Operation graphs of cuDNN's backend interface: built once, planned by cuDNN's heuristics, run
// often.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/kernels/queue.hpp"

namespace shardwright::executor {

// A cuDNN handle.
class CudnnHandle {
 public:
  // Throws CudaError.
  CudnnHandle();
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

class CudnnDescriptor;

class CudnnGraph {
 public:
  using Four = std::array<std::int64_t, 4>;
  struct Shape {
    Four sizes{}, strides{};
  };
  // A tensor of this graph.
  using Id = std::size_t;

  CudnnGraph();
  ~CudnnGraph();
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;

  // All throw CudaError. A buffer is given to `run`, aligned to 16 bytes; a scalar is fp32; what
  // lies between operations has no memory.
  Id buffer(const Shape& shape, cudnnDataType_t type);
  Id scalar(float value);
  Id between(const Shape& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  // Operations in the order in which each needs those before it.
  void matmul(Id a, Id b, Id out);
  void pointwise(cudnnPointwiseMode_t mode, Id x, Id out);
  void pointwise(cudnnPointwiseMode_t mode, Id x, Id y, Id out,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  // Where `holds` is true x, otherwise y.
  void select(Id x, Id y, Id holds, Id out);
  // The index of each element of x along an axis.
  void index(Id x, int axis, Id out);
  void reduce(cudnnReduceTensorOp_t operation, Id x, Id out);
  void reshape(Id x, Id out);

  // Chooses how the graph is run. Throws CudaError where cuDNN has no engine for it.
  void plan(const CudnnHandle& handle);
  // Bytes that a run needs, once it is planned.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  struct Binding {
    Id buffer;
    void* memory;
  };
  void run(const CudnnHandle& handle, const std::vector<Binding>& buffers, void* workspace,
           Queue queue) const;

 private:
  Id add_tensor(const Shape& shape, cudnnDataType_t type, bool is_between, bool by_value);
  static CudnnDescriptor pointwise_of(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int axis);
  void add_pointwise(const CudnnDescriptor& how, const std::vector<std::pair<int, Id>>& operands);

  std::vector<CudnnDescriptor> tensors_, operations_;
  std::vector<std::pair<Id, std::unique_ptr<float>>> scalars_;
  std::vector<CudnnDescriptor> details_;  // of operations
  std::unique_ptr<CudnnDescriptor> plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace shardwright::executor
