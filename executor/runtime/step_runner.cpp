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
  if (recorder != nullptr) recorder->add(*bound.op, *bound.call, start, StepRecorder::Clock::now());
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
