// What a published figure of peak memory counts, of which rank, and in which unit.
//
// A source names its counter in prose or not at all; then it is what the framework's own log
// prints.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/step/step_result.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

enum class MemoryCounter : std::uint8_t {
  Allocated,  // tensors: torch.cuda.max_memory_allocated
  Reserved,   // what the allocator holds of the device: torch.cuda.max_memory_reserved
  Device,     // all that the device holds, as nvidia-smi shows it
};

struct MemoryReading {
  MemoryCounter counter = MemoryCounter::Device;
  Bytes unit = gigabytes(1.0);
  bool last_stage = false;  // of the rank that writes the log, not of the fullest one

  bool operator==(const MemoryReading&) const = default;
};

MemoryReading memory_reading_of(const TrainingRow& row, const StackSpec& stack);

// The simulated memory of the stage that is read.
const MemoryPeak& peak_read(const StepResult& result, const MemoryReading& reading);

// What the counter would show in the simulated step.
Bytes read_memory(const StepResult& result, const MemoryReading& reading);

}  // namespace shardwright::sim
