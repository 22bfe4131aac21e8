#include "executor/probe/gpu_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/spec/profile_library.hpp"

namespace shardwright::executor {
namespace {

// The multiprocessor of a GPU generation.
struct Multiprocessor {
  double capability;
  Architecture architecture;
  // FLOP per clock.
  double matrix_16_bit, vector_fp32;
  // Support for bf16 (which came with tf32) and fp8.
  bool bf16, fp8;
  // GeForce cards run products with fp32 accumulation at half speed.
  bool halved_on_geforce;
  const char* source;
};

constexpr std::array kMultiprocessors = {
    Multiprocessor{7.0, Architecture::Volta, 1024, 128, false, false, false,
                   "NVIDIA Tesla V100 GPU Architecture"},
    Multiprocessor{7.5, Architecture::Turing, 1024, 128, false, false, true,
                   "NVIDIA Turing GPU Architecture"},
    Multiprocessor{8.0, Architecture::Ampere, 2048, 128, true, false, false,
                   "NVIDIA A100 Tensor Core GPU Architecture"},
    Multiprocessor{8.6, Architecture::Ampere, 1024, 256, true, false, true,
                   "NVIDIA Ampere GA102 GPU Architecture"},
    Multiprocessor{8.9, Architecture::Ada, 1024, 256, true, true, true,
                   "NVIDIA Ada GPU Architecture"},
    Multiprocessor{9.0, Architecture::Hopper, 4096, 256, true, true, false,
                   "NVIDIA H100 Tensor Core GPU Architecture"},
    Multiprocessor{10.0, Architecture::Blackwell, 8192, 256, true, true, false,
                   "NVIDIA Blackwell Architecture Technical Brief"},
    Multiprocessor{12.0, Architecture::RtxBlackwell, 1024, 256, true, true, true,
                   "NVIDIA RTX Blackwell GPU Architecture"}};

// Estimates that hold until the probe's measurements replace them.
// PCIe 4 x16.
constexpr BytesPerSecond kAssumedHostLink = BytesPerSecond(25e9);
// Per multiprocessor: 250 W for 72, 700 W for 132, …
constexpr Watts kAssumedPower = Watts(3.5);
constexpr Watts kAssumedHostPower = Watts(300.0);
constexpr double kAssumedIdle = 0.1;

// Parses a compute capability such as "8.6"; returns 0 if it is not a number.
double capability_of(const GpuFacts& gpu) {
  return std::strtod(gpu.compute_capability.c_str(), nullptr);
}

const Multiprocessor& multiprocessor_of(const GpuFacts& gpu) {
  const double capability = capability_of(gpu);
  const Multiprocessor* nearest = kMultiprocessors.data();
  for (const Multiprocessor& each : kMultiprocessors)
    if (each.capability <= capability) nearest = &each;
  return *nearest;
}

void set_unknown(AcceleratorSpec& device, const GpuFacts& gpu) {
  const Multiprocessor& unit = multiprocessor_of(gpu);
  const double clocks = static_cast<double>(gpu.multiprocessors) * gpu.clock.value();
  const FlopPerSecond matrix(clocks * matrix_flop_per_clock(gpu));
  device.name = gpu.name;
  device.vendor = "nvidia";
  device.architecture = unit.architecture;
  device.matrix.fp32 = device.vector_fp32 = FlopPerSecond(clocks * unit.vector_fp32);
  device.matrix.fp16 = matrix;
  if (unit.bf16) {
    device.matrix.bf16 = matrix;
    device.matrix.tf32 = matrix / 2.0;
  }
  if (unit.fp8) device.matrix.fp8 = matrix * 2.0;
  device.power = kAssumedPower * static_cast<double>(gpu.multiprocessors);
  device.idle_power = device.power * kAssumedIdle;
  device.notes = fmt::format(
      "No shipped profile describes it: its peaks are those of compute capability {}, which its "
      "clock under load may not reach.",
      gpu.compute_capability);
  const Provenance estimate{
      fmt::format("multiprocessors times clock times FLOP per clock ({})", unit.source),
      Confidence::Assumed};
  for (const char* figure :
       {"/matrix/fp32_flop_per_s", "/matrix/fp16_flop_per_s", "/matrix/bf16_flop_per_s",
        "/matrix/tf32_flop_per_s", "/matrix/fp8_flop_per_s", "/vector_fp32_flop_per_s"})
    device.sources[figure] = estimate;
}

// Adapts the peaks of a profile to a GPU with another number of multiprocessors, for instance a MIG
// slice.
void scale_peaks(AcceleratorSpec& device, std::int64_t multiprocessors) {
  const double share =
      static_cast<double>(multiprocessors) / static_cast<double>(device.compute_units);
  for (auto [peak, figure] : {std::pair(&device.matrix.fp32, "/matrix/fp32_flop_per_s"),
                              {&device.matrix.tf32, "/matrix/tf32_flop_per_s"},
                              {&device.matrix.fp16, "/matrix/fp16_flop_per_s"},
                              {&device.matrix.bf16, "/matrix/bf16_flop_per_s"},
                              {&device.matrix.fp8, "/matrix/fp8_flop_per_s"},
                              {&device.matrix.fp4, "/matrix/fp4_flop_per_s"},
                              {&device.vector_fp32, "/vector_fp32_flop_per_s"}}) {
    *peak = *peak * share;
    device.sources[figure] = {fmt::format("that of the {} by {} of {} multiprocessors", device.name,
                                          multiprocessors, device.compute_units),
                              Confidence::Derived};
  }
  if (device.exponentials_per_s <= 0.0) return;
  device.exponentials_per_s *= share;
  device.sources["/exponentials_per_s"] = device.sources["/vector_fp32_flop_per_s"];
}

// Drivers report an unknown figure as 0.
template <class Value>
void replace(Value& figure, Value stated, const char* pointer, const Provenance& measured,
             Sources& sources) {
  if (!(stated > Value{})) return;
  figure = stated;
  sources[pointer] = measured;
}

AcceleratorSpec device_of(const GpuHost& host, const RanksOnGpus& ranks) {
  const GpuFacts& gpu = host.gpus.front();
  // CUDA names a slice of a device after the device: "NVIDIA H100 80GB HBM3 MIG 3g.40gb".
  const std::optional<std::string> known =
      find_accelerator(gpu.name.substr(0, gpu.name.find(" MIG ")));
  AcceleratorSpec device = known ? load_accelerator(*known) : AcceleratorSpec();
  if (!known) set_unknown(device, gpu);
  if (known && gpu.multiprocessors > 0 && gpu.multiprocessors != device.compute_units)
    scale_peaks(device, gpu.multiprocessors);
  const Provenance measured{probe_source(gpu.name), Confidence::Measured};
  const auto take = [&](auto& figure, auto stated, const char* pointer) {
    replace(figure, stated, pointer, measured, device.sources);
  };
  take(device.memory, gpu.memory / static_cast<double>(ranks.per_gpu), "/memory/capacity_bytes");
  take(device.memory_bandwidth, gpu.memory_bandwidth, "/memory/bandwidth_bytes_per_s");
  take(device.l2_cache, gpu.l2_cache, "/memory/l2_cache_bytes");
  take(device.compute_units, gpu.multiprocessors, "/compute_units");
  take(device.max_clock, gpu.clock, "/max_clock_hz");
  // The node's link is the speed that copies reach.
  if (host.host_to_gpu > BytesPerSecond(0)) {
    device.efficiency.host_link = 1.0;
    device.sources["/efficiency/host_link_ratio"] = measured;
  }
  return device;
}

BytesPerSecond host_link(const GpuHost& host) {
  const BytesPerSecond slower = std::min(host.host_to_gpu, host.gpu_to_host);
  return slower > BytesPerSecond(0) ? slower : kAssumedHostLink;
}

// The slowest and fastest copy between two of the first GPUs; nothing if two of them cannot access
// each other's memory or fewer GPUs are visible.
struct PeerRates {
  BytesPerSecond slowest, fastest;
};
std::optional<PeerRates> peer_rates(const GpuHost& host, std::int64_t gpus) {
  const auto count = static_cast<std::size_t>(gpus);
  if (count < 2 || host.peer_copies.size() < count) return std::nullopt;
  std::optional<PeerRates> rates;
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const BytesPerSecond rate = host.peer_copies[from].at(to);
      if (!(rate > BytesPerSecond(0))) return std::nullopt;
      if (!rates) rates = {rate, rate};
      rates->slowest = std::min(rates->slowest, rate);
      rates->fastest = std::max(rates->fastest, rate);
    }
  }
  return rates;
}

// PCIe between GPUs is no faster than to the host, and the fastest slot, 6.0 x16, reaches 128 GB/s.
bool is_nvlink(const PeerRates& rates, BytesPerSecond host_link) {
  constexpr double kFaster = 1.5;
  constexpr BytesPerSecond kFastestSlot = BytesPerSecond(130e9);
  return rates.slowest > host_link * kFaster || rates.slowest > kFastestSlot;
}

ScaleUpSpec links_of(const GpuHost& host, const RanksOnGpus& ranks) {
  // Pairs differ in their number of links.
  constexpr double kUnequal = 1.5;
  ScaleUpSpec links;
  // Relative to the speed that copies reach.
  links.ring_efficiency = links.pair_efficiency = 1.0;
  links.domain = ranks.per_host;
  const std::optional<PeerRates> rates =
      ranks.per_gpu > 1 ? std::nullopt : peer_rates(host, ranks.per_host);
  if (!rates) {
    links.kind = ScaleUpKind::Pcie;
    links.name = "through the host";
    links.bandwidth = host_link(host);
    links.latency = microseconds(8.0);
    return links;
  }
  links.bandwidth = rates->slowest;
  if (!is_nvlink(*rates, host_link(host))) {
    links.kind = ScaleUpKind::Pcie;
    links.name = "PCIe";
    links.latency = microseconds(4.0);
    return links;
  }
  links.kind =
      rates->fastest > rates->slowest * kUnequal ? ScaleUpKind::Mesh : ScaleUpKind::Switched;
  links.name = "NVLink";
  return links;
}

// Returns the number of NICs that NCCL uses: all RDMA devices of the highest speed.
std::int64_t nics_of(const HostFacts& host) {
  const BytesPerSecond fastest = fastest_network(host.networks);
  const auto count = std::count_if(
      host.networks.begin(), host.networks.end(),
      [&](const NetworkDevice& device) { return device.rdma && device.bandwidth == fastest; });
  return std::max<std::int64_t>(1, count);
}

NodeSpec node_of(const GpuHost& gpus, const HostFacts& host, const RanksOnGpus& ranks) {
  NodeSpec node = node_on(host, ranks.per_host, ranks.hosts);
  node.scale_up = links_of(gpus, ranks);
  if (ranks.hosts > 1) node.nic.per_node = nics_of(host);
  node.host.accelerator_link = host_link(gpus);
  node.power_overhead = kAssumedHostPower * static_cast<double>(ranks.per_host);
  if (gpus.host_to_gpu > BytesPerSecond(0)) {
    const Provenance measured{probe_source(gpus.gpus.front().name), Confidence::Measured};
    node.sources["/scale_up/bandwidth_bytes_per_s"] = measured;
    node.sources["/host/accelerator_link_bytes_per_s"] = measured;
  }
  return node;
}

}  // namespace

double matrix_flop_per_clock(const GpuFacts& gpu) {
  const Multiprocessor& unit = multiprocessor_of(gpu);
  const bool halved = unit.halved_on_geforce && gpu.name.find("GeForce") != std::string::npos;
  return halved ? unit.matrix_16_bit / 2.0 : unit.matrix_16_bit;
}

bool has_bf16(const GpuFacts& gpu) {
  return multiprocessor_of(gpu).bf16;
}

ClusterSpec describe_gpus(const GpuHost& gpus, const HostFacts& host, const RanksOnGpus& ranks) {
  ClusterSpec cluster;
  cluster.name = "here";
  cluster.accelerator = device_of(gpus, ranks);
  cluster.node = node_of(gpus, host, ranks);
  cluster.fabric = network_of(ranks.hosts);
  cluster.nodes = ranks.hosts;
  cluster.stack = load_stack("shardwright");
  // The links are fitted to the executor's own communication.
  const Provenance shown{"the links are those that its own exchanges show", Confidence::Derived};
  cluster.stack->communication.collective_ratio = cluster.stack->communication.all_to_all_ratio =
      1.0;
  cluster.stack->sources["/communication/collective_ratio"] = shown;
  cluster.stack->sources["/communication/all_to_all_ratio"] = shown;
  return cluster;
}

nlohmann::ordered_json hardware_json(const GpuHost& host,
                                     const std::vector<NetworkDevice>& devices) {
  using nlohmann::ordered_json;
  ordered_json gpus = ordered_json::array(), peers = ordered_json::array(),
               networks = ordered_json::array();
  for (const GpuFacts& gpu : host.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"bus_id", gpu.bus_id},
                    {"compute_capability", gpu.compute_capability},
                    {"memory_bytes", gpu.memory.value()},
                    {"l2_bytes", gpu.l2_cache.value()},
                    {"multiprocessors", gpu.multiprocessors},
                    {"clock_hz", gpu.clock.value()},
                    {"memory_bytes_per_s", gpu.memory_bandwidth.value()}});
  }
  for (const auto& from : host.peer_copies) {
    ordered_json& row = peers.emplace_back(ordered_json::array());
    for (const BytesPerSecond rate : from) row.push_back(rate.value());
  }
  for (const NetworkDevice& device : devices) {
    networks.push_back(
        {{"name", device.name}, {"bytes_per_s", device.bandwidth.value()}, {"rdma", device.rdma}});
  }
  return {{"gpus", std::move(gpus)},
          {"host_to_gpu_bytes_per_s", host.host_to_gpu.value()},
          {"gpu_to_host_bytes_per_s", host.gpu_to_host.value()},
          {"peer_copy_bytes_per_s", std::move(peers)},
          {"network_devices", std::move(networks)}};
}

}  // namespace shardwright::executor
