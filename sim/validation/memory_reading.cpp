#include "sim/validation/memory_reading.hpp"

#include <optional>
#include <string>

#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// Some sources give two figures, the allocated one first.
std::optional<MemoryCounter> counter_in(const std::string& notes) {
  if (says_any(notes, {"max_memory_allocated", "max_memory_usage", "max-allocated",
                       "peak allocated", "max allocated"}))
    return MemoryCounter::Allocated;
  if (says_any(notes, {"max_memory_reserved", "max-reserved", "peak reserved", "max reserved"}))
    return MemoryCounter::Reserved;
  if (says_any(notes, {"nvidia-smi", "nvml"})) return MemoryCounter::Device;
  return std::nullopt;
}

// Of Megatron-DeepSpeed, too, which logs nothing of its own by default.
bool is_deepspeed(const StackSpec& stack) {
  return says(stack.name, "deepspeed");
}

// torchtitan logs what the allocator has reserved (torchtitan/components/metrics.py). Megatron-LM's
// report_memory leads with what is allocated (megatron/training/utils.py).
MemoryCounter usual_counter(const StackSpec& stack) {
  if (stack.family == "pytorch") return MemoryCounter::Reserved;
  return stack.family == "megatron" && !is_deepspeed(stack) ? MemoryCounter::Allocated
                                                            : MemoryCounter::Device;
}

bool is_megatron_bridge(const StackSpec& stack) {
  return stack.name == "nemo-te";
}

// PyTorch's counters are bytes, which logs divide by 2^30; Megatron Bridge divides by 1e9
// (src/megatron/bridge/training/utils/train_utils.py, report_memory).
Bytes usual_unit(MemoryCounter counter, const StackSpec& stack) {
  const bool binary = counter != MemoryCounter::Device && !is_megatron_bridge(stack);
  return binary ? gibibytes(1.0) : gigabytes(1.0);
}

}  // namespace

MemoryReading memory_reading_of(const TrainingRow& row, const StackSpec& stack) {
  MemoryReading reading;
  reading.counter = counter_in(row.notes).value_or(usual_counter(stack));
  reading.unit = says(row.notes, "gib") ? gibibytes(1.0) : usual_unit(reading.counter, stack);
  // Megatron Bridge logs on the last rank.
  reading.last_stage = is_megatron_bridge(stack) &&
                       !says_any(row.notes, {"max_memory", "over ranks", "max over", "any rank"});
  return reading;
}

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
