// The matrix throughput that a device reaches in a number format.
#pragma once

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/precision.hpp"

namespace shardwright::sim {

// The datasheet's peak at the clock that the device sustains. A format that the device does not
// multiply in runs in the next one that it has: nvfp4 as fp8, fp8 as bf16, bf16 as fp16 (and the
// other way round), tf32 as fp32, and all else on the vector units.
FlopPerSecond matrix_peak(const AcceleratorSpec& accelerator, Precision precision);

// The device as short benchmarks find it: before power and heat pull its clock down.
AcceleratorSpec at_full_clock(AcceleratorSpec accelerator);

// The device as bursts find it: a few repeats in one CUDA graph, before which it was idle.
AcceleratorSpec in_burst(AcceleratorSpec accelerator);

// The share of that peak that a tile's main loop reaches. No timings of nvfp4 products are public:
// they are taken to reach the share of fp8's.
double matrix_efficiency(const AcceleratorSpec& accelerator, Precision precision);

}  // namespace shardwright::sim
