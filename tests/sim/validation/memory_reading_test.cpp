// What a published figure of peak memory counts, and what the same counter shows in the simulation.
#include "sim/validation/memory_reading.hpp"

#include <gtest/gtest.h>

#include "core/spec/profile_library.hpp"

namespace shardwright::sim {
namespace {

MemoryReading reading(const char* stack, const char* notes) {
  TrainingRow row;
  row.notes = notes;
  return memory_reading_of(row, load_stack(stack));
}

// The notes are those of published rows.
TEST(MemoryReading, NotesNameTheCounterAndTheUnit) {
  const char* both =
      "peak_memory_gb is max_memory_allocated over ranks in GiB (reserved 48.79 GiB)";
  EXPECT_EQ(reading("megatron-core", both),
            (MemoryReading{MemoryCounter::Allocated, gibibytes(1.0), false}));
  EXPECT_EQ(reading("megatron-deepspeed", "peak_memory_gb is nvidia-smi max."),
            (MemoryReading{MemoryCounter::Device, gigabytes(1.0), false}));
  EXPECT_EQ(reading("megatron-core", "torch.cuda.max_memory_reserved").counter,
            MemoryCounter::Reserved);
  EXPECT_EQ(reading("nemo-te", "Peak allocated GB after iteration 2"),
            (MemoryReading{MemoryCounter::Allocated, gigabytes(1.0), true}));
  EXPECT_FALSE(reading("nemo-te", "max_memory_usage field of the log (GiB)").last_stage);
}

TEST(MemoryReading, WithoutWordsItIsWhatTheFrameworkLogs) {
  EXPECT_EQ(reading("fsdp2", "").counter, MemoryCounter::Reserved);
  EXPECT_EQ(reading("megatron-lm-2023", ""),
            (MemoryReading{MemoryCounter::Allocated, gibibytes(1.0), false}));
  for (const char* stack : {"deepspeed-zero", "megatron-deepspeed"})
    EXPECT_EQ(reading(stack, "").counter, MemoryCounter::Device) << stack;
}

TEST(MemoryReading, CountersShowTheirPartOfThePeakOfTheirStage) {
  StepResult result;
  result.stages.resize(2);
  MemoryPeak& first = result.stages[0].memory;
  first.peak = gigabytes(10.0);
  first.outside_allocator = gigabytes(2.0);
  first.breakdown[static_cast<std::size_t>(MemoryCategory::Fragmentation)] = gigabytes(1.0);
  result.stages[1].memory.peak = gigabytes(6.0);
  result.fullest = 0;
  const auto shown = [&result](MemoryCounter counter, bool last_stage) {
    return read_memory(result, {counter, gigabytes(1.0), last_stage}).value() / 1e9;
  };
  EXPECT_DOUBLE_EQ(shown(MemoryCounter::Device, false), 10.0);
  EXPECT_DOUBLE_EQ(shown(MemoryCounter::Reserved, false), 8.0);
  EXPECT_DOUBLE_EQ(shown(MemoryCounter::Allocated, false), 7.0);
  EXPECT_DOUBLE_EQ(shown(MemoryCounter::Device, true), 6.0);
}

}  // namespace
}  // namespace shardwright::sim
