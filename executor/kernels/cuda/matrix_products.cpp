#include "executor/kernels/cuda/matrix_products.hpp"

#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "executor/kernels/cuda/cuda_device.hpp"

namespace shardwright::executor {
namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw CudaError(call, cublasLtGetStatusString(status));
}

using Handle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// Returns the largest power of two up to 256 that divides the address.
std::uint32_t alignment_of(const void* pointer) {
  constexpr std::uintptr_t kMax = 256;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer) | kMax;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

Layout layout_of(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  Layout layout;
  check_cublas(cublasLtMatrixLayoutCreate(layout.out(), type, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  return layout;
}

// A product with its descriptors and algorithm.
struct Planned {
  Description description;
  Layout a, b, out;
  cublasLtMatmulAlgo_t algorithm{};
};

template <class Value>
void describe(Planned& planned, cublasLtMatmulDescAttributes_t name, const Value& value) {
  check_cublas(
      cublasLtMatmulDescSetAttribute(planned.description.get(), name, &value, sizeof value),
      "cublasLtMatmulDescSetAttribute");
}

Planned described(const Product& product) {
  Planned planned;
  check_cublas(cublasLtMatmulDescCreate(planned.description.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  const cublasOperation_t transpose = CUBLAS_OP_T;
  if (product.a_transposed) describe(planned, CUBLASLT_MATMUL_DESC_TRANSA, transpose);
  if (product.b_transposed) describe(planned, CUBLASLT_MATMUL_DESC_TRANSB, transpose);
  if (product.has_bias) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const cudaDataType_t type = CUDA_R_16BF;
    describe(planned, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    describe(planned, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
  }
  planned.a = product.a_transposed ? layout_of(CUDA_R_16BF, product.k, product.m)
                                   : layout_of(CUDA_R_16BF, product.m, product.k);
  planned.b = product.b_transposed ? layout_of(CUDA_R_16BF, product.n, product.k)
                                   : layout_of(CUDA_R_16BF, product.k, product.n);
  planned.out = layout_of(product.adds_fp32 ? CUDA_R_32F : CUDA_R_16BF, product.m, product.n);
  return planned;
}

Preference preference_of(const Operands& operands, std::size_t workspace_bytes) {
  Preference preference;
  check_cublas(cublasLtMatmulPreferenceCreate(preference.out()), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(operands.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(operands.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(operands.out));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(operands.out));
  return preference;
}

}  // namespace

struct MatrixProducts::Implementation {
  using Key = std::tuple<Product, std::uint32_t, std::uint32_t, std::uint32_t, std::size_t>;

  Handle handle;
  std::map<Key, Planned> planned;

  Implementation() { check_cublas(cublasLtCreate(handle.out()), "cublasLtCreate"); }

  Planned plan(const Product& product, const Operands& operands,
               std::size_t workspace_bytes) const {
    Planned made = described(product);
    // The heuristics check the alignment of the bias.
    if (product.has_bias) describe(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    const Preference preference = preference_of(operands, workspace_bytes);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check_cublas(cublasLtMatmulAlgoGetHeuristic(handle.get(), made.description.get(), made.a.get(),
                                                made.b.get(), made.out.get(), made.out.get(),
                                                preference.get(), 1, &found, &count),
                 "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0) throw CudaError("cublasLtMatmulAlgoGetHeuristic", "no algorithm");
    made.algorithm = found.algo;
    return made;
  }

  void run(const Product& product, const Operands& operands, const ProductWorkspace& workspace,
           Queue queue) {
    const Key key{
        product, alignment_of(operands.a), alignment_of(operands.b),
        std::min(alignment_of(operands.out), product.has_bias ? alignment_of(operands.bias) : 256U),
        workspace.bytes};
    auto known = planned.find(key);
    if (known == planned.end())
      known = planned.emplace(key, plan(product, operands, workspace.bytes)).first;
    Planned& with = known->second;
    if (product.has_bias) describe(with, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    const float one = 1.0F, added = product.adds_fp32 ? 1.0F : 0.0F;
    check_cublas(cublasLtMatmul(handle.get(), with.description.get(), &one, operands.a,
                                with.a.get(), operands.b, with.b.get(), &added, operands.out,
                                with.out.get(), operands.out, with.out.get(), &with.algorithm,
                                workspace.memory, workspace.bytes, stream_of(queue)),
                 "cublasLtMatmul");
  }
};

MatrixProducts::MatrixProducts() : implementation_(std::make_unique<Implementation>()) {}
MatrixProducts::~MatrixProducts() = default;

void MatrixProducts::run(const Product& product, const Operands& operands,
                         const ProductWorkspace& workspace, Queue queue) {
  implementation_->run(product, operands, workspace, queue);
}

}  // namespace shardwright::executor
