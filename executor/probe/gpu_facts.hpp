// Properties of this host's GPUs from the CUDA driver, and speeds of copies to, from and between
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace shardwright::executor {

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

struct GpuHost {
  std::vector<GpuFacts> gpus;
  // The best of several copies of 256 MiB between page-locked memory of the host and the first GPU.
  BytesPerSecond host_to_gpu, gpu_to_host;
  // By [from][to]; 0 on the diagonal and for GPUs that cannot access each other's memory.
  std::vector<std::vector<BytesPerSecond>> peer_copies;
};

// Returns the GPUs that this process sees. If there are none, or the build has no CUDA, `why_none`
// says why. Throws CudaError.
std::vector<GpuFacts> list_gpus(std::string& why_none);

// The same with timed copies. Changes the calling thread's GPU and creates a context on each GPU.
GpuHost probe_gpus(std::string& why_none);

}  // namespace shardwright::executor
