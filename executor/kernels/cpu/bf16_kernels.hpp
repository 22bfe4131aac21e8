// The computations of a dense decoder on one CPU core in bf16, with states in fp32 as on a GPU.
#pragma once

#include <memory>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Every op computes in fp32 what its operands in bf16 stand for, and rounds its results to nearest.
// There are no kernels for experts.
std::unique_ptr<Kernels> make_bf16_cpu_kernels();

}  // namespace shardwright::executor
