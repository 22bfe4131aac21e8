// Walks a rank's program and issues each op, in the order of the calls, to the queue of its stream.
//
// The simulator prices the same walk. Tensors lie where `TensorPlan` has placed them, so memory
// follows the program; an op runs after the previous ops of its stream and those that it waits for.
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
#include "executor/runtime/op_queues.hpp"
#include "executor/runtime/op_runner.hpp"
#include "executor/runtime/step_recorder.hpp"
#include "executor/runtime/tensor_plan.hpp"

namespace shardwright::executor {

// Time of a rank's ops in one step; ops of different streams overlap.
struct PhaseTimes {
  // Kernels; recomputation counts as forward.
  double forward_s = 0.0, backward_s = 0.0, optimizer_s = 0.0;
  // Collectives and transfers, including the wait for other ranks.
  double communication_s = 0.0;
};

class StepRunner {
 public:
  // The references must outlive the runner.
  StepRunner(const Program& program, std::int64_t stage, Kernels& kernels, OpRunner& ops,
             const MakeQueues& make_queues, QueueHooks hooks);

  // Prepares what ops need besides their tensors; called before the first step while nothing else
  // runs. Throws OpError.
  void prepare();
  // Runs one step. `recorder`, unless null, gets the span of each op. Throws OpError for a failed
  // op.
  void run(StepState& state, StepRecorder* recorder);
  // Evaluates the counts of a step that was run with `StepState::not_finite`.
  std::optional<NotFiniteOp> first_not_finite(std::span<const NotFiniteCounts> counts) const;
  std::uint32_t ops() const { return rank_.ops; }

  // Runs work outside of the program; `work` gets a queue. Throws OpError.
  void run_alone(const std::string& name, std::function<void(Queue)> work);

  // Returns the name of the op that started last. Any thread may call it.
  std::string last_op() const;

  // The peak of the tensors' bytes by the program's count.
  std::size_t peak_tensor_bytes() const { return plan_.peak_bytes(); }

  // Times of the last step if its ops were timed: always if that is free, otherwise in recorded
  // steps.
  PhaseTimes phase_times() const;

 private:
  QueuedOp queued(const PlacedOp& placed, std::span<const PartId> covered, const OpMemory& memory,
                  StepState& state);
  std::vector<void*> pointers_to(const std::vector<std::size_t>& offsets) const;
  void count(const Op& op, StepRecorder::Clock::duration time);

  const Program& program_;
  const RankProgram& rank_;
  OpRunner& ops_;
  Queues queues_;
  TensorPlan plan_;
  std::shared_ptr<void> arena_;
  std::atomic<std::uint32_t> last_begun_{0};
  // Nanoseconds by phase, with communication last; several streams add to them.
  std::array<std::atomic<std::int64_t>, kPhases + 1> busy_ns_{};
  // Destroyed first: running ops use the members above.
  std::unique_ptr<OpQueues> streams_;
};

}  // namespace shardwright::executor
