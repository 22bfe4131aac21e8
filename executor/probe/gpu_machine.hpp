// The initial profile of a machine with GPUs, from what CUDA and Linux report.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "executor/probe/machine.hpp"

namespace shardwright::executor {

// Properties of a GPU from the CUDA driver.
struct GpuFacts {
  std::string name, bus_id;
  std::string compute_capability;
  Bytes memory, l2_cache;
  std::int64_t multiprocessors = 0;
  // The highest clock of the multiprocessors.
  Hertz clock;
  // The memory's clock times the width of its bus, two transfers per clock.
  BytesPerSecond memory_bandwidth;
};

// The GPUs of this host, and speeds of copies to, from and between them.
struct GpuHost {
  std::vector<GpuFacts> gpus;
  // The best of several copies of 256 MiB between page-locked memory of the host and the first GPU.
  BytesPerSecond host_to_gpu, gpu_to_host;
  // Indexed by [from][to]; 0 on the diagonal and for GPUs that cannot access each other's memory.
  std::vector<std::vector<BytesPerSecond>> peer_copies;
};

// Returns the GPUs that this process sees. If there are none, or the build has no CUDA, `why_none`
// says why. Throws CudaError.
std::vector<GpuFacts> list_gpus(std::string& why_none);

// The same with timed copies. Changes the calling thread's GPU and creates a context on each GPU.
GpuHost probe_gpus(std::string& why_none);

struct RanksOnGpus {
  std::int64_t per_host = 1, hosts = 1;
  // If above 1, ranks share GPUs, and each gets a part of the memory.
  std::int64_t per_gpu = 1;
};

// Describes a cluster of `ranks.hosts` hosts like this one, whose GPUs all equal the first one;
// `gpus` must not be empty.
//
// The GPU is the shipped profile that matches its name, with CUDA's values for memory, L2,
// multiprocessors, clock and memory bandwidth. Peaks scale with the number of multiprocessors but
// not with the clock, whose maximum is not reached under load. An unknown GPU gets peaks by compute
// capability (`matrix_flop_per_clock`) and default efficiencies.
//
// Links among GPUs start with the slowest copy between two of them, or with copies through the host
// if some cannot access each other's memory or too few are visible. With direct links but no
// switch, a copy uses only some of the links; timed communication then gives higher figures.
ClusterSpec describe_gpus(const GpuHost& gpus, const HostFacts& host, const RanksOnGpus& ranks);

// Returns FLOP per clock and multiprocessor of dense 16-bit matrix products with fp32 accumulation,
// by name and compute capability ("9.0"); for an unknown capability, those of the nearest below.
// GeForce cards from Ampere on reach half. Sources: NVIDIA's architecture white papers (V100,
// Turing, A100, GA102, Ada, H100, Blackwell, RTX Blackwell).
double matrix_flop_per_clock(const GpuFacts& gpu);

// True if the GPU multiplies in bf16, the executor's format on GPUs: from compute capability 8.0 on
// (NVIDIA A100 Tensor Core GPU Architecture).
bool has_bf16(const GpuFacts& gpu);

// Returns GPUs and network devices as JSON:
//
// {"gpus": [{"name", "bus_id", "compute_capability", "memory_bytes", "l2_bytes", "multiprocessors",
//   "clock_hz", "memory_bytes_per_s"}], "host_to_gpu_bytes_per_s", "gpu_to_host_bytes_per_s",
//  "peer_copy_bytes_per_s": [[…]], "network_devices": [{"name", "bytes_per_s", "rdma"}]}
nlohmann::ordered_json hardware_json(const GpuHost& host,
                                     const std::vector<NetworkDevice>& devices);

}  // namespace shardwright::executor
