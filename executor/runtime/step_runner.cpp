#include "executor/runtime/step_runner.hpp"

#include <set>
#include <utility>

namespace shardwright::executor {

StepRunner::StepRunner(const Program& program, std::int64_t stage, Kernels& kernels, OpRunner& ops,
                       const MakeQueues& make_queues, QueueHooks hooks)
    : program_(program),
      rank_(program.stages[static_cast<std::size_t>(stage)]),
      ops_(ops),
      queues_(program),
      plan_(program, rank_, queues_,
            [&ops](TensorRef ref, const Call& call) { return ops.bytes_of_tensor(ref, call); }),
      arena_(kernels.allocate(plan_.arena_bytes())),
      streams_(make_queues(queues_.count(), std::move(hooks))) {}

std::vector<void*> StepRunner::pointers_to(const std::vector<std::size_t>& offsets) const {
  std::vector<void*> pointers;
  pointers.reserve(offsets.size());
  for (const std::size_t offset : offsets)
    pointers.push_back(static_cast<std::byte*>(arena_.get()) + offset);
  return pointers;
}

QueuedOp StepRunner::queued(const PlacedOp& placed, std::span<const PartId> covered,
                            const OpMemory& memory, StepState& state) {
  BoundOp bound{.op = &placed.op,
                .call = &placed.call,
                .reads = pointers_to(memory.reads),
                .writes = pointers_to(memory.writes),
                .covered = covered,
                .begins_gradient = memory.begins_gradient};
  QueuedOp op;
  op.number = placed.number;
  op.waits = memory.waits;
  op.name = [&what = placed.op, &call = placed.call] { return describe({what, call, 0, {}}); };
  op.run = [this, bound = std::move(bound), number = placed.number, &state](Queue queue) mutable {
    bound.queue = queue;
    last_begun_ = number;
    if (state.not_finite == nullptr) return ops_.run(bound, state);
    ops_.run_checked(bound, state, state.not_finite + number);
  };
  return op;
}

std::string StepRunner::last_op() const {
  const std::uint32_t number = last_begun_;
  std::string name;
  for_each_op(program_, rank_, [&](const PlacedOp& placed) {
    if (placed.number == number) name = describe(placed);
  });
  return name;
}

std::optional<NotFiniteOp> StepRunner::first_not_finite(
    std::span<const NotFiniteCounts> counts) const {
  std::optional<NotFiniteOp> first;
  for_each_op(program_, rank_, [&](const PlacedOp& placed) {
    const NotFiniteCounts& here = counts[placed.number];
    if (first || here.results == 0.0) return;
    first = NotFiniteOp{describe(placed), here, {}, is_communication(placed.op.kind)};
    for (const std::string& pattern : placed.op.parameters)
      first->weights.push_back(parameter_name(pattern, placed.call.layer));
  });
  return first;
}

void StepRunner::prepare() {
  std::set<std::pair<const Op*, std::size_t>> seen;
  streams_->begin(rank_.ops);
  for_each_placed(program_, rank_,
                  [&](const PlacedOp& placed, std::span<const PartId> /*covered*/) {
                    const std::size_t queue = queues_.of(placed.op);
                    if (!seen.insert({&placed.op, queue}).second) return;
                    QueuedOp op;
                    op.number = placed.number;
                    op.name = [&what = placed.op] { return "the preparation of " + what.name; };
                    op.run = [this, &what = placed.op](Queue with) { ops_.prepare(what, with); };
                    streams_->issue(queue, std::move(op));
                  });
  streams_->drain();
}

void StepRunner::run(StepState& state, StepRecorder* recorder) {
  for (auto& busy : busy_ns_) busy = 0;
  streams_->begin(rank_.ops);
  const auto begin = StepRecorder::Clock::now();
  for_each_placed(program_, rank_, [&](const PlacedOp& placed, std::span<const PartId> covered) {
    QueuedOp op = queued(placed, covered, plan_.of(placed.number), state);
    if (recorder != nullptr || streams_->times_at_no_cost()) {
      op.ended = [this, recorder, &what = placed.op, &call = placed.call](auto start, auto end) {
        count(what, end - start);
        if (recorder != nullptr) recorder->add(what, call, start, end);
      };
    }
    streams_->issue(queues_.of(placed.op), std::move(op));
  });
  // Without the wait for a device that is too far behind.
  if (recorder != nullptr)
    recorder->issued(StepRecorder::Clock::now() - begin - streams_->waited());
  streams_->drain();
}

void StepRunner::run_alone(const std::string& name, std::function<void(Queue)> work) {
  QueuedOp op;
  op.name = [name] { return name; };
  op.run = std::move(work);
  streams_->begin(1);
  streams_->issue(0, std::move(op));
  streams_->drain();
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

}  // namespace shardwright::executor
