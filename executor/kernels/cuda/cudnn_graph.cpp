#include "executor/kernels/cuda/cudnn_graph.hpp"

#include <algorithm>
#include <utility>

namespace shardwright::executor {
namespace {

constexpr std::int64_t kAlignment = 16;
// On Hopper, 9.11 and 9.12 give wrong gradients of wide heads, and the backward pass of versions up
// to 9.15.0 may read beyond the keys if 128 does not divide their number (release notes of
// cudnn-frontend, 1.14.1 and 1.16.0).
constexpr std::size_t kMinVersion = 91600;

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  constexpr std::size_t kMax = 512;
  char detail[kMax] = {};
  cudnnGetLastErrorString(detail, kMax);
  throw CudaError(call, std::string(cudnnGetErrorString(status)) + " (" + detail + ")");
}

// Returns cuDNN's id of a tensor.
std::int64_t unique_id(CudnnGraph::Id tensor) {
  return static_cast<std::int64_t>(tensor) + 1;
}

}  // namespace

// A descriptor of cuDNN's backend API.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
    check_cudnn(cudnnBackendCreateDescriptor(type, descriptor_.out()),
                "cudnnBackendCreateDescriptor");
  }

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::int64_t count, const void* values) {
    check_cudnn(cudnnBackendSetAttribute(get(), name, type, count, values),
                "cudnnBackendSetAttribute");
    return *this;
  }
  template <class Value>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const Value& value) {
    return set(name, type, 1, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }
  CudnnDescriptor&& finish() && {
    check_cudnn(cudnnBackendFinalize(get()), "cudnnBackendFinalize");
    return std::move(*this);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor> descriptor_;
};

CudnnHandle::CudnnHandle() {
  if (cudnnGetVersion() < kMinVersion)
    throw CudaError("cuDNN " + std::to_string(cudnnGetVersion()),
                    "older versions than 9.16 may give wrong gradients");
  check_cudnn(cudnnCreate(handle_.out()), "cudnnCreate");
}

CudnnGraph::CudnnGraph() = default;
CudnnGraph::~CudnnGraph() = default;

CudnnGraph::Id CudnnGraph::add_tensor(const Shape& shape, cudnnDataType_t type, bool is_virtual,
                                      bool by_value) {
  const Id id = tensors_.size();
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape.sizes.data())
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape.strides.data())
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, unique_id(id))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  if (is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (by_value) tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  tensors_.push_back(std::move(tensor).finish());
  return id;
}

CudnnGraph::Id CudnnGraph::buffer(const Shape& shape, cudnnDataType_t type) {
  return add_tensor(shape, type, false, false);
}

CudnnGraph::Id CudnnGraph::scalar(float value) {
  const Id id = add_tensor({{1, 1, 1, 1}, {1, 1, 1, 1}}, CUDNN_DATA_FLOAT, false, true);
  scalars_.emplace_back(id, std::make_unique<float>(value));
  return id;
}

CudnnGraph::Id CudnnGraph::virtual_tensor(const Shape& shape, cudnnDataType_t type) {
  return add_tensor(shape, type, true, false);
}

void CudnnGraph::matmul(Id a, Id b, Id out) {
  CudnnDescriptor descriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  details_.push_back(std::move(descriptor).finish());
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a])
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b])
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[out])
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, details_.back());
  operations_.push_back(std::move(operation).finish());
}

void CudnnGraph::add_pointwise(cudnnPointwiseMode_t mode,
                               const std::vector<std::pair<int, Id>>& operands,
                               cudnnDataType_t compute, int axis) {
  CudnnDescriptor descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
  if (axis != kNoAxis)
    descriptor.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, static_cast<std::int64_t>(axis));
  details_.push_back(std::move(descriptor).finish());
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, details_.back());
  for (const auto& [name, tensor] : operands)
    operation.set(static_cast<cudnnBackendAttributeName_t>(name), tensors_[tensor]);
  operations_.push_back(std::move(operation).finish());
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, Id x, Id out) {
  add_pointwise(mode, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out}});
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, Id x, Id y, Id out, cudnnDataType_t compute) {
  add_pointwise(mode,
                {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                 {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, y},
                 {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out}},
                compute);
}

void CudnnGraph::select(Id x, Id y, Id holds, Id out) {
  add_pointwise(CUDNN_POINTWISE_BINARY_SELECT, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                                {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, y},
                                                {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, holds},
                                                {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out}});
}

void CudnnGraph::index(Id x, int axis, Id out) {
  add_pointwise(
      CUDNN_POINTWISE_GEN_INDEX,
      {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out}},
      CUDNN_DATA_FLOAT, axis);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t operation, Id x, Id out) {
  CudnnDescriptor descriptor(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operation)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  details_.push_back(std::move(descriptor).finish());
  CudnnDescriptor added(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  added.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x])
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[out])
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, details_.back());
  operations_.push_back(std::move(added).finish());
}

void CudnnGraph::reshape(Id x, Id out) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensors_[x])
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensors_[out]);
  operations_.push_back(std::move(operation).finish());
}

namespace {

CudnnDescriptor graph_of(const CudnnHandle& handle,
                         const std::vector<CudnnDescriptor>& operations) {
  std::vector<cudnnBackendDescriptor_t> pointers;
  pointers.reserve(operations.size());
  for (const CudnnDescriptor& operation : operations) pointers.push_back(operation.get());
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
           static_cast<std::int64_t>(pointers.size()), pointers.data())
      .set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle.get());
  return std::move(graph).finish();
}

// Returns engine configurations, best first.
std::vector<CudnnDescriptor> engines_for(const CudnnDescriptor& graph) {
  CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  heuristics = std::move(heuristics).finish();
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "cuDNN's heuristics");
  std::vector<CudnnDescriptor> engines;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (std::int64_t i = 0; i < count; ++i) {
    engines.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    pointers.push_back(engines.back().get());
  }
  std::int64_t returned = 0;
  check_cudnn(
      cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &returned, pointers.data()),
      "cuDNN's heuristics");
  engines.erase(engines.begin() + returned, engines.end());
  return engines;
}

}  // namespace

void CudnnGraph::plan(const CudnnHandle& handle) {
  std::string why = "its heuristics name none";
  for (const CudnnDescriptor& engine : engines_for(graph_of(handle, operations_))) {
    try {
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle.get())
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
      plan_ = std::make_unique<CudnnDescriptor>(std::move(plan).finish());
    } catch (const CudaError& error) {
      why = error.what();
      continue;
    }
    std::int64_t bytes = 0, count = 0;
    check_cudnn(cudnnBackendGetAttribute(plan_->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, &count, &bytes),
                "cuDNN's workspace");
    workspace_bytes_ = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
    return;
  }
  throw CudaError("cuDNN has no engine for this graph", why);
}

void CudnnGraph::run(const CudnnHandle& handle, const std::vector<Binding>& buffers,
                     void* workspace, Queue queue) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const Binding& bound : buffers) {
    ids.push_back(unique_id(bound.buffer));
    pointers.push_back(bound.memory);
  }
  for (const auto& [id, value] : scalars_) {
    ids.push_back(unique_id(id));
    pointers.push_back(value.get());
  }
  const auto count = static_cast<std::int64_t>(ids.size());
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack = std::move(pack).finish();
  check_cudnn(cudnnSetStream(handle.get(), stream_of(queue)), "cudnnSetStream");
  check_cudnn(cudnnBackendExecute(handle.get(), plan_->get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace shardwright::executor
