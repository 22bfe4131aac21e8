// Says what the compute stream waited for where it was idle, as parts of a TimeBreakdown.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/program/op_start.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

inline constexpr double kUnknownTime = std::numeric_limits<double>::infinity();

// The times of an op that a rank has reached, and what decided them.
struct OpTime {
  double finish = kUnknownTime;
  float duration = 0.0F;
  // The time by which a collective on one stage would have started sooner, had all members reached
  // it with this rank.
  float late = 0.0F;
  // The op whose finish decided the start; for a kernel not the one before it.
  std::uint32_t cause = kNoOp;
  Rendezvous rendezvous = Rendezvous::None;
  Group group = Group::Tensor;
  // True if it communicates or copies: it is on another stream than kernels.
  bool communicates = false;
  // True if it copies activations to or from the host's memory.
  bool copies = false;

  // Sets everything but its times.
  void describe(const FlatOp& op, std::uint32_t decided_by) {
    cause = decided_by;
    rendezvous = op.rendezvous;
    group = op.group;
    communicates = op.stream != Stream::Compute;
    copies = op.stream == Stream::Offload;
  }
};

// The compute stream was idle from `free` to `start`.
struct Gap {
  double free = 0.0, start = 0.0;
  // The op whose finish decided the start, or that the host waited for, if it was neither the
  // stream nor the host alone.
  std::uint32_t cause = kNoOp;
};

// A collective that something waits for may itself have waited for a message, so the blame goes
// back along the causes. `ops` by op number.
void explain_gap(const Gap& gap, std::span<const OpTime> ops, TimeBreakdown& time);

// Explains the time after a rank's last kernel, which ends at `computed`: it waits for its own last
// gather or exchange of local steps, which ends at `gathered`, or for other stages until the end of
// the step.
void explain_end(double computed, double gathered, double step, TimeBreakdown& time);

}  // namespace shardwright::sim
