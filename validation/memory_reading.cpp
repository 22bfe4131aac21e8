#include "validation/memory_reading.hpp"

namespace shardwright::validation {

const sim::MemoryPeak& peak_read(const sim::StepResult& result, const MemoryReading& reading) {
  return reading.last_stage ? result.stages.back().memory : result.memory();
}

Bytes read_memory(const sim::StepResult& result, const MemoryReading& reading) {
  const sim::MemoryPeak& peak = peak_read(result, reading);
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

}  // namespace shardwright::validation
