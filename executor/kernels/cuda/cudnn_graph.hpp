// Operation graphs of cuDNN's backend API: built once, planned by cuDNN's heuristics, run often.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {

class CudnnHandle {
 public:
  // Throws CudaError.
  CudnnHandle();

  cudnnHandle_t get() const { return handle_.get(); }

 private:
  Owned<cudnnHandle_t, cudnnDestroy> handle_;
};

class CudnnDescriptor;

class CudnnGraph {
 public:
  using Four = std::array<std::int64_t, 4>;
  struct Shape {
    Four sizes{}, strides{};
  };
  static constexpr int kNoAxis = -1;
  // Identifies a tensor of this graph.
  using Id = std::size_t;

  CudnnGraph();
  ~CudnnGraph();
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;

  // Add tensors: buffers, which `run` binds to memory aligned to 16 bytes; fp32 constants; and
  // virtual tensors between operations, which need no memory. Throw CudaError.
  Id buffer(const Shape& shape, cudnnDataType_t type);
  Id scalar(float value);
  Id virtual_tensor(const Shape& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  // Add operations; each must follow those whose results it reads.
  void matmul(Id a, Id b, Id out);
  void pointwise(cudnnPointwiseMode_t mode, Id x, Id out);
  void pointwise(cudnnPointwiseMode_t mode, Id x, Id y, Id out,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  // Selects x where `holds` is true, otherwise y.
  void select(Id x, Id y, Id holds, Id out);
  // Writes the index of each element of x along an axis.
  void index(Id x, int axis, Id out);
  void reduce(cudnnReduceTensorOp_t operation, Id x, Id out);
  void reshape(Id x, Id out);

  // Selects an engine. Throws CudaError if cuDNN has none for the graph.
  void plan(const CudnnHandle& handle);
  // The workspace that `run` needs, once the graph is planned.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  struct Binding {
    Id buffer;
    void* memory;
  };
  void run(const CudnnHandle& handle, const std::vector<Binding>& buffers, void* workspace,
           Queue queue) const;

 private:
  Id add_tensor(const Shape& shape, cudnnDataType_t type, bool is_virtual, bool by_value);
  void add_pointwise(cudnnPointwiseMode_t mode, const std::vector<std::pair<int, Id>>& operands,
                     cudnnDataType_t compute = CUDNN_DATA_FLOAT, int axis = kNoAxis);

  std::vector<CudnnDescriptor> tensors_, operations_;
  std::vector<std::pair<Id, std::unique_ptr<float>>> scalars_;
  // Descriptors that operations refer to.
  std::vector<CudnnDescriptor> details_;
  std::unique_ptr<CudnnDescriptor> plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace shardwright::executor
