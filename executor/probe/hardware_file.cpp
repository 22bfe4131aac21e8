#include "executor/probe/hardware_file.hpp"

#include <nlohmann/json.hpp>

namespace shardwright::executor {

using nlohmann::ordered_json;

ordered_json hardware_json(const GpuHost& host, const std::vector<NetworkDevice>& devices) {
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
