#include "executor/kernels/cpu/cpu_kernels.hpp"

namespace shardwright::executor {

std::unique_ptr<Kernels> make_cpu_kernels() {
  return std::make_unique<CpuKernels<float>>();
}

}  // namespace shardwright::executor
