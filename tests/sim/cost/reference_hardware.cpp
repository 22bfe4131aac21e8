#include "tests/sim/cost/reference_hardware.hpp"

#include <vector>

namespace shardwright::sim::testing {
namespace {

AcceleratorSpec device(const std::string& architecture, double bf16_tflops, double fp8_tflops,
                       double memory_gb_per_s, double l2_bytes, std::int64_t units) {
  AcceleratorSpec spec;
  spec.architecture = architecture;
  spec.matrix = {.fp32 = teraflops(bf16_tflops / 16),
                 .tf32 = teraflops(bf16_tflops / 2),
                 .fp16 = teraflops(bf16_tflops),
                 .bf16 = teraflops(bf16_tflops),
                 .fp8 = teraflops(fp8_tflops)};
  spec.vector_fp32 = teraflops(bf16_tflops / 16);
  spec.memory_bandwidth = gigabytes_per_second(memory_gb_per_s);
  spec.l2_cache = Bytes(l2_bytes);
  spec.compute_units = units;
  return spec;
}

ClusterSpec node_of_eight(double link_gb_per_s, double ring_efficiency, double nic_gb_per_s) {
  ClusterSpec cluster;
  ScaleUpSpec& scale_up = cluster.node.scale_up;
  scale_up.bandwidth = gigabytes_per_second(link_gb_per_s);
  scale_up.ring_efficiency = ring_efficiency;
  scale_up.latency = microseconds(1.36);
  scale_up.collective_overhead = microseconds(8.0);
  scale_up.pair_efficiency = 0.72;
  cluster.node.nic = {
      .per_node = 8, .bandwidth = gigabytes_per_second(nic_gb_per_s), .efficiency = 0.95};
  cluster.fabric.base_latency = microseconds(2.75);
  return cluster;
}

ClusterSpec nvlink4_node() {
  ClusterSpec cluster = node_of_eight(450, 0.8156, 50);
  cluster.node.scale_up.in_network_reduction = true;
  cluster.node.scale_up.in_network_efficiency = 0.69;
  return cluster;
}

ClusterSpec nvlink5_node() {
  ClusterSpec cluster = node_of_eight(900, 0.795, 50);
  cluster.node.scale_up.in_network_reduction = true;
  cluster.node.scale_up.in_network_efficiency = 0.57;
  return cluster;
}

ClusterSpec nvl72_rack(double nic_gb_per_s) {
  ClusterSpec cluster = nvlink5_node();
  cluster.node.accelerators = 4;
  cluster.node.scale_up.domain = 72;
  cluster.node.scale_up.in_network_efficiency = 0.48;
  cluster.node.nic = {.per_node = 4, .bandwidth = gigabytes_per_second(nic_gb_per_s)};
  return cluster;
}

ClusterSpec with_overheads(ClusterSpec cluster, double overhead_us, double remote_us,
                           double nic_efficiency) {
  cluster.node.scale_up.collective_overhead = microseconds(overhead_us);
  cluster.fabric.base_latency = microseconds(remote_us);
  cluster.node.nic.efficiency = nic_efficiency;
  return cluster;
}

ClusterSpec with_nics(ClusterSpec cluster, double nic_gb_per_s) {
  cluster.node.nic.bandwidth = gigabytes_per_second(nic_gb_per_s);
  return cluster;
}

ClusterSpec infinity_fabric_node(double link_gb_per_s) {
  ClusterSpec cluster = node_of_eight(link_gb_per_s, 0.76, 50);
  cluster.node.scale_up.kind = ScaleUpKind::Mesh;
  cluster.node.scale_up.pair_efficiency = 0.675;
  return cluster;
}

struct NamedSystem {
  std::string part;  // of the row's "system"; the first that matches
  ClusterSpec cluster;
};

// Overheads differ by how the operator's network and the benchmark start a collective (plain
// nccl-tests, PyTorch, XLA), so that they belong to the system.
std::vector<NamedSystem> named_systems() {
  return {
      {"p6-b200", with_overheads(nvlink5_node(), 27.9, 12.0, 0.97)},
      {"Vultr HGX B200", with_overheads(nvlink5_node(), 8.0, 2.75, 0.75)},
      {"GCP A4", with_overheads(nvlink5_node(), 17.0, 2.75, 0.94)},
      {"named b200", with_overheads(nvlink5_node(), 17.0, 2.75, 0.94)},
      {"OCI B300", with_nics(nvlink5_node(), 100)},
      {"GB200", with_overheads(nvl72_rack(50), 100.0, 2.75, 0.92)},
      {"GB300", nvl72_rack(100)},
      {"a3-mega", with_overheads(with_nics(nvlink4_node(), 25), 54.7, 6.0, 0.97)},
      {"p5en", with_overheads(nvlink4_node(), 15.4, 6.0, 0.95)},
      {"p5.48", with_overheads(nvlink4_node(), 10.0, 6.0, 0.92)},
      {"Azure ND H200", with_overheads(nvlink4_node(), 16.4, 2.75, 0.95)},
      {"XLA", with_overheads(nvlink4_node(), 14.4, 2.75, 0.95)},
      {"H200", with_overheads(nvlink4_node(), 19.8, 2.75, 0.95)},
      {"H100", nvlink4_node()},
      {"8xA100-40GB", with_nics(node_of_eight(300, 0.78, 12.5), 12.5)},
      {"MI355X", infinity_fabric_node(537.6)},
      {"MI300X", infinity_fabric_node(448)},
  };
}

}  // namespace

AcceleratorSpec a100() {
  AcceleratorSpec spec = device("ampere", 312, 0, 2039, 40e6, 108);
  spec.efficiency = {.matrix = 0.8692,
                     .matrix_main_loop = 0.844,
                     .matrix_tf32 = 0.84,
                     .memory = 0.88,
                     .attention_forward = 0.72,
                     .attention_backward = 0.70,
                     .gemm_overhead = microseconds(1.5),
                     .wave_loss = 0.42,
                     .operand_bandwidth_ratio = 4.7};
  return spec;
}

AcceleratorSpec h100() {
  AcceleratorSpec spec = device("hopper", 989.4, 1978.9, 3350, 50e6, 132);
  spec.efficiency = {.matrix = 0.8195,
                     .matrix_main_loop = 1.0,
                     .matrix_tf32 = 0.74,
                     .matrix_fp8 = 0.83,
                     .memory = 0.89,
                     .attention_forward = 0.665,
                     .attention_backward = 0.584,
                     .gemm_overhead = microseconds(4.9),
                     .wave_loss = 0.3,
                     .operand_bandwidth_ratio = 7.5,
                     .power_slowdown = 0.2,
                     .power_delay = microseconds(600)};
  return spec;
}

AcceleratorSpec b200() {
  AcceleratorSpec spec = device("blackwell", 2250, 4500, 8000, 126e6, 148);
  spec.efficiency = {.matrix = 0.7756,
                     .matrix_main_loop = 0.83,
                     .matrix_tf32 = 1.0,
                     .matrix_fp8 = 1.0,
                     .memory = 0.92,
                     .attention_forward = 0.48,
                     .attention_backward = 0.45,
                     .gemm_overhead = microseconds(5.4),
                     .wave_loss = 0.73,
                     .operand_bandwidth_ratio = 2.5,
                     .power_slowdown = 0.5,
                     .power_delay = microseconds(146)};
  return spec;
}

std::optional<AcceleratorSpec> accelerator_of(const std::string& gpu) {
  if (gpu == "A100-SXM-80GB" || gpu == "A100-PCIe-80GB") {
    AcceleratorSpec spec = a100();
    if (gpu == "A100-SXM-80GB") return spec;
    // 300 W in place of 400 W.
    spec.memory_bandwidth = gigabytes_per_second(1935);
    spec.efficiency.attention_forward = 0.62;
    spec.efficiency.attention_backward = 0.51;
    return spec;
  }
  if (gpu == "H100-SXM") return h100();
  if (gpu == "H200-SXM") {
    AcceleratorSpec spec = h100();
    spec.memory_bandwidth = gigabytes_per_second(4800);
    return spec;
  }
  if (gpu == "H800") {
    AcceleratorSpec spec = h100();
    spec.efficiency.gemm_overhead = microseconds(2.4);
    spec.efficiency.matrix_fp8 = 0.67;
    return spec;
  }
  if (gpu == "B200-SXM") return b200();
  return std::nullopt;
}

ClusterSpec dgx_h100() {
  ClusterSpec cluster = nvlink4_node();
  cluster.accelerator = h100();
  return cluster;
}

std::optional<ClusterSpec> cluster_of(const std::string& system, const std::string& gpu) {
  for (const NamedSystem& named : named_systems())
    if (system.find(named.part) != std::string::npos || gpu.find(named.part) != std::string::npos)
      return named.cluster;
  return std::nullopt;
}

}  // namespace shardwright::sim::testing
