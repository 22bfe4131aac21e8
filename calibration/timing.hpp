// Published timings of kernels that run after each other on one device, and of single collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/cost/collective_cost.hpp"

namespace shardwright::calibration {

struct Timing {
  std::string id;
  // Title of the source.
  std::string source;
  // Device as the source names it.
  std::string gpu;
  Seconds measured;
  // The assumptions where the source says nothing, in words: "dtype: bf16".
  std::vector<std::string> assumed;
  // The reason why the timing cannot be predicted; empty if it can.
  std::string unsupported;
};

struct KernelTiming : Timing {
  struct Kernel {
    OpKind kind = OpKind::Gemm;
    Work work;
    // The time that the host takes for the framework's call around the kernel; zero if it is not
    // felt.
    Seconds call;
  };

  // The shipped profile of the device.
  std::string accelerator;
  // "gemm bf16", "grouped_gemm bf16", "attention_fwd fp16", "memcpy": errors are summed up by it.
  std::string op;
  Precision precision = Precision::Bf16;
  std::vector<Kernel> kernels;
  // Says how far the implementation is from the device's best.
  StackSpec stack;
  // A few repeats in one CUDA graph, before which the device was idle.
  bool burst = false;
};

// The shipped profile of this name at the clock of a short benchmark, whose `sustained_clock_ratio`
// is 1. None without a name.
std::optional<AcceleratorSpec> benchmarked_accelerator(const std::string& profile);

// Kernels measured in bursts on the shipped accelerator of this name
// (hardware_profiles/bursts/NAME.csv); none where it has no such table.
std::vector<MeasuredKernel> burst_kernels(const std::string& profile);

// The time of the kernels by the formulas, whatever was measured on the accelerator. In bursts each
// is corrected by those of `bursts` whose shapes are near (sim::ratio_near).
Seconds predict(const KernelTiming& timing, const AcceleratorSpec& accelerator,
                const std::vector<MeasuredKernel>& bursts = {});

struct CollectiveTiming : Timing {
  // System as the source names it.
  std::string system;
  // The cluster that it ran on; none where the timing is unsupported.
  std::optional<ClusterSpec> cluster;
  // "all_reduce", "alltoall", …
  std::string name;
  OpKind kind = OpKind::AllReduce;
  std::int64_t members = 2;
  // 0: as few as hold the members.
  std::int64_t nodes = 0;
  // Groups that run at the same time on one node.
  std::int64_t groups = 1;
  // Bytes as in `CommunicationWork`.
  Bytes bytes;
  // The algorithm that the benchmark forced; none where the library chose.
  std::optional<sim::Algorithm> forced;
  // The time that the benchmark's framework adds to each collective; zero for nccl-tests.
  Seconds call;
  // Tokens of a rank, and copies of each in `bytes`, of which each rank gets one
  // (sim::token_traffic).
  std::int64_t tokens = 0, copies = 1;
  // Whose kernels send the tokens.
  StackSpec stack;
};

// The reason why the timing's members cannot be accelerators of this cluster, or cannot have been
// so fast; empty if they can.
std::string gap_on(const CollectiveTiming& timing, const ClusterSpec& cluster);

// All of the world is one group, or `timing.groups` alike on one node. A ring of sends fills every
// member's NIC.
sim::GroupPlacement placement_of(const CollectiveTiming& timing, const ClusterSpec& cluster);

// The collective itself, without the framework's call.
sim::CollectiveCost cost_of(const CollectiveTiming& timing, const ClusterSpec& cluster);

Seconds predict(const CollectiveTiming& timing, const ClusterSpec& cluster);

}  // namespace shardwright::calibration
