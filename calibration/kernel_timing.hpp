// Timings of kernels that run after each other on one device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright::calibration {

struct KernelTiming {
  struct Kernel {
    OpKind kind = OpKind::Gemm;
    Work work;
    // The time that the host takes for the framework's call around the kernel; zero if it is not
    // felt.
    Seconds call;
  };

  std::string id;
  // Title of the source.
  std::string source;
  // Device as the source names it.
  std::string gpu;
  // The shipped profile of the device.
  std::string accelerator;
  // "gemm bf16", "grouped_gemm bf16", "attention_fwd fp16", "memcpy": errors are summed up by it.
  std::string op;
  Precision precision = Precision::Bf16;
  std::vector<Kernel> kernels;
  // Says how far the implementation is from the device's best.
  StackSpec stack;
  Seconds measured;
  // The assumptions where the source says nothing, in words: "dtype: bf16".
  std::vector<std::string> assumed;
  // The reason why the timing cannot be predicted; empty if it can.
  std::string unsupported;
};

// The shipped profile of this name at the clock of a short benchmark, whose `sustained_clock_ratio`
// is 1. None without a name.
std::optional<AcceleratorSpec> benchmarked_accelerator(const std::string& profile);

// The time of the kernels by the formulas, whatever was measured on the accelerator.
Seconds predict(const KernelTiming& timing, const AcceleratorSpec& accelerator);

}  // namespace shardwright::calibration
