// Profiles of machines with GPUs, from values that CUDA and Linux would report.
#include "executor/probe/gpu_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/lowering/lowering.hpp"
#include "core/program/executable.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/probe/probe_process.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::executor {
namespace {

using testing::HasSubstr;

constexpr BytesPerSecond kNone = BytesPerSecond(0);

GpuFacts gpu(const std::string& name, const std::string& capability, std::int64_t multiprocessors,
             double clock) {
  GpuFacts facts;
  facts.name = name;
  facts.compute_capability = capability;
  facts.memory = gigabytes(24.0);
  facts.l2_cache = Bytes(6e6);
  facts.multiprocessors = multiprocessors;
  facts.clock = Hertz(clock);
  facts.memory_bandwidth = gigabytes_per_second(900.0);
  return facts;
}

GpuFacts h100() {
  GpuFacts facts = gpu("NVIDIA H100 80GB HBM3", "9.0", 132, 1.98e9);
  facts.memory = Bytes(8.4929e10);
  facts.l2_cache = Bytes(52'428'800);
  facts.memory_bandwidth = BytesPerSecond(3.35232e12);
  return facts;
}

// All copies between two GPUs are equally fast.
GpuHost host_with(const GpuFacts& gpu, std::size_t count, double peer_gigabytes,
                  double host_gigabytes) {
  GpuHost host;
  host.gpus.assign(count, gpu);
  host.host_to_gpu = gigabytes_per_second(host_gigabytes);
  host.gpu_to_host = gigabytes_per_second(host_gigabytes * 0.95);
  host.peer_copies.assign(count,
                          std::vector<BytesPerSecond>(count, gigabytes_per_second(peer_gigabytes)));
  for (std::size_t i = 0; i < count; ++i) host.peer_copies[i][i] = kNone;
  return host;
}

HostFacts server() {
  HostFacts host{"Some CPU", 112, gigabytes(2000.0), {}};
  host.networks.push_back({"eth0", gigabytes_per_second(12.5), false});
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"})
    host.networks.push_back({name, gigabytes_per_second(50.0), true});
  host.networks.push_back({"mlx5_4", gigabytes_per_second(25.0), true});
  return host;
}

ClusterSpec described(const GpuFacts& facts) {
  return describe_gpus(host_with(facts, 1, 0.0, 25.0), server(), {});
}

ClusterSpec eight_h100(std::int64_t hosts) {
  return describe_gpus(host_with(h100(), 8, 370.0, 55.0), server(), {8, hosts});
}

TEST(GpuMachine, IsTheShippedProfileWithValuesFromCuda) {
  const ClusterSpec here = eight_h100(2);
  const AcceleratorSpec shipped = load_accelerator("h100-sxm");
  EXPECT_EQ(here.name, "here");
  EXPECT_EQ(here.accelerator.name, "h100-sxm");
  EXPECT_EQ(here.accelerator.matrix, shipped.matrix);
  EXPECT_EQ(here.accelerator.memory, Bytes(8.4929e10));
  EXPECT_EQ(here.accelerator.max_clock, Hertz(1.98e9));
  EXPECT_EQ(here.accelerator.l2_cache, Bytes(52'428'800));
  EXPECT_EQ(here.accelerator.memory_bandwidth, BytesPerSecond(3.35232e12));
  for (const char* figure : {"/memory/capacity_bytes", "/memory/bandwidth_bytes_per_s",
                             "/memory/l2_cache_bytes", "/compute_units", "/max_clock_hz"}) {
    const Provenance& source = here.accelerator.sources.at(figure);
    EXPECT_EQ(source.confidence, Confidence::Measured) << figure;
    EXPECT_THAT(source.source, HasSubstr("measured by shardwright probe, "));
    EXPECT_THAT(source.source, HasSubstr(", NVIDIA H100 80GB HBM3"));
  }
  EXPECT_EQ(here.accelerator.sources.at("/matrix/bf16_flop_per_s"),
            shipped.sources.at("/matrix/bf16_flop_per_s"));
  EXPECT_EQ(here.stack->name, "shardwright");
}

TEST(GpuMachine, HasTheLinksThatCopiesShow) {
  const ClusterSpec here = eight_h100(2);
  EXPECT_EQ(here.nodes, 2);
  EXPECT_EQ(here.node.accelerators, 8);
  EXPECT_EQ(here.node.scale_up.domain, 8);
  EXPECT_EQ(here.node.scale_up.kind, ScaleUpKind::Switched);
  EXPECT_EQ(here.node.scale_up.bandwidth, gigabytes_per_second(370.0));
  EXPECT_EQ(here.node.host.accelerator_link, gigabytes_per_second(55.0 * 0.95));
  EXPECT_EQ(here.node.host.cores, 112);
  EXPECT_EQ(here.node.host.memory, gigabytes(2000.0));
  EXPECT_THAT(here.node.sources.at("/host/cores").source, HasSubstr("Some CPU"));
  // RDMA devices of the highest speed.
  EXPECT_EQ(here.node.nic.per_node, 4);
  EXPECT_EQ(here.node.nic.bandwidth, gigabytes_per_second(50.0));
  EXPECT_EQ(here.fabric.levels.back().nodes, 2);
  EXPECT_EQ(eight_h100(1).fabric.kind, FabricKind::None);
}

TEST(GpuMachine, WithoutPeerAccessCopiesGoThroughTheHost) {
  const GpuFacts card = gpu("NVIDIA GeForce RTX 4090", "8.9", 128, 2.52e9);
  const ClusterSpec here = describe_gpus(host_with(card, 2, 0.0, 26.0), server(), {2});
  EXPECT_EQ(here.accelerator.name, "rtx4090");
  EXPECT_EQ(here.node.scale_up.kind, ScaleUpKind::Pcie);
  EXPECT_EQ(here.node.scale_up.bandwidth, gigabytes_per_second(26.0 * 0.95));
  // One such pair is enough: a ring has to cross it.
  GpuHost pairs = host_with(card, 4, 50.0, 12.0);
  pairs.peer_copies[1][2] = pairs.peer_copies[2][1] = kNone;
  EXPECT_EQ(describe_gpus(pairs, server(), {4}).node.scale_up.bandwidth,
            gigabytes_per_second(12.0 * 0.95));
}

TEST(GpuMachine, DistinguishesPcieFromNvlinkAndEqualLinksFromUnequal) {
  const auto kind = [](const GpuHost& host) {
    return describe_gpus(host, server(), {4}).node.scale_up.kind;
  };
  EXPECT_EQ(kind(host_with(h100(), 4, 50.0, 52.0)), ScaleUpKind::Pcie);
  EXPECT_EQ(kind(host_with(h100(), 4, 90.0, 25.0)), ScaleUpKind::Switched);
  // A host link as fast as NVLink itself (NVLink-C2C).
  EXPECT_EQ(kind(host_with(h100(), 4, 390.0, 380.0)), ScaleUpKind::Switched);
  GpuHost mesh = host_with(h100(), 4, 45.0, 12.0);
  mesh.peer_copies[0][1] = mesh.peer_copies[1][0] = gigabytes_per_second(90.0);
  EXPECT_EQ(kind(mesh), ScaleUpKind::Mesh);
  EXPECT_EQ(describe_gpus(mesh, server(), {4}).node.scale_up.bandwidth, gigabytes_per_second(45.0));
}

TEST(GpuMachine, RanksThatShareAGpuShareItsMemory) {
  const ClusterSpec here = describe_gpus(host_with(h100(), 1, 0.0, 50.0), server(), {4, 1, 4});
  EXPECT_EQ(here.accelerator.memory, Bytes(8.4929e10 / 4.0));
  EXPECT_EQ(here.node.accelerators, 4);
  // A launcher that shows each process one of four GPUs is another case.
  EXPECT_EQ(describe_gpus(host_with(h100(), 1, 0.0, 50.0), server(), {4}).accelerator.memory,
            Bytes(8.4929e10));
}

TEST(GpuMachine, FindsProfilesByTheNamesOfCuda) {
  for (const auto& [name, profile] : std::vector<std::pair<const char*, const char*>>{
           {"NVIDIA H200", "h200"},
           {"NVIDIA H100 80GB HBM3", "h100-sxm"},
           {"NVIDIA H100 PCIe", "h100-pcie"},
           {"NVIDIA H100 80GB HBM3 MIG 3g.40gb", "h100-sxm"},
           {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
           {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
           {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
           {"NVIDIA GeForce RTX 4090", "rtx4090"},
           {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
           {"Tesla V100-SXM2-16GB", "v100-sxm2-32gb"},
           {"NVIDIA L40S", "l40s"},
           {"NVIDIA GH200 480GB", "gh200"},
           {"NVIDIA GB200", "gb200"},
           {"NVIDIA B200", "b200"}})
    EXPECT_EQ(described(gpu(name, "9.0", 132, 1.8e9)).accelerator.name, profile) << name;
}

// A slice of a card (MIG), or a sibling with fewer multiprocessors.
TEST(GpuMachine, PeaksFollowTheMultiprocessors) {
  GpuFacts slice = h100();
  slice.multiprocessors = 60;
  const AcceleratorSpec shipped = load_accelerator("h100-sxm");
  const AcceleratorSpec device = described(slice).accelerator;
  EXPECT_EQ(device.compute_units, 60);
  EXPECT_DOUBLE_EQ(device.matrix.bf16.value(), shipped.matrix.bf16.value() * 60.0 / 132.0);
  EXPECT_DOUBLE_EQ(device.vector_fp32.value(), shipped.vector_fp32.value() * 60.0 / 132.0);
  EXPECT_EQ(device.sources.at("/matrix/bf16_flop_per_s").confidence, Confidence::Derived);
}

TEST(GpuMachine, KeepsFiguresThatTheDriverDoesNotReport) {
  GpuFacts silent = h100();
  silent.clock = Hertz(0);
  silent.memory_bandwidth = kNone;
  const AcceleratorSpec shipped = load_accelerator("h100-sxm");
  const AcceleratorSpec device = described(silent).accelerator;
  EXPECT_EQ(device.max_clock, shipped.max_clock);
  EXPECT_EQ(device.memory_bandwidth, shipped.memory_bandwidth);
  EXPECT_EQ(device.sources.at("/max_clock_hz"), shipped.sources.at("/max_clock_hz"));
}

// Compared with NVIDIA's data sheets: A10 (125 TFLOP/s in bf16, 62.5 in tf32, 31.2 in fp32), L4
// (121), RTX 3090 (71) and RTX 5090 (209.5, with fp32 accumulation), at their clocks.
TEST(GpuMachine, UnknownDevicesHaveThePeaksOfTheirCapability) {
  const auto teraflops = [](FlopPerSecond peak) { return peak.value() * 1e-12; };
  const AcceleratorSpec a10 = described(gpu("NVIDIA A10", "8.6", 72, 1.695e9)).accelerator;
  EXPECT_EQ(a10.name, "NVIDIA A10");
  EXPECT_NEAR(teraflops(a10.matrix.bf16), 125.0, 1.0);
  EXPECT_NEAR(teraflops(a10.matrix.tf32), 62.5, 0.5);
  EXPECT_NEAR(teraflops(a10.vector_fp32), 31.2, 0.3);
  EXPECT_EQ(a10.matrix.fp8.value(), 0.0);
  EXPECT_EQ(a10.sources.at("/matrix/bf16_flop_per_s").confidence, Confidence::Assumed);
  EXPECT_THAT(a10.sources.at("/matrix/bf16_flop_per_s").source, HasSubstr("GA102"));
  EXPECT_EQ(a10.sources.at("/memory/capacity_bytes").confidence, Confidence::Measured);
  const auto bf16 = [&](const GpuFacts& facts) {
    return teraflops(described(facts).accelerator.matrix.bf16);
  };
  EXPECT_NEAR(bf16(gpu("NVIDIA L4", "8.9", 58, 2.04e9)), 121.0, 1.0);
  EXPECT_NEAR(bf16(gpu("NVIDIA GeForce RTX 3090", "8.6", 82, 1.695e9)), 71.0, 1.0);
  EXPECT_NEAR(bf16(gpu("NVIDIA GeForce RTX 5090", "12.0", 170, 2.407e9)), 209.5, 2.0);
}

TEST(GpuMachine, CapabilitiesGiveThePeaksOfShippedDevices) {
  for (const auto& [name, capability] :
       std::vector<std::pair<const char*, const char*>>{{"v100-sxm2-32gb", "7.0"},
                                                        {"a100-80gb", "8.0"},
                                                        {"l40s", "8.9"},
                                                        {"h100-sxm", "9.0"},
                                                        {"h100-pcie", "9.0"}}) {
    const AcceleratorSpec shipped = load_accelerator(name);
    const GpuFacts facts =
        gpu("some GPU", capability, shipped.compute_units, shipped.max_clock.value());
    const AcceleratorSpec device = described(facts).accelerator;
    EXPECT_NEAR(device.matrix.fp16 / shipped.matrix.fp16, 1.0, 0.015) << name;
    // Hopper's data sheets state fp32 at 1.98 GHz and matrix products at 1.83 GHz.
    EXPECT_NEAR(device.vector_fp32 / shipped.vector_fp32, 1.0, 0.085) << name;
    EXPECT_EQ(device.matrix.bf16.value() > 0.0, shipped.matrix.bf16.value() > 0.0) << name;
    EXPECT_EQ(device.matrix.fp8.value() > 0.0, shipped.matrix.fp8.value() > 0.0) << name;
    EXPECT_EQ(has_bf16(facts), shipped.matrix.bf16.value() > 0.0) << name;
    EXPECT_EQ(device.architecture, shipped.architecture) << name;
  }
}

// The reader adds sources for its defaults; only the figures count here. The file omits the network
// of a single host.
ClusterSpec without_sources(ClusterSpec cluster) {
  cluster.sources.clear();
  cluster.accelerator.sources.clear();
  cluster.node.sources.clear();
  if (cluster.fabric.kind == FabricKind::None) cluster.fabric = {};
  cluster.fabric.sources.clear();
  cluster.stack->sources.clear();
  return cluster;
}

TEST(GpuMachine, ProfilesReadBackAsTheyWere) {
  for (const ClusterSpec& here :
       {eight_h100(1), eight_h100(3), described(gpu("NVIDIA A10", "8.6", 72, 1.695e9)),
        described(gpu("NVIDIA GeForce RTX 4090", "8.9", 128, 2.52e9))}) {
    const ClusterSpec read = read_cluster(to_json(here), "here.json", PartLibrary());
    EXPECT_EQ(without_sources(read), without_sources(here)) << here.accelerator.name;
    EXPECT_THAT(read.filled_in, testing::IsEmpty());
    EXPECT_EQ(read.accelerator.sources.at("/compute_units"),
              here.accelerator.sources.at("/compute_units"));
  }
}

Seconds step_on(const ClusterSpec& cluster) {
  Scenario scenario{load_model("llama3-8b"), cluster, load_stack("shardwright"), Plan()};
  scenario.plan.tp = 8;
  scenario.plan.seq_len = 4096;
  scenario.plan.global_batch = 8;
  scenario.plan.precision = Precision::Bf16;
  return sim::simulate_step(scenario).step;
}

// Before anything is timed, a DGX H100 that describes itself is near the shipped profile.
TEST(GpuMachine, StepsAreNearThoseOfTheShippedCluster) {
  EXPECT_NEAR(step_on(eight_h100(1)) / step_on(load_cluster("dgx-h100")), 1.0, 0.25);
}

TEST(ProbeModels, RunOnTheirDeviceAndFit) {
  for (const Device device : {Device::Cpu, Device::Cuda}) {
    const bool on_gpu = device == Device::Cuda;
    const ClusterSpec machine = on_gpu ? eight_h100(1) : describe_machine(1, 1);
    for (const Scenario& scenario : probe_scenarios(machine, device)) {
      EXPECT_NO_THROW(
          check_executable(scenario.model, scenario.plan, scenario.stack, on_gpu, "plan"))
          << scenario.model.name;
      const Program program = lower(scenario.model, scenario.plan, scenario.stack);
      EXPECT_LT(sim::peak_memory(program, scenario.stack).front().peak,
                on_gpu ? gigabytes(8.0) : gigabytes(1.0))
          << scenario.model.name;
      EXPECT_NO_THROW(read_scenario(to_json(scenario), "plan.json")) << scenario.model.name;
    }
  }
}

}  // namespace
}  // namespace shardwright::executor
