// How a published figure of peak memory was counted, and on which rank.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/units.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::validation {

enum class MemoryCounter : std::uint8_t {
  Allocated,  // tensors: torch.cuda.max_memory_allocated
  Reserved,   // what the allocator holds of the device: torch.cuda.max_memory_reserved
  Device,     // all that the device holds, as nvidia-smi shows it
};
constexpr auto enum_names(MemoryCounter) {
  return std::array{"allocated", "reserved", "device"};
}

struct MemoryReading {
  MemoryCounter counter = MemoryCounter::Device;
  // The figure is of the rank that writes the log, not of the fullest one.
  bool last_stage = false;

  bool operator==(const MemoryReading&) const = default;
};

// The simulated memory of the stage that is read.
const sim::MemoryPeak& peak_read(const sim::StepResult& result, const MemoryReading& reading);

// What the counter would show in the simulated step.
Bytes read_memory(const sim::StepResult& result, const MemoryReading& reading);

}  // namespace shardwright::validation
