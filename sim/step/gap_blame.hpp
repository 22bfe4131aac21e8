// Says what the compute stream waited for where it was idle, as parts of a TimeBreakdown.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/program/op_start.hpp"
#include "sim/step/flat_program.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

inline constexpr double kUnknownTime = std::numeric_limits<double>::infinity();

// What is known of an op that a rank has come to.
struct OpTime {
  double finish = kUnknownTime;
  float duration = 0.0F;
  float late = 0.0F;  // of a collective on one stage: how much sooner it would have started, had
                      // all members come to it with this rank
  std::uint32_t cause = kNoOp;  // the op whose finish decided the start; of a kernel not the one
                                // before it
  Rendezvous rendezvous = Rendezvous::None;
  Group group = Group::Tensor;
  bool communicates = false;  // or copies: it is on another stream than kernels
  bool copies = false;        // activations to or from the host's memory

  // All but its times.
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
  std::uint32_t cause = kNoOp;  // the op whose finish decided the start, or that the host waited
                                // for, if it was neither the stream nor the host alone
};

// A collective that something waits for may itself have waited for a message, so the blame goes
// back along the causes. `ops` by op number.
void explain_gap(const Gap& gap, const std::vector<OpTime>& ops, TimeBreakdown& time);

// After its last kernel, which ends at `computed`, a rank waits for its own last gather, which ends
// at `gathered`, or for other stages until the end of the step.
void explain_end(double computed, double gathered, double step, TimeBreakdown& time);

}  // namespace shardwright::sim
