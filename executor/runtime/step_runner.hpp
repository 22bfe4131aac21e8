// Walks a rank's program: issues each op, in the order of its calls, to the queue of its stream.
//
// This is the walk that the simulator prices. Tensors lie where `TensorPlan` has placed them, so
// memory follows the program; an op runs when its stream and the ops that it waits for have come so
// far.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "core/program/program_checks.hpp"
#include "executor/runtime/not_finite.hpp"
#include "executor/runtime/op_queues.hpp"
#include "executor/runtime/op_runner.hpp"
#include "executor/runtime/step_recorder.hpp"
#include "executor/runtime/tensor_plan.hpp"

namespace shardwright::executor {

// Time that the ops of a rank took in one step; those of different streams overlap.
struct PhaseTimes {
  double forward_s = 0.0, backward_s = 0.0, optimizer_s = 0.0;  // kernels, recomputation forward
  double communication_s = 0.0;  // collectives and messages, with the wait for other ranks
};

class StepRunner {
 public:
  // Everything referred to outlives the runner.
  StepRunner(const Program& program, std::int64_t stage, Kernels& kernels, OpRunner& ops,
             const MakeQueues& make_queues, QueueHooks hooks);

  // Makes what ops need beside their tensors; before the first step, while nothing else runs.
  // Throws OpError.
  void prepare();
  // Runs one step. `recorder` gets the span of each op; null: nothing is recorded. Throws OpError
  // for an op that failed.
  void run(StepState& state, StepRecorder* recorder);
  // Of a step that was run with `StepState::not_finite`; `counts`: those of its ops.
  std::optional<NotFiniteOp> first_not_finite(std::span<const NotFiniteCounts> counts) const;
  std::uint32_t ops() const { return rank_.ops; }
  // Brings the parameters that other ranks updated up to date, as the next step would begin with.
  void gather_parameters(StepState& state);

  // Runs something that is no op of the program; `work` gets a queue. Throws OpError.
  void run_alone(const std::string& name, std::function<void(Queue)> work);

  // The op of the last step that began last, for people. May be asked by any thread.
  std::string last_op() const;

  // The most bytes that tensors take, as the program counts them.
  std::size_t peak_tensor_bytes() const { return plan_.peak_bytes(); }

  // Of the last step, if its ops were timed: those of recorded steps, and all where that costs
  // nothing.
  PhaseTimes phase_times() const;

 private:
  QueuedOp queued(const PlacedOp& placed, std::span<const PartId> covered, const OpMemory& memory,
                  StepState& state);
  void for_each_placed(
      const std::function<void(const PlacedOp&, std::span<const PartId>)>& visit) const;
  std::vector<void*> pointers_to(const std::vector<std::size_t>& offsets) const;
  void count(const Op& op, StepRecorder::Clock::duration time);

  const Program& program_;
  const RankProgram& rank_;
  OpRunner& ops_;
  Queues queues_;
  TensorPlan plan_;
  std::shared_ptr<void> arena_;
  std::atomic<std::uint32_t> last_begun_{0};  // op
  // By phase, and communication last; streams add to them at the same time.
  std::array<std::atomic<std::int64_t>, kPhases + 1> busy_ns_{};
  std::unique_ptr<OpQueues> streams_;  // last: ops that run use what is above
};

}  // namespace shardwright::executor
