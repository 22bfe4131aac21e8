// Walks a rank's program: issues each op, in the order of its calls, to the queue of its stream.
//
// This is the walk that the simulator prices. At issue the op's tensors are allocated and freed, so
// memory follows the program; it runs when its stream and the ops that it waits for have come so
// far.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/units.hpp"
#include "core/program/program.hpp"
#include "core/program/program_checks.hpp"
#include "executor/runtime/op_runner.hpp"
#include "executor/runtime/stream_queues.hpp"
#include "executor/runtime/tensor_pool.hpp"
#include "executor/telemetry/step_recorder.hpp"

namespace shardwright::executor {

// Time that the ops of a rank took in one step; those of different streams overlap.
struct PhaseTimes {
  double forward_s = 0.0, backward_s = 0.0, optimizer_s = 0.0;  // kernels, recomputation forward
  double communication_s = 0.0;  // collectives and messages, with the wait for other ranks
};

class StepRunner {
 public:
  // Everything referred to outlives the runner. `on_failure` makes ops that wait for peers fail.
  StepRunner(const Program& program, std::int64_t stage, Kernels& kernels, OpRunner& ops,
             std::function<void()> on_failure);

  // Runs one step. `recorder` gets the span of each op; null: nothing is recorded. Throws OpError
  // for an op that failed.
  void run(StepState& state, StepRecorder* recorder);
  // Brings the parameters that other ranks updated up to date, as the next step would begin with.
  void gather_parameters(StepState& state);

  // Of the last step.
  PhaseTimes phase_times() const;

  // The most bytes that tensors took, as the program places them.
  std::size_t peak_tensor_bytes() const { return pool_.peak_bytes(); }

 private:
  using Waits = std::vector<std::uint32_t>;

  void issue(const PlacedOp& placed, std::span<const PartId> covered, StepState& state,
             StepRecorder* recorder);
  void run_op(const BoundOp& bound, StepState& state, StepRecorder* recorder);
  void count(const Op& op, StepRecorder::Clock::duration time);

  const Program& program_;
  const RankProgram& rank_;
  OpRunner& ops_;
  Queues queues_;
  TensorPool pool_;
  StreamQueues streams_;
  // By phase, and communication last; streams add to them at the same time.
  std::array<std::atomic<std::int64_t>, kPhases + 1> busy_ns_{};
};

}  // namespace shardwright::executor
