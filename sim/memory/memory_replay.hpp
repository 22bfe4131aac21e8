// Replays a program's allocations and frees in the order in which the host issues its ops, as a
// caching allocator sees them, and finds the peak of each stage.
//
// Blocks repeat, so each is replayed once: how far it rises above the level at its start, and how
// far above it it ends.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/stack_spec.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::sim {

using CategoryBytes = EnumArray<MemoryCategory, double>;

// The effect of one call of a block on the rank's memory.
struct BlockMemory {
  // The rise of the highest level inside of the block above the level at its start.
  double rise = 0.0;
  // The bytes held there less those held at the start; negative where they are freed.
  CategoryBytes at_rise{};
  // The op that runs then.
  std::uint32_t rise_op = 0;
  double net = 0.0;
  CategoryBytes net_by_category{};
};

// Communicators that the ranks of a plan open: one for each kind of group with more than one member
// that the step uses. NCCL makes them at the first use, so that others cost nothing.
double communicators(const Plan& plan, const ModelSpec& model);

// Counts them in the ops of a program.
double communicators(const Program& program);

BlockMemory replay_block(const Block& block, const std::vector<TensorSpec>& tensors);

// Memory of one rank at the moment of its peak.
struct MemoryPeak {
  Bytes peak;
  // Bytes by category, which add up to `peak`.
  EnumArray<MemoryCategory, Bytes> breakdown{};
  // The part of `peak` for CUDA context, libraries and NCCL's own buffers.
  Bytes outside_allocator;
  // The op that runs at the peak.
  std::uint32_t op = 0;

  // The memory that PyTorch's allocator has taken from the device (torch.cuda.max_memory_reserved),
  // and the part of it that tensors fill (max_memory_allocated).
  Bytes reserved() const { return peak - outside_allocator; }
  Bytes allocated() const { return reserved() - of(MemoryCategory::Fragmentation); }
  Bytes of(MemoryCategory category) const { return breakdown[category]; }
};

// The peak of one stage, with the stack's context, that many communicators and fragmentation.
MemoryPeak peak_memory(const RankProgram& rank, const std::vector<BlockMemory>& blocks,
                       double communicators, const StackSpec& stack);

// Returns the peaks of all stages of a program.
std::vector<MemoryPeak> peak_memory(const Program& program, const StackSpec& stack);

// The level after each op of a stage, for drawing: pairs of op number and bytes, tensors and states
// only.
struct MemorySample {
  std::uint32_t op = 0;
  Bytes level;
};
std::vector<MemorySample> memory_curve(const Program& program, std::int32_t stage);

// The memory of a rank's device that is neither tensor nor state: the stack's context and
// communicators and, as an allocator keeps what it has reserved, the fragmentation of the highest
// level of tensors so far.
struct ReservedMemory {
  // The part outside of the allocator: context and communicators.
  Bytes outside;
  // The share of the highest level that fragmentation adds.
  double fragmentation = 0.0;

  Bytes beside(Bytes highest) const { return outside + highest * fragmentation; }
};
ReservedMemory reserved_memory(const Plan& plan, const ModelSpec& model, const StackSpec& stack);

// Raises the levels of a predicted timeline, which are tensors and states, by what is reserved
// beside them. The highest of a rank is then its peak of `peak_memory`.
void add_reserved_memory(Timeline& timeline, const Plan& plan, const ModelSpec& model,
                         const StackSpec& stack);

}  // namespace shardwright::sim
