// Laws between the figures of the shipped profiles, and checks against public sources.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/spec/profile_library.hpp"

namespace shardwright {
namespace {

std::vector<AcceleratorSpec> all_accelerators() {
  std::vector<AcceleratorSpec> result;
  for (const std::string& name : shipped_accelerators()) result.push_back(load_accelerator(name));
  return result;
}

// peak = units * clock * FLOP per clock and unit; the last factor is the matrix unit's width, as
// the vendors publish it.
TEST(HardwareLaws, MatrixPeakIsUnitsTimesClockTimesWidth) {
  const std::pair<const char*, double> kFlopPerClock[] = {
      {"v100-sxm2-32gb", 1024}, {"a100-40gb", 2048}, {"a100-80gb", 2048}, {"a800", 2048},
      {"h100-sxm", 4096},       {"h100-pcie", 4096}, {"h800", 4096},      {"h200", 4096},
      {"gh200", 4096},          {"l40s", 1024},      {"rtx4090", 512},    {"mi250x", 1024},
      {"mi300x", 2048},         {"mi325x", 2048}};
  for (const auto& [name, flop_per_clock] : kFlopPerClock) {
    const AcceleratorSpec spec = load_accelerator(name);
    const double peak =
        static_cast<double>(spec.compute_units) * spec.max_clock.value() * flop_per_clock;
    EXPECT_NEAR(spec.matrix.fp16.value() / peak, 1.0, 0.015) << name;
  }
}

TEST(HardwareLaws, NvidiaFormatsKeepTheirRatiosFromAmpereOn) {
  for (const AcceleratorSpec& spec : all_accelerators()) {
    if (spec.vendor != "nvidia" || spec.architecture == Architecture::Volta) continue;
    EXPECT_EQ(spec.matrix.fp16, spec.matrix.bf16) << spec.name;
    if (spec.matrix.fp8.value() > 0.0) {
      EXPECT_NEAR(spec.matrix.fp8 / spec.matrix.bf16, 2.0, 0.03) << spec.name;
    }
    EXPECT_NEAR(spec.matrix.bf16 / spec.matrix.tf32, 2.0, 0.03) << spec.name;
  }
}

TEST(HardwareLaws, FormatsThatADeviceLacksHaveNoPeak) {
  EXPECT_EQ(load_accelerator("v100-sxm2-32gb").matrix.of(Precision::Bf16).value(), 0.0);
  EXPECT_EQ(load_accelerator("a100-80gb").matrix.of(Precision::Fp8).value(), 0.0);
  EXPECT_EQ(load_accelerator("tpu-v5p").matrix.of(Precision::Fp8).value(), 0.0);
  EXPECT_GT(load_accelerator("h100-sxm").matrix.of(Precision::Fp8).value(), 0.0);
  EXPECT_EQ(load_accelerator("h100-sxm").matrix.of(Precision::Nvfp4).value(), 0.0);
  EXPECT_GT(load_accelerator("b200").matrix.of(Precision::Nvfp4).value(), 0.0);
}

TEST(HardwareLaws, BackwardAttentionIsNeverTheMoreEfficientOne) {
  for (const AcceleratorSpec& spec : all_accelerators()) {
    EXPECT_LE(spec.efficiency.attention_backward, spec.efficiency.attention_forward) << spec.name;
    EXPECT_LE(spec.efficiency.attention_forward, spec.efficiency.matrix) << spec.name;
    EXPECT_LT(spec.idle_power, spec.power) << spec.name;
  }
}

// The datasheets' own counts: links times bandwidth per link and direction.
TEST(HardwareLaws, NvlinkBandwidthIsLinksTimesRate) {
  struct Row {
    const char* cluster;
    double links;
    double gigabytes_per_second;
  };
  for (const Row row : {Row{"dgx-v100", 6, 25},
                        {"dgx-a100", 12, 25},
                        {"a800-ib", 8, 25},
                        {"dgx-h100", 18, 25},
                        {"h800-ib", 8, 25},
                        {"dgx-h200", 18, 25},
                        {"h20-node", 18, 25},
                        {"dgx-b200", 18, 50},
                        {"gb200-nvl72", 18, 50},
                        {"mi300x-node", 7, 64}}) {
    EXPECT_DOUBLE_EQ(load_cluster(row.cluster).node.scale_up.bandwidth.value(),
                     row.links * row.gigabytes_per_second * 1e9)
        << row.cluster;
  }
}

// NCCL's own ceiling of a link (src/graph/topo.h): 20, 20.6 and 40.1 GB/s on SM80, SM90 and SM100.
// Measured rings reach a little less.
TEST(HardwareLaws, RingBandwidthLiesJustBelowTheCeilingOfNccl) {
  const std::pair<const char*, double> kCeilings[] = {{"dgx-a100", 12 * 20.0},
                                                      {"dgx-h100", 18 * 20.6},
                                                      {"dgx-h200", 18 * 20.6},
                                                      {"dgx-b200", 18 * 40.1},
                                                      {"gb200-nvl72", 18 * 40.1}};
  for (const auto& [name, ceiling] : kCeilings) {
    const ScaleUpSpec links = load_cluster(name).node.scale_up;
    const double reached = links.bandwidth.value() * links.ring_efficiency / 1e9;
    EXPECT_LE(reached, ceiling) << name;
    EXPECT_GE(reached, 0.94 * ceiling) << name;
  }
}

// NCCL's maintainers: per NIC expect 12 GB/s at 100 Gb/s, 24 at 200, 46 to 49 at 400
// (NVIDIA/nccl-tests issues 119, 130, 212, 290). The report on Vultr's network says itself that
// half of the adapters were slow.
TEST(HardwareLaws, InfinibandNicsReachWhatTheMaintainersOfNcclExpect) {
  for (const ClusterSpec& cluster : shipped_cluster_specs()) {
    if (cluster.fabric.protocol != FabricProtocol::InfiniBand ||
        cluster.fabric.name == "omnipath-100" || cluster.fabric.name == "ib-ndr-vultr" ||
        cluster.fabric.kind == FabricKind::None)
      continue;
    const double line = cluster.node.nic.bandwidth.value() / 1e9;
    const double reached = line * cluster.node.nic.efficiency;
    EXPECT_GE(reached, line == 50.0 ? 45.0 : 0.9 * line) << cluster.name;
    EXPECT_LE(reached, 0.98 * line) << cluster.name;
  }
}

TEST(HardwareLaws, ScaleUpIsFasterThanScaleOut) {
  for (const ClusterSpec& cluster : shipped_cluster_specs()) {
    const ScaleUpSpec& links = cluster.node.scale_up;
    if (links.kind == ScaleUpKind::Torus)
      continue;  // a TPU's links are the same inside and outside
    const NicSpec& nic = cluster.node.nic;
    const double out = static_cast<double>(nic.per_node) * nic.bandwidth.value() * nic.efficiency /
                       static_cast<double>(cluster.node.accelerators);
    EXPECT_GT(links.bandwidth.value() * links.ring_efficiency, out) << cluster.name;
    EXPECT_LT(links.latency,
              cluster.fabric.kind == FabricKind::None ? Seconds(1.0) : cluster.fabric.base_latency)
        << cluster.name;
  }
}

TEST(HardwareLaws, AScaleUpDomainIsANodeOrWholeNodes) {
  for (const ClusterSpec& cluster : shipped_cluster_specs())
    EXPECT_EQ(cluster.node.scale_up.domain % cluster.node.accelerators, 0) << cluster.name;
  EXPECT_EQ(load_cluster("gb200-nvl72").node.scale_up.domain, 72);
}

// Capacity in GB, bandwidth in GB/s, dense bf16 (V100: fp16) in TFLOP/s: ML Engineering,
// compute/accelerator; How to Scale Your Model for V100 and TPU.
TEST(HardwareLaws, AcceleratorsAreThoseOfTheirPublicTables) {
  struct Row {
    const char* accelerator;
    double gigabytes, gigabytes_per_second, teraflops, tolerance;
  };
  for (const Row row : {Row{"v100-sxm2-32gb", 32, 900, 125, 0.001},
                        {"a100-40gb", 40, 1555, 312, 0.001},
                        {"a100-80gb", 80, 2039, 312, 0.001},
                        {"h100-sxm", 80, 3350, 989, 0.001},
                        {"h100-pcie", 80, 2000, 756, 0.001},
                        {"h200", 141, 4800, 989, 0.001},
                        {"h20", 96, 4000, 148, 0.001},
                        {"b200", 180, 8000, 2250, 0.001},
                        {"gb200", 186, 8000, 2500, 0.001},
                        {"gb300", 288, 8000, 2500, 0.001},
                        {"l40s", 48, 864, 362, 0.001},
                        {"rtx4090", 24, 1008, 165.15, 0.001},
                        {"mi300x", 192, 5300, 1300, 0.01},
                        {"tpu-v5p", 95, 2765, 459, 0.001}}) {
    const AcceleratorSpec spec = load_accelerator(row.accelerator);
    const FlopPerSecond peak = std::max(spec.matrix.bf16, spec.matrix.fp16);
    // CUDA reports up to 7 % more than the maker prints, who counts neither in GB nor in GiB.
    EXPECT_GE(spec.memory / gigabytes(row.gigabytes), 1.0 - row.tolerance) << row.accelerator;
    EXPECT_LE(spec.memory, row.gigabytes * Bytes(1024.0 * 1024.0 * 1024.0)) << row.accelerator;
    EXPECT_NEAR(spec.memory_bandwidth / gigabytes_per_second(row.gigabytes_per_second), 1.0,
                row.tolerance)
        << row.accelerator;
    EXPECT_NEAR(peak / teraflops(row.teraflops), 1.0, row.tolerance) << row.accelerator;
  }
}

// A package of MI250X is two devices of half its figures (383 TFLOP/s, 128 GB, 3277 GB/s).
TEST(HardwareLaws, Mi250xIsCountedByTheDie) {
  const AcceleratorSpec die = load_accelerator("mi250x");
  EXPECT_NEAR(2.0 * (die.matrix.bf16 / teraflops(383)), 1.0, 0.001);
  EXPECT_NEAR(2.0 * (die.memory / gigabytes(128)), 1.0, 0.001);
  EXPECT_NEAR(2.0 * (die.memory_bandwidth / gigabytes_per_second(3277)), 1.0, 0.001);
}

TEST(HardwareLaws, MeasuredRatesDoNotExceedTheSpecs) {
  // ML Engineering, mamf-finder: the best rates seen of any GEMM shape, in TFLOP/s.
  const std::pair<const char*, double> kBest[] = {{"a100-80gb", 271.2}, {"h100-sxm", 810.5},
                                                  {"b200", 1745.0},     {"gb200", 1822.0},
                                                  {"b300", 1769.0},     {"mi300x", 668.4}};
  for (const auto& [name, best] : kBest) {
    const AcceleratorSpec spec = load_accelerator(name);
    EXPECT_NEAR(spec.matrix.bf16.value() * spec.efficiency.matrix / (best * 1e12), 1.0, 0.002)
        << name;
  }
}

TEST(HardwareLaws, LlamaClusterHasItsPublishedShape) {
  // The Llama 3 Herd of Models, section 3.3.1: 24,576 GPUs, 16 GPUs a rack, pods of 3,072 GPUs, 7:1
  // between the pods.
  const ClusterSpec cluster = load_cluster("grand-teton-h100-roce");
  EXPECT_EQ(cluster.nodes * cluster.node.accelerators, 24576);
  ASSERT_EQ(cluster.fabric.levels.size(), 3u);
  EXPECT_EQ(cluster.fabric.levels[0].nodes * 8, 16);
  EXPECT_EQ(cluster.fabric.levels[1].nodes * 8, 3072);
  EXPECT_DOUBLE_EQ(cluster.fabric.levels[1].oversubscription, 7.0);
}

}  // namespace
}  // namespace shardwright
