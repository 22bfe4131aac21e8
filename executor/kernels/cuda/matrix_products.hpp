// Matrix products by cuBLASLt.
//
// cuBLASLt matrices are column-major, so it sees a row-major matrix [rows, columns] as its
// transpose. Hence, column-major:
//
// - y [rows, outputs] is [outputs, rows]: W transposed, times x;
// - dx [rows, inputs] is [inputs, rows]: W, times dy;
// - dW [outputs, inputs] is [inputs, outputs]: x, times dy transposed.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "executor/kernels/element.hpp"

namespace shardwright::executor {

// A column-major product out [m, n] = op(a) op(b) with inner dimension k.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false, adds_fp32 = false, has_bias = false;

  auto operator<=>(const Product&) const = default;
};

struct Operands {
  const void *a, *b, *bias;
  void* out;
};

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

  void run(const Product& product, const Operands& operands, const ProductWorkspace& workspace,
           Queue queue);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace shardwright::executor
