// Products with weight matrices by cuBLASLt.
#pragma once

#include <cstddef>
#include <memory>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Memory that cuBLASLt may use during a product.
struct ProductWorkspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

// Operands are bf16, sums fp32. The algorithm that cuBLASLt's heuristics choose for a shape is
// cached. Throws CudaError.
class MatrixProducts {
 public:
  MatrixProducts();
  ~MatrixProducts();

  // y = x W^T + b in bf16; the bias may be null.
  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, const ProductWorkspace& workspace, Queue queue);
  // dx = dy W in bf16.
  void input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                      const ProductWorkspace& workspace, Queue queue);
  // dW += dy^T x in fp32.
  void add_weight_gradient(const LinearShape& shape, const void* dy, const void* x, void* dweight,
                           const ProductWorkspace& workspace, Queue queue);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace shardwright::executor
