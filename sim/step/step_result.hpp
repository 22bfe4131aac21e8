// What a simulated training step says: how long, what limits it, how much memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/program/program.hpp"
#include "sim/cost/cost.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::sim {

// Where the time of a rank's step goes, seen from its compute stream. The parts add up to the step.
struct TimeBreakdown {
  Seconds gemm, attention, memory_bound;  // kernels; recomputation included
  Seconds optimizer;
  Seconds interference;  // that these kernels take longer because collectives run beside them
  std::array<Seconds, 5> exposed{};  // by Axis: communication that nothing ran beside
  Seconds offload;                   // copies of activations to and from the host, likewise
  Seconds bubble;                    // waiting for other stages
  Seconds host;                      // waiting for the host to issue the next op
  Seconds stall;                     // waiting for slower ranks of its groups (full level only)

  Seconds recompute;  // of the kernels above: that the forward pass is run again

  Seconds compute() const { return gemm + attention + memory_bound; }
  Seconds exposed_total() const;
  Seconds total() const {
    return compute() + optimizer + interference + exposed_total() + offload + bubble + host + stall;
  }
  Seconds& exposed_on(Axis axis) { return exposed[static_cast<std::size_t>(axis)]; }
  Seconds exposed_on(Axis axis) const { return exposed[static_cast<std::size_t>(axis)]; }
};

// When the ops of a rank ran, by op number.
struct OpTimes {
  std::vector<Seconds> start, finish;
};

struct StreamUse {
  Seconds busy;
  Seconds idle;  // of the step
};

struct StageResult {
  TimeBreakdown time;
  std::array<StreamUse, kStreams> streams{};
  MemoryPeak memory;
};

// Rates that a model and its plan give together with a step time.
struct Throughput {
  double tokens_per_s_per_gpu = 0.0;
  double tflops_per_gpu =
      0.0;           // model FLOP: forward and backward, full attention, no recomputation
  double mfu = 0.0;  // of the peak of the plan's number format
  double hfu = 0.0;  // with the FLOP that really run, recomputation included
};

struct StepResult {
  Seconds step;
  std::vector<StageResult> stages;
  std::int32_t bottleneck =
      0;  // the stage whose compute stream is busiest: its breakdown is the report's
  std::int32_t fullest = 0;  // the stage with the highest memory peak
  Throughput throughput;
  BasisTimes basis;  // the bottleneck's kernels by what their prices rest on

  const TimeBreakdown& time() const { return stages[static_cast<std::size_t>(bottleneck)].time; }
  const MemoryPeak& memory() const { return stages[static_cast<std::size_t>(fullest)].memory; }
};

}  // namespace shardwright::sim
