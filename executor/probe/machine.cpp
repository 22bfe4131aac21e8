#include "executor/probe/machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>

#include "core/spec/profile_library.hpp"

namespace shardwright::executor {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return 1;
}

Bytes physical_memory() {
  return Bytes(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
               static_cast<double>(sysconf(_SC_PAGE_SIZE)));
}

Bytes cache_size() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  constexpr double kAssumed = 32e6;
  return Bytes(l3 > 0 ? static_cast<double>(l3) : l2 > 0 ? static_cast<double>(l2) : kAssumed);
}

// Returns the best of several copies larger than the caches; a copy both reads and writes.
BytesPerSecond copy_bandwidth() {
  constexpr std::size_t kBytes = 64 << 20;
  constexpr int kTries = 5;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    const auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    from[static_cast<std::size_t>(i)] = to[kBytes - 1];
  }
  return BytesPerSecond(2.0 * static_cast<double>(kBytes) / best);
}

// Estimates that hold until the probe's measurements replace them.
constexpr FlopPerSecond kAssumedRate = FlopPerSecond(2e10);
constexpr BytesPerSecond kAssumedLoopback = BytesPerSecond(2e9);
// Used if no device states its speed.
constexpr BytesPerSecond kAssumedNetwork = BytesPerSecond(1.25e8);
constexpr Watts kAssumedCorePower = Watts(8.0);

AcceleratorSpec rank_device(const HostFacts& host, std::int64_t ranks, const std::string& source) {
  AcceleratorSpec device;
  device.name = "cpu-rank";
  device.vendor = "cpu";
  device.architecture = Architecture::Cpu;
  device.matrix.fp32 = kAssumedRate;
  device.vector_fp32 = kAssumedRate;
  device.memory = host.memory / static_cast<double>(ranks);
  device.memory_bandwidth = copy_bandwidth();
  device.l2_cache = cache_size();
  device.compute_units = std::max<std::int64_t>(1, host.cores / ranks);
  device.max_clock = Hertz(1e9);
  device.power = kAssumedCorePower * static_cast<double>(device.compute_units);
  device.idle_power = device.power * 0.1;
  device.efficiency.memory = 1.0;
  device.efficiency.matrix_tf32 = 1.0;
  device.notes =
      fmt::format("What one of {} ranks gets of {} cores of {}.", ranks, host.cores, host.cpu);
  const Provenance measured{source, Confidence::Measured};
  device.sources["/memory/bandwidth_bytes_per_s"] = measured;
  device.sources["/memory/capacity_bytes"] = measured;
  device.sources["/compute_units"] = measured;
  return device;
}

// The executor's stack on CPUs: fp32 throughout, so no second copy of the weights, and no CUDA
// context.
StackSpec cpu_stack() {
  StackSpec stack = load_stack("shardwright");
  stack.name = "shardwright-cpu";
  stack.communication.collective_ratio = 1.0;
  stack.communication.all_to_all_ratio = 1.0;
  stack.overlap.slowdown = 0.5;
  // Calibration times collectives as they run, beside kernels.
  stack.overlap.collective_slowdown = 0.0;
  stack.host.launch_time = microseconds(2.0);
  stack.gradients.bucket_elements = 1e6;
  stack.memory.master_weight_bytes = Bytes(0);
  stack.memory.context = Bytes(40e6);
  stack.memory.communicator = Bytes(1e6);
  stack.notes = "Shardwright's own executor on CPUs, through Eigen and Gloo.";
  const Provenance shown{"the links are those that its own exchanges show", Confidence::Derived};
  const Provenance states{"the executor trains in fp32", Confidence::Derived};
  const Provenance estimate{"estimate for CPUs, not measured", Confidence::Assumed};
  for (const char* figure : {"/communication/collective_ratio", "/communication/all_to_all_ratio",
                             "/overlap/collective_slowdown_ratio"})
    stack.sources[figure] = shown;
  stack.sources["/memory/master_weight_bytes"] = states;
  for (const char* figure :
       {"/overlap/slowdown_ratio", "/host/launch_s", "/gradients/bucket_elements",
        "/memory/context_bytes", "/memory/communicator_bytes"})
    stack.sources[figure] = estimate;
  return stack;
}

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Returns the number at the beginning of a text, or 0 if there is none or it is not positive.
double leading_number(const std::string& text) {
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && value > 0.0 && value < 1e9 ? value : 0.0;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Returns the target of the link `device`, the hardware; empty if there is none.
fs::path hardware_of(const fs::path& device) {
  std::error_code error;
  return fs::exists(device / "device", error) ? fs::canonical(device / "device", error)
                                              : fs::path();
}

// Adds the rates ("100 Gb/sec (4X EDR)") of the ports with the state "4: ACTIVE".
BytesPerSecond active_rate(const fs::path& device) {
  constexpr double kBytesPerGigabit = 1e9 / 8.0;
  double rate = 0.0;
  for (const fs::path& port : entries(device / "ports")) {
    if (first_line(port / "state").find("ACTIVE") == std::string::npos) continue;
    rate += leading_number(first_line(port / "rate")) * kBytesPerGigabit;
  }
  return BytesPerSecond(rate);
}

}  // namespace

std::string probe_source(const std::string& device) {
  const std::time_t now = std::time(nullptr);
  return fmt::format("measured by shardwright probe, {:%Y-%m-%d}, {}", fmt::gmtime(now), device);
}

HostFacts host_facts() {
  return {cpu_model(), usable_cores(), physical_memory(), network_devices()};
}

NodeSpec node_on(const HostFacts& host, std::int64_t ranks, std::int64_t hosts) {
  const std::string source = probe_source(host.cpu);
  NodeSpec node;
  node.name = "host";
  node.accelerators = ranks;
  node.scale_up.kind = ScaleUpKind::Switched;
  node.scale_up.name = "loopback";
  node.scale_up.bandwidth = kAssumedLoopback;
  node.scale_up.ring_efficiency = 1.0;
  node.scale_up.pair_efficiency = 1.0;
  node.scale_up.latency = microseconds(20.0);
  node.scale_up.collective_overhead = microseconds(30.0);
  node.scale_up.domain = ranks;
  node.nic.per_node = hosts > 1 ? 1 : 0;
  const BytesPerSecond stated = fastest_network(host.networks);
  node.nic.bandwidth = hosts == 1                   ? BytesPerSecond(0)
                       : stated > BytesPerSecond(0) ? stated
                                                    : kAssumedNetwork;
  node.nic.efficiency = 1.0;
  node.host.cpu = host.cpu;
  node.host.cores = host.cores;
  node.host.memory = host.memory;
  node.host.accelerator_link = kAssumedLoopback;
  node.power_overhead = Watts(50.0);
  node.sources["/host/cores"] = {source, Confidence::Measured};
  node.sources["/host/memory_bytes"] = {source, Confidence::Measured};
  return node;
}

FabricSpec network_of(std::int64_t hosts) {
  FabricSpec fabric;
  fabric.name = hosts > 1 ? "network" : "none";
  fabric.kind = hosts > 1 ? FabricKind::LeafSpine : FabricKind::None;
  fabric.protocol = FabricProtocol::Ethernet;
  fabric.base_latency = microseconds(50.0);
  for (std::int64_t nodes = 2; nodes < hosts; nodes *= 2)
    fabric.levels.push_back({nodes, 1.0, microseconds(1.0)});
  if (hosts > 1) fabric.levels.push_back({hosts, 1.0, microseconds(1.0)});
  return fabric;
}

ClusterSpec describe_machine(std::int64_t ranks_per_host, std::int64_t hosts) {
  const HostFacts host = host_facts();
  ClusterSpec cluster;
  cluster.name = "here";
  cluster.accelerator = rank_device(host, ranks_per_host, probe_source(host.cpu));
  cluster.node = node_on(host, ranks_per_host, hosts);
  cluster.fabric = network_of(hosts);
  cluster.nodes = hosts;
  cluster.stack = cpu_stack();
  return cluster;
}

std::vector<NetworkDevice> network_devices(const fs::path& sys) {
  constexpr double kBytesPerMegabit = 1e6 / 8.0;
  std::vector<NetworkDevice> devices;
  std::set<fs::path> with_rdma;
  for (const fs::path& device : entries(sys / "class" / "infiniband")) {
    const BytesPerSecond rate = active_rate(device);
    if (rate <= BytesPerSecond(0)) continue;
    devices.push_back({device.filename().string(), rate, true});
    with_rdma.insert(hardware_of(device));
  }
  for (const fs::path& device : entries(sys / "class" / "net")) {
    const fs::path hardware = hardware_of(device);
    const bool up = first_line(device / "operstate") == "up";
    if (hardware.empty() || !up || with_rdma.count(hardware) > 0) continue;
    devices.push_back(
        {device.filename().string(),
         BytesPerSecond(leading_number(first_line(device / "speed")) * kBytesPerMegabit), false});
  }
  return devices;
}

BytesPerSecond fastest_network(const std::vector<NetworkDevice>& devices) {
  BytesPerSecond fastest;
  for (const NetworkDevice& device : devices) fastest = std::max(fastest, device.bandwidth);
  return fastest;
}

}  // namespace shardwright::executor
