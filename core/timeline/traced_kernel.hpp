// Kernels as the profiler of another program names them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/enum_names.hpp"

namespace shardwright {

enum class KernelCategory : std::uint8_t {
  // Matrix products and convolutions, with the kernels that finish them.
  Gemm,
  Attention,
  // Element by element or row by row: what memory traffic limits.
  Elementwise,
  Collective,
  MemoryCopy,
  Other,
};
constexpr auto enum_names(KernelCategory) {
  return std::array{"gemm", "attention", "elementwise", "collective", "memory_copy", "other"};
}

// "matrix products and convolutions".
const char* title_of(KernelCategory category);

// "vectorized_elementwise_kernel<4, …": a kernel's name without what tells nobody anything, at most
// so many letters long. A name without template arguments keeps its layout at its end:
// "nvjet_tst_256x128…oopA_TNT".
std::string short_kernel_name(std::string name, std::size_t longest);

struct TracedKernel {
  std::string name;
  // The operator of the framework that launched it; empty if it is not known.
  std::string op;
  KernelCategory category = KernelCategory::Other;

  bool operator==(const TracedKernel&) const = default;
};

}  // namespace shardwright
