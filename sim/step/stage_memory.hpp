// Memory of the stages of a plan: states from step to step, and the peak of activations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "sim/step/chunk_costs.hpp"
#include "sim/step/data_parallel_cost.hpp"

namespace shardwright::sim {

// The stage of a run of like ones that holds the most activations, and their bytes.
struct ActivationPeak {
  std::size_t stage = 0;
  double bytes = 0.0;
};

// One for each run of like stages: the peak of memory_replay.hpp without the states.
std::vector<ActivationPeak> activation_peaks(const PipelineLayout& layout,
                                             const ChunkCosts& chunks);

// Parameters, gradients and optimizer states of one rank of the stage, in bytes.
double state_bytes(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage);

struct PeakStage {
  // The peak of memory_replay.hpp, of the fullest stage.
  Bytes peak;
  // The number of that stage.
  std::int32_t fullest = 0;
};

struct StageMemory : PeakStage {
  // The fullest of the stages on each pool, by number of the pool; empty where the plan names none.
  std::vector<PeakStage> pools;
};

// `states(stage)` returns state_bytes() of the stage.
template <class States>
StageMemory stage_memory(const PlanContext& in, const std::vector<ActivationPeak>& peaks,
                         States states);

// The memory that a rank takes from its device if its tensors fill so many bytes at the peak.
Bytes held_by_device(const PlanContext& in, double tensor_bytes);

// Takes a stage whose tensors fill so many bytes into account for its pool.
void add_to_pool(const PlanContext& in, std::size_t stage, double tensor_bytes,
                 StageMemory& memory);

template <class States>
StageMemory stage_memory(const PlanContext& in, const std::vector<ActivationPeak>& peaks,
                         States states) {
  StageMemory memory;
  double most = -1.0;
  for (const ActivationPeak& peak : peaks) {
    const double bytes = states(peak.stage) + peak.bytes;
    if (!in.pools.empty()) add_to_pool(in, peak.stage, bytes, memory);
    if (bytes <= most) continue;
    most = bytes;
    memory.fullest = static_cast<std::int32_t>(peak.stage);
  }
  memory.peak = held_by_device(in, most);
  return memory;
}

}  // namespace shardwright::sim
