// Memory snapshots of PyTorch's allocator (torch.cuda.memory._dump_snapshot): how much was
// allocated at the peak, and by whom.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/pickle.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// What one place of the program holds at the peak.
struct AllocationSite {
  // "forward (gpt/model.py:88)", the innermost call first; none where it was not recorded.
  std::vector<std::string> frames;
  Bytes bytes;
  std::int64_t allocations = 0;
};

struct DeviceMemory {
  std::int64_t device = 0;
  // Events of the history. Without any, the peak is the state of the snapshot.
  std::int64_t events = 0;
  // The highest levels since the history begins: torch.cuda.max_memory_allocated and
  // max_memory_reserved. Allocations count as the allocator rounds them, to multiples of 512 bytes.
  Bytes peak_allocated, peak_reserved;
  // While `peak_allocated` holds: what is reserved, and the free part of segments that hold a
  // tensor, which can neither be returned to the device nor serve a larger tensor.
  Bytes reserved_at_peak, split_at_peak;
  Bytes allocated_at_end, reserved_at_end;
  // Attempts that failed for want of memory.
  std::int64_t out_of_memory = 0;
  // They add up to `peak_allocated`; largest first.
  std::vector<AllocationSite> sites;

  // The share of the reserved memory that is free but split.
  double fragmentation() const;
};

struct MemorySnapshot {
  std::string file;
  // Those with memory or a history.
  std::vector<DeviceMemory> devices;
  // Events without an address or a size.
  std::int64_t unusable_events = 0;
};

// The state at the start of the history is the one at its end with all events undone. Throws
// InputError where the document has no segments.
MemorySnapshot memory_snapshot(const PickleValue& document, const std::string& source);

nlohmann::ordered_json to_json(const MemorySnapshot& snapshot);

}  // namespace shardwright::calibration
