#include "executor/runtime/step_runner.hpp"

#include <memory>
#include <utility>

#include "executor/runtime/op_error.hpp"

namespace shardwright::executor {

StepRunner::StepRunner(const Program& program, std::int64_t stage, Kernels& kernels, OpRunner& ops,
                       std::function<void()> on_failure)
    : program_(program),
      rank_(program.stages[static_cast<std::size_t>(stage)]),
      ops_(ops),
      queues_(program),
      pool_(program, kernels),
      streams_(queues_.count(), std::move(on_failure)) {}

void StepRunner::run(StepState& state, StepRecorder* recorder) {
  for (auto& busy : busy_ns_) busy = 0;
  streams_.begin(rank_.ops);
  std::size_t call = 0;
  for_each_op(program_, rank_, [&](const PlacedOp& placed) {
    while (&rank_.calls[call] != &placed.call) ++call;
    issue(placed, Program::covered(rank_, call), state, recorder);
  });
  if (recorder != nullptr) recorder->issued();
  streams_.drain();
}

void StepRunner::issue(const PlacedOp& placed, std::span<const PartId> covered, StepState& state,
                       StepRecorder* recorder) {
  BoundOp bound{&placed.op, &placed.call, {}, {}, covered, nullptr};
  for (const TensorRef ref : placed.op.reads) bound.reads.push_back(pool_.read(ref, placed.call));
  for (const TensorRef ref : placed.op.writes)
    bound.writes.push_back(pool_.write(ref, placed.call));
  for (const TensorRef ref : placed.op.frees) pool_.free(ref, placed.call);
  Waits waits;
  for (const std::uint16_t on : placed.op.waits) waits.push_back(placed.call.first_op + on);
  for (const Wait& wait : placed.waits) waits.push_back(wait.on);
  streams_.issue(
      queues_.of(placed.op), placed.number, std::move(waits),
      [this, bound = std::move(bound), &state, recorder] { run_op(bound, state, recorder); });
}

void StepRunner::run_op(const BoundOp& bound, StepState& state, StepRecorder* recorder) {
  const auto start = StepRecorder::Clock::now();
  try {
    ops_.run(bound, state);
  } catch (const std::exception& error) {
    throw OpError(describe({*bound.op, *bound.call, 0, {}}), error.what());
  }
  const auto end = StepRecorder::Clock::now();
  count(*bound.op, end - start);
  if (recorder != nullptr) recorder->add(*bound.op, *bound.call, start, end);
}

void StepRunner::count(const Op& op, StepRecorder::Clock::duration time) {
  const auto place =
      is_communication(op.kind) ? std::size_t{kPhases} : static_cast<std::size_t>(op.phase);
  busy_ns_[place] += std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

PhaseTimes StepRunner::phase_times() const {
  const auto seconds = [this](Phase phase) {
    return 1e-9 * static_cast<double>(busy_ns_[static_cast<std::size_t>(phase)]);
  };
  PhaseTimes times;
  times.forward_s = seconds(Phase::Forward) + seconds(Phase::Recompute);
  times.backward_s = seconds(Phase::BackwardInput) + seconds(Phase::BackwardWeight);
  times.optimizer_s = seconds(Phase::Optimizer);
  times.communication_s = 1e-9 * static_cast<double>(busy_ns_.back());
  return times;
}

void StepRunner::gather_parameters(StepState& state) {
  for (std::size_t call = 0; call < rank_.calls.size(); ++call) {
    for (const Op& op : program_.blocks[rank_.calls[call].block].ops) {
      if (op.payload != Payload::Parameters) continue;
      run_op({&op, &rank_.calls[call], {}, {}, Program::covered(rank_, call), nullptr}, state,
             nullptr);
    }
  }
}

}  // namespace shardwright::executor
