// What a cluster is: accelerators in nodes, nodes on a fabric.
//
// Bandwidths are per direction. A profile says where each figure comes from (`Provenance`), so that
// an answer can tell what it rests on. Nothing here knows a model or a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/cost_curve.hpp"
#include "core/spec/measured_kernel.hpp"
#include "core/spec/precision.hpp"
#include "core/spec/provenance.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// Dense matrix throughput by format; zero: the device cannot multiply in this format.
struct MatrixPeaks {
  FlopPerSecond fp32, tf32, fp16, bf16, fp8, fp4;

  FlopPerSecond of(Precision precision) const;

  bool operator==(const MatrixPeaks&) const = default;
};

// How well kernels use the device. Each is a property of the hardware with its vendor libraries,
// shared by all shapes; the shape-dependent part (tiles, waves, roofline) is in sim/cost.
struct KernelEfficiency {
  double matrix =
      0.85;  // of the 16-bit matrix peak, for a GEMM large enough to hide everything else
  // Fitted: of the 16-bit matrix peak inside of a tile's main loop, before the losses to tile
  // edges, filling and power that sim/cost/gemm_cost.hpp adds. It is no rate that a GEMM reaches
  // (`matrix` is); 0: not fitted, `matrix` stands in for it.
  double matrix_main_loop = 0.0;
  double matrix_tf32 = 0.85;        // the same of the tf32 (and fp32) peak
  double matrix_fp8 = 0.77;         // … of the fp8 peak
  double memory = 0.85;             // of the memory bandwidth, for a large streaming kernel
  double attention_forward = 0.60;  // of the matrix peak, fused attention on long sequences of
                                    // heads that are 128 wide
  double attention_backward = 0.50;
  Seconds kernel_overhead = microseconds(2.0);  // prologue and epilogue of a kernel on the device
  Seconds gemm_overhead = microseconds(3.0);    // the same of a GEMM: fills its operand pipeline
  double wave_loss = 0.4;  // of a partly filled last wave of tiles: 1 for plain tiling, 0 where the
                           // library balances it (stream-K)
  double operand_bandwidth_ratio = 5.0;  // operands that reach the matrix units through L2 and
                                         // multicast, over achieved memory bandwidth
  double result_exposed = 0.2;      // of the time to write a GEMM's result, that no other tile's
                                    // products hide
  double l2_bandwidth_ratio = 2.5;  // achieved L2 over achieved memory bandwidth, streaming
  double l2_share = 0.5;        // of the L2 cache that stays resident from one kernel to the next
  double host_link = 0.85;      // of the link to the host, for large copies
  double power_slowdown = 0.0;  // relative time that a long GEMM takes longer once the device has
                                // reached its power limit
  Seconds power_delay = microseconds(150.0);  // of GEMM work, after which half of that is felt

  bool operator==(const KernelEfficiency&) const = default;
};

// The architecture of ranks that compute on cores of a CPU: the "accelerator" is what one rank
// gets.
inline constexpr const char* kCpuArchitecture = "cpu";

struct AcceleratorSpec {
  std::string name;                  // "h100-sxm"
  std::string vendor;                // "nvidia", "amd", "google"
  std::string architecture;          // "volta", "ampere", "hopper", "blackwell", "cdna3", …
  std::vector<std::string> aliases;  // other spellings that published measurements use
  MatrixPeaks matrix;
  FlopPerSecond vector_fp32;  // outside of the matrix units
  Bytes memory;               // HBM capacity
  BytesPerSecond memory_bandwidth;
  Bytes l2_cache;
  std::int64_t compute_units = 1;  // SMs, CUs or cores
  Hertz max_clock;
  Watts power;  // thermal design power
  Watts idle_power;
  KernelEfficiency efficiency;
  // Clock under hours of dense GEMM, of the clock that the peaks assume. Products of 8-bit elements
  // draw less power, so the clock falls less where power limits it; 0 = it is not known apart.
  double sustained_clock_ratio = 1.0, sustained_fp8_clock_ratio = 0.0;
  double speed_variation = 0.0;  // relative standard deviation of the speed of devices of one batch
  // Timings on this device, which go before the formulas in their range. They are no part of the
  // profile's file: a table of their own holds them (sim/cost/measured_kernels.hpp).
  std::vector<MeasuredKernel> measured_kernels;
  // What kernels take on a device without tiles and waves (a CPU); go before the formulas.
  std::vector<KernelCurve> kernel_curves;
  DollarsPerSecond price;  // of renting one, as listed publicly
  std::string notes;       // what a reader of the profile should know
  Sources sources;

  bool operator==(const AcceleratorSpec&) const = default;
};

enum class ScaleUpKind : std::uint8_t {
  Switched,  // any pair at full speed (NVSwitch)
  Mesh,      // direct links between pairs (cube mesh, Infinity Fabric)
  Torus,     // TPU
  Pcie,      // shared PCIe trees and the CPU interconnect
};
template <>
inline constexpr auto kEnumNames<ScaleUpKind> = std::array{"switched", "mesh", "torus", "pcie"};

// The links among the accelerators of a node, or of a rack-sized domain.
struct ScaleUpSpec {
  ScaleUpKind kind = ScaleUpKind::Switched;
  std::string name;          // "NVLink 4"
  BytesPerSecond bandwidth;  // per accelerator and direction, as the datasheet says
  double ring_efficiency =
      0.8;  // of `bandwidth`, that large ring collectives reach as bus bandwidth
  Seconds latency = microseconds(1.0);  // per hop, as the sender sees it
  Seconds collective_overhead =
      microseconds(8.0);              // fixed cost of a collective on the device, protocol LL
  bool in_network_reduction = false;  // NVLS
  double in_network_efficiency =
      0.65;  // of `bandwidth`, that in-switch reductions of large messages keep busy
  double pair_efficiency =
      0.75;                    // of `bandwidth`, that all-to-all and point-to-point messages reach
  std::int64_t domain = 8;     // accelerators that it joins
  std::int64_t channels = 16;  // that a collective library opens on it: blocks of threads, each on
                               // a multiprocessor of its own, with a part of the data each

  bool operator==(const ScaleUpSpec&) const = default;
};

struct NicSpec {
  std::int64_t per_node = 1;
  BytesPerSecond bandwidth;  // of one NIC and direction
  double efficiency = 0.92;  // of `bandwidth`, that large messages reach

  bool operator==(const NicSpec&) const = default;
};

struct HostSpec {
  std::string cpu;
  std::int64_t cores = 64;
  Bytes memory;
  // Of all its sockets, nominal; two with eight channels of DDR4-3200.
  BytesPerSecond memory_bandwidth = BytesPerSecond(409.6e9);
  BytesPerSecond
      accelerator_link;  // host to accelerator (PCIe, NVLink-C2C), per accelerator and direction
  BytesPerSecond nvme_read, nvme_write;  // per node; zero: no local disk
  double speed =
      1.0;  // single-thread speed relative to the host that the stacks' launch times assume

  bool operator==(const HostSpec&) const = default;
};

struct NodeSpec {
  std::string name;
  std::int64_t accelerators = 8;
  ScaleUpSpec scale_up;
  NicSpec nic;
  HostSpec host;
  Watts power_overhead;  // of a node beyond its accelerators: CPUs, fans, NICs, switches
  std::string notes;
  Sources sources;

  bool operator==(const NodeSpec&) const = default;
};

enum class FabricKind : std::uint8_t { LeafSpine, RailOptimised, Torus, None };
template <>
inline constexpr auto kEnumNames<FabricKind> =
    std::array{"leaf-spine", "rail-optimised", "torus", "none"};

enum class FabricProtocol : std::uint8_t { InfiniBand, RoCE, Efa, Ethernet, Optical };
template <>
inline constexpr auto kEnumNames<FabricProtocol> =
    std::array{"infiniband", "roce", "efa", "ethernet", "optical"};

// One level of switches, from the leaf up.
struct FabricLevel {
  std::int64_t nodes = 1;  // servers below one switch (or one pod) of this level
  double oversubscription =
      1.0;  // bandwidth entering from below over bandwidth leaving upwards, at least 1
  Seconds latency = microseconds(1.0);  // added by passing this level once

  bool operator==(const FabricLevel&) const = default;
};

// The network between nodes.
struct FabricSpec {
  std::string name;
  FabricKind kind = FabricKind::RailOptimised;
  FabricProtocol protocol = FabricProtocol::InfiniBand;
  Seconds base_latency = microseconds(5.0);  // NIC to NIC below one leaf
  std::vector<FabricLevel> levels;
  bool in_network_reduction = false;  // SHARP
  std::vector<std::int64_t> torus;    // nodes along each axis; for FabricKind::Torus
  // Nodes along each axis of the blocks that optical switches join, closing the axes of a job's
  // slice to rings. They divide those of the torus. Empty: no switches, only whole axes are rings.
  std::vector<std::int64_t> torus_block;
  std::string notes;
  Sources sources;

  // Nodes that a torus joins, at most 1e9.
  std::int64_t torus_places() const;

  bool operator==(const FabricSpec&) const = default;
};

struct ClusterSpec {
  std::string name;
  std::vector<std::string> aliases;  // how published measurements name systems like this one
  AcceleratorSpec accelerator;
  NodeSpec node;
  FabricSpec fabric;
  std::int64_t nodes = 0;                      // that exist; 0: as many as are asked for
  std::vector<ExchangeCurve> exchange_curves;  // measured here; go before the formulas
  std::optional<StackSpec> stack;  // as it was measured here; stands where no stack is named
  double power_usage_effectiveness = 1.1;
  DollarsPerSecond
      price;  // per accelerator; overrides the accelerator's own where it is above zero
  std::vector<std::string>
      filled_in;  // what the profile left out and the reader filled in, for the report
  std::string notes;
  Sources sources;  // of the cluster's own figures; its parts carry theirs

  std::int64_t accelerators_per_node() const { return node.accelerators; }
  // On a node that has as many as it can of a job of so many.
  std::int64_t ranks_per_node(std::int64_t ranks) const {
    return ranks < node.accelerators ? ranks : node.accelerators;
  }
  // Nodes that the network can join: of the highest level of switches, of the torus, or, without a
  // fabric, of the scale-up domain. Nothing: no limit is known.
  std::optional<std::int64_t> reachable_nodes() const;
  // That a job can take: those of the nodes that exist, or can be joined where as many exist as are
  // asked for.
  std::optional<std::int64_t> most_accelerators() const;

  bool operator==(const ClusterSpec&) const = default;
};

}  // namespace shardwright
