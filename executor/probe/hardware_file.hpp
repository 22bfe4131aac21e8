// GPUs and network devices that a probe has found, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "executor/probe/gpu_facts.hpp"
#include "executor/probe/network_devices.hpp"

namespace shardwright::executor {

// {"gpus": [{"name", "bus_id", "compute_capability", "memory_bytes", "l2_bytes", "multiprocessors",
//   "clock_hz", "memory_bytes_per_s"}], "host_to_gpu_bytes_per_s", "gpu_to_host_bytes_per_s",
//  "peer_copy_bytes_per_s": [[…]], "network_devices": [{"name", "bytes_per_s", "rdma"}]}
nlohmann::ordered_json hardware_json(const GpuHost& host,
                                     const std::vector<NetworkDevice>& devices);

}  // namespace shardwright::executor
