#include "validation/memory_reading.hpp"

namespace shardwright::sim {

const MemoryPeak& peak_read(const StepResult& result, const MemoryReading& reading) {
  return reading.last_stage ? result.stages.back().memory : result.memory();
}

Bytes read_memory(const StepResult& result, const MemoryReading& reading) {
  const MemoryPeak& peak = peak_read(result, reading);
  switch (reading.counter) {
    case MemoryCounter::Allocated:
      return peak.allocated();
    case MemoryCounter::Reserved:
      return peak.reserved();
    case MemoryCounter::Device:
      break;
  }
  return peak.peak;
}

}  // namespace shardwright::sim
