// The pipeline schedules by name, and the size of one.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/enum_names.hpp"

namespace shardwright {

enum class ScheduleKind : std::uint8_t {
  GPipe,        // all forwards, then all backwards
  OneFOneB,     // PipeDream-flush
  Interleaved,  // 1F1B over several model chunks per rank (Megatron virtual pipeline)
  ZbH1,         // zero-bubble, memory of 1F1B (arXiv 2401.10241)
  ZbH2,         // zero-bubble, twice the memory
  ZbV,          // zero-bubble, two chunks per rank placed in a V
  DualPipe,     // DeepSeek-V3: bidirectional, two copies of the parameters
};

constexpr auto enum_names(ScheduleKind) {
  return std::array{"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe"};
}

// The size of a schedule.
struct ScheduleShape {
  std::int64_t stages = 1;
  // Parts of the model per stage (Plan::vpp). DualPipe has 1: the two chunks that its stages hold
  // are copies of two different parts.
  std::int64_t chunks = 1;
  std::int64_t microbatches = 1;

  bool operator==(const ScheduleShape&) const = default;
};

}  // namespace shardwright
