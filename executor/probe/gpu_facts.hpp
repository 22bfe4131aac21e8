// What the CUDA driver says of this host's GPUs, and how fast copies to, from and between them are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace shardwright::executor {

struct GpuFacts {
  std::string name, bus_id;
  std::string compute_capability;  // "9.0"
  Bytes memory, l2_cache;
  std::int64_t multiprocessors = 0;
  Hertz clock;                      // the highest of the multiprocessors
  BytesPerSecond memory_bandwidth;  // by the memory's clock and the width of its bus, two transfers
                                    // a clock
};

struct GpuHost {
  std::vector<GpuFacts> gpus;
  // Copies of 256 MiB, the best of several; page-locked memory of the host and the first GPU.
  BytesPerSecond host_to_gpu, gpu_to_host;
  // [from][to]; 0 where the GPUs cannot reach each other's memory, and for one by itself.
  std::vector<std::vector<BytesPerSecond>> peer_copies;
};

// Those that this process sees. None, with the reason in `why_none`, where there are none or the
// build is without CUDA. Throws CudaError.
std::vector<GpuFacts> list_gpus(std::string& why_none);

// The same with timed copies. The calling thread has another GPU afterwards, and the process a
// context on each.
GpuHost probe_gpus(std::string& why_none);

}  // namespace shardwright::executor
