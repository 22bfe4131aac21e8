// One kernel's measured time on a device.
#pragma once

#include "core/op/op.hpp"
#include "core/spec/precision.hpp"

namespace shardwright {

struct MeasuredKernel {
  OpKind kind = OpKind::Gemm;  // a kernel of the device, never a communication
  Precision precision = Precision::Bf16;
  Work work;
  Seconds time;  // on the device, from start to end; above zero

  bool operator==(const MeasuredKernel&) const = default;
};

}  // namespace shardwright
