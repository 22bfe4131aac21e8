// The results of a simulated training step: its time, what limits it, its memory.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/program/program.hpp"
#include "sim/cost/cost.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::sim {

// The parts of a rank's step, seen from its compute stream. They add up to the step.
enum class StepPart : std::uint8_t {
  Gemm,
  Attention,
  MemoryBound,
  Optimizer,
  Interference,
  // In the order of `Axis`.
  ExposedTensor,
  ExposedContext,
  ExposedExpert,
  ExposedData,
  ExposedPipeline,
  Offload,
  Bubble,
  Host,
  Stall,
};
constexpr auto enum_names(StepPart) {
  return std::array{"gemm",       "attention",  "memory_bound", "optimizer",  "interference",
                    "exposed_tp", "exposed_cp", "exposed_ep",   "exposed_dp", "exposed_pp",
                    "offload",    "bubble",     "host",         "stall"};
}

// The axis of a part that is exposed communication; none for other parts.
std::optional<Axis> exposed_axis(StepPart part);

// The time of each part.
struct TimeBreakdown {
  // Kernels, recomputation included.
  Seconds gemm, attention, memory_bound;
  Seconds optimizer;
  // The time that these kernels take longer because collectives run beside them.
  Seconds interference;
  // Communication that no kernel ran beside.
  EnumArray<Axis, Seconds> exposed{};
  // Copies of activations to and from the host that no kernel ran beside.
  Seconds offload;
  // Waiting for other stages.
  Seconds bubble;
  // Waiting for the host to issue the next op.
  Seconds host;
  // Waiting for slower ranks of its groups (full level only).
  Seconds stall;

  // The time of those kernels above that run the forward pass again. No part of its own.
  Seconds recompute;

  Seconds of(StepPart part) const;
  Seconds& of(StepPart part);
  Seconds compute() const { return gemm + attention + memory_bound; }
  Seconds exposed_total() const;
  Seconds total() const {
    return compute() + optimizer + interference + exposed_total() + offload + bubble + host + stall;
  }

  // Adds each part of `other`, so many times.
  void add(const TimeBreakdown& other, double times);
};

// The times at which the ops of a rank ran, by op number.
struct OpTimes {
  std::vector<Seconds> start, finish;
};

struct StreamUse {
  Seconds busy;
  // The rest of the step.
  Seconds idle;
};

struct StageResult {
  TimeBreakdown time;
  EnumArray<Stream, StreamUse> streams{};
  MemoryPeak memory;
};

// Rates that a model and its plan give together with a step time.
struct Throughput {
  double tokens_per_s_per_gpu = 0.0;
  // Model FLOP: forward and backward, full attention, no recomputation.
  double tflops_per_gpu = 0.0;
  // Model FLOP over the peak of the plan's number format.
  double mfu = 0.0;
  // The same with the FLOP that kernels compute: recomputation counts, scores that a causal mask
  // drops do not, so that HFU may lie below MFU.
  double hfu = 0.0;
};

struct StepResult {
  Seconds step;
  std::vector<StageResult> stages;
  // The stage whose compute stream is busiest: its breakdown is the report's.
  std::int32_t bottleneck = 0;
  // The stage with the highest memory peak.
  std::int32_t fullest = 0;
  Throughput throughput;
  // The bottleneck's kernels by the basis of their prices.
  BasisTimes basis;

  const TimeBreakdown& time() const { return stages[static_cast<std::size_t>(bottleneck)].time; }
  const MemoryPeak& memory() const { return stages[static_cast<std::size_t>(fullest)].memory; }
};

// {"compute_s", "recompute_s", PART_s, …, "exposed": {AXIS: seconds}}.
nlohmann::ordered_json time_json(const TimeBreakdown& time);

// {"peak_bytes", "breakdown": {CATEGORY: bytes}}.
nlohmann::ordered_json memory_json(const MemoryPeak& memory);

}  // namespace shardwright::sim
