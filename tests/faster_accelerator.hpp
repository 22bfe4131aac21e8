// An accelerator that is faster than another one in everything.
#pragma once

#include "core/spec/cluster_spec.hpp"

namespace shardwright {

// All kernels take half the time.
inline void double_speed(AcceleratorSpec& accelerator) {
  for (FlopPerSecond* rate :
       {&accelerator.matrix.fp32, &accelerator.matrix.tf32, &accelerator.matrix.fp16,
        &accelerator.matrix.bf16, &accelerator.matrix.fp8, &accelerator.vector_fp32})
    *rate = *rate * 2.0;
  accelerator.exponentials_per_s *= 2.0;
  accelerator.memory_bandwidth = accelerator.memory_bandwidth * 2.0;
  KernelEfficiency& figures = accelerator.efficiency;
  for (Seconds* time : {&figures.kernel_overhead, &figures.gemm_overhead, &figures.power_delay})
    *time = *time * 0.5;
  accelerator.burst.gemm_overhead = accelerator.burst.gemm_overhead * 0.5;
  accelerator.burst.power_delay = accelerator.burst.power_delay * 0.5;
}

}  // namespace shardwright
