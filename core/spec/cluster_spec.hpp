// A cluster: accelerators in nodes, nodes on a fabric.
//
// Bandwidths are per direction. A profile names the source of each figure (`Provenance`), so that
// an answer can count the estimates that it uses. Nothing here depends on a model or a plan. The
// meanings of the fields stand in the tables for files: accelerator_json.cpp, node_json.cpp,
// fabric_json.cpp and cluster_json.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/op/op.hpp"
#include "core/spec/cost_curve.hpp"
#include "core/spec/precision.hpp"
#include "core/spec/provenance.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

struct MeasuredKernel {
  // A kernel of the device, never a communication.
  OpKind kind = OpKind::Gemm;
  Precision precision = Precision::Bf16;
  Work work;
  // The time on the device, from start to end; above zero.
  Seconds time;

  bool operator==(const MeasuredKernel&) const = default;
};

// Dense matrix throughput by format; zero: the device cannot multiply in this format.
struct MatrixPeaks {
  FlopPerSecond fp32, tf32, fp16, bf16, fp8, fp4;

  FlopPerSecond of(Precision precision) const;

  bool operator==(const MatrixPeaks&) const = default;
};

// The efficiency of kernels. Each value is a property of the hardware with its vendor libraries,
// shared by all shapes; the shape-dependent part (tiles, waves, roofline) is in sim/cost.
struct KernelEfficiency {
  double matrix = 0.85;
  double matrix_main_loop = 0.0;
  double matrix_tf32 = 0.85;
  double matrix_fp8 = 0.77;
  double memory = 0.85;
  double attention_forward = 0.60;
  double attention_backward = 0.50;
  double softmax_overlap = 0.0;
  Seconds kernel_overhead = microseconds(2.0);
  Seconds gemm_overhead = microseconds(3.0);
  double wave_loss = 0.4;
  double operand_bandwidth_ratio = 5.0;
  double result_exposed = 0.2;
  double l2_bandwidth_ratio = 2.5;
  double l2_share = 0.5;
  double host_link = 0.85;
  double power_slowdown = 0.0;
  Seconds power_delay = microseconds(150.0);

  bool operator==(const KernelEfficiency&) const = default;
};

// Figures of kernels in bursts (docs/models/gemm.md#bursts). 0: as in KernelEfficiency.
struct BurstEfficiency {
  double matrix_main_loop = 0.0;
  double matrix_fp8 = 0.0;
  Seconds gemm_overhead;
  double wave_loss = 0.0;
  double operand_bandwidth_ratio = 0.0;
  double result_exposed = 0.0;
  double power_slowdown = 0.0;
  Seconds power_delay;
  double attention_forward = 0.0;

  bool operator==(const BurstEfficiency&) const = default;
};

// The generation of an accelerator, by which formulas choose what the vendor's kernels do.
enum class Architecture : std::uint8_t {
  Other,
  // Ranks compute on cores of a CPU: the "accelerator" is what one rank gets.
  Cpu,
  Volta,
  Turing,
  Ampere,
  Ada,
  Hopper,
  Blackwell,
  // Differs from the data-centre Blackwell.
  RtxBlackwell,
  Cdna2,
  Cdna3,
  Cdna4,
  Gaudi,
  Tpu,
};
constexpr auto enum_names(Architecture) {
  return std::array{"other",     "cpu",           "volta", "turing", "ampere", "ada",   "hopper",
                    "blackwell", "rtx-blackwell", "cdna2", "cdna3",  "cdna4",  "gaudi", "tpu"};
}

struct AcceleratorSpec {
  std::string name;
  std::string vendor;
  Architecture architecture = Architecture::Other;
  std::vector<std::string> aliases;
  MatrixPeaks matrix;
  FlopPerSecond vector_fp32;
  double exponentials_per_s = 0.0;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  Bytes l2_cache;
  std::int64_t compute_units = 1;
  Hertz max_clock;
  Watts power;
  Watts idle_power;
  KernelEfficiency efficiency;
  BurstEfficiency burst;
  double sustained_clock_ratio = 1.0, sustained_fp8_clock_ratio = 0.0;
  double speed_variation = 0.0;
  // Timings on this device, which go before the formulas in their range. They are no part of the
  // profile's file: a table of their own holds them (sim/cost/measured_kernels.hpp).
  std::vector<MeasuredKernel> measured_kernels;
  std::vector<KernelCurve> kernel_curves;
  DollarsPerSecond price;
  std::string notes;
  Sources sources;

  bool operator==(const AcceleratorSpec&) const = default;
};

enum class ScaleUpKind : std::uint8_t {
  Switched,  // any pair at full speed (NVSwitch)
  Mesh,      // direct links between pairs (cube mesh, Infinity Fabric)
  Torus,     // TPU
  Pcie,      // shared PCIe trees and the CPU interconnect
};
constexpr auto enum_names(ScaleUpKind) {
  return std::array{"switched", "mesh", "torus", "pcie"};
}

// The links among the accelerators of a node, or of a rack-sized domain.
struct ScaleUpSpec {
  ScaleUpKind kind = ScaleUpKind::Switched;
  std::string name;
  BytesPerSecond bandwidth;
  double ring_efficiency = 0.8;
  Seconds latency = microseconds(1.0);
  Seconds collective_overhead = microseconds(8.0);
  bool in_network_reduction = false;
  double in_network_efficiency = 0.65;
  double pair_efficiency = 0.75;
  std::int64_t domain = 8;
  std::int64_t channels = 16;
  BytesPerSecond peer_bandwidth;

  bool operator==(const ScaleUpSpec&) const = default;
};

struct NicSpec {
  std::int64_t per_node = 1;
  BytesPerSecond bandwidth;
  double efficiency = 0.92;
  double pair_efficiency = 0.0;

  // The share of the line rate that all-to-all and point-to-point messages reach.
  double message_efficiency() const { return pair_efficiency > 0.0 ? pair_efficiency : efficiency; }

  bool operator==(const NicSpec&) const = default;
};

struct HostSpec {
  std::string cpu;
  std::int64_t cores = 64;
  Bytes memory;
  BytesPerSecond memory_bandwidth = BytesPerSecond(409.6e9);
  BytesPerSecond accelerator_link;
  BytesPerSecond nvme_read, nvme_write;
  double speed = 1.0;

  bool operator==(const HostSpec&) const = default;
};

struct NodeSpec {
  std::string name;
  std::int64_t accelerators = 8;
  ScaleUpSpec scale_up;
  NicSpec nic;
  HostSpec host;
  Watts power_overhead;
  std::string notes;
  Sources sources;

  bool operator==(const NodeSpec&) const = default;
};

enum class FabricKind : std::uint8_t { LeafSpine, RailOptimised, Torus, None };
constexpr auto enum_names(FabricKind) {
  return std::array{"leaf-spine", "rail-optimised", "torus", "none"};
}

enum class FabricProtocol : std::uint8_t { InfiniBand, RoCE, Efa, Ethernet, Optical };
constexpr auto enum_names(FabricProtocol) {
  return std::array{"infiniband", "roce", "efa", "ethernet", "optical"};
}

// One level of switches, from the leaf up.
struct FabricLevel {
  std::int64_t nodes = 1;
  double oversubscription = 1.0;
  Seconds latency = microseconds(1.0);

  bool operator==(const FabricLevel&) const = default;
};

// The network between nodes.
struct FabricSpec {
  std::string name;
  FabricKind kind = FabricKind::RailOptimised;
  FabricProtocol protocol = FabricProtocol::InfiniBand;
  Seconds base_latency = microseconds(5.0);
  std::vector<FabricLevel> levels;
  bool in_network_reduction = false;
  std::vector<std::int64_t> torus;
  std::vector<std::int64_t> torus_block;
  std::string notes;
  Sources sources;
  std::int64_t reduction_jobs_per_switch = 0;

  // Nodes that a torus joins, at most 1e9.
  std::int64_t torus_places() const;

  bool operator==(const FabricSpec&) const = default;
};

// Further nodes of a mixed cluster, alike among each other.
struct PoolSpec {
  std::string name;
  AcceleratorSpec accelerator;
  NodeSpec node;
  FabricSpec fabric;
  std::int64_t nodes = 0;
  DollarsPerSecond price;

  // As of a cluster of this pool alone.
  std::optional<std::int64_t> most_accelerators() const;

  bool operator==(const PoolSpec&) const = default;
};

// The network between nodes of different pools. Zero stands for the figure of the pools' own
// network.
struct PoolNetwork {
  BytesPerSecond bandwidth;
  Seconds latency;

  bool operator==(const PoolNetwork&) const = default;
};

struct ClusterSpec {
  std::string name;
  std::vector<std::string> aliases;
  AcceleratorSpec accelerator;
  NodeSpec node;
  FabricSpec fabric;
  std::int64_t nodes = 0;
  std::vector<ExchangeCurve> exchange_curves;
  std::optional<StackSpec> stack;
  double power_usage_effectiveness = 1.1;
  // Overrides the accelerator's own where it is above zero.
  DollarsPerSecond price;
  // Pools beside the first one, which the members above are; it has the cluster's name.
  std::vector<PoolSpec> pools;
  PoolNetwork between_pools;
  std::vector<std::string> filled_in;
  std::string notes;
  Sources sources;

  std::int64_t accelerators_per_node() const { return node.accelerators; }
  // The ranks of a job on its fullest node.
  std::int64_t ranks_per_node(std::int64_t ranks) const {
    return ranks < node.accelerators ? ranks : node.accelerators;
  }
  // Nodes that the network can join: of the highest level of switches, of the torus, or, without a
  // fabric, of the scale-up domain. Nothing: no limit is known.
  std::optional<std::int64_t> reachable_nodes() const;
  // The accelerators that a job can take: those of the nodes that exist, or that can be joined
  // where as many exist as are asked for.
  std::optional<std::int64_t> most_accelerators() const;

  bool operator==(const ClusterSpec&) const = default;
};

}  // namespace shardwright
