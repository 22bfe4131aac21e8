#include "sim/step/steady_state.hpp"

#include <algorithm>
#include <array>

#include "core/lowering/lowering.hpp"

namespace shardwright::sim {
namespace {

// The microbatches after which a schedule repeats its slots.
std::int64_t microbatches_of_period(const Plan& plan) {
  return plan.schedule == ScheduleKind::Interleaved ? plan.pp : 1;
}

// Periods that have to be alike, so that no message is on its way from one before them: stages are
// ahead of each other by the stages' number of microbatches at most.
std::size_t periods_alike(const Plan& plan) {
  const std::int64_t period = microbatches_of_period(plan);
  return static_cast<std::size_t>((plan.pp + period - 1) / period + 2);
}

// Slots of a stage's list, up to `end`, that one period more repeats.
struct SlotPeriod {
  std::size_t end = 0, count = 0;
};

// Compares the lists of a stage for some microbatches and for one period more.
std::optional<SlotPeriod> find_period(const std::vector<Slot>& less, const std::vector<Slot>& more,
                                      std::int64_t microbatches, std::size_t alike) {
  const auto later = [microbatches](Slot slot) {
    slot.microbatch += static_cast<std::int32_t>(microbatches);
    return slot;
  };
  const auto repeats = [&later](const auto& from, const auto& to) { return later(from) == to; };
  const std::size_t count = more.size() - less.size();
  const auto differs = std::mismatch(less.begin(), less.end(), more.begin()).first;
  const auto same = static_cast<std::size_t>(differs - less.begin());
  if (count == 0 || same < (alike + 1) * count) return std::nullopt;
  // The last microbatch also reduces the gradients: it is no part of a period.
  const std::size_t end = same - count;
  const auto place = [](const std::vector<Slot>& list, std::size_t index) {
    return list.begin() + static_cast<std::ptrdiff_t>(index);
  };
  const bool drains_alike =
      std::equal(place(less, end), less.end(), place(more, end + count), more.end(), repeats);
  const bool periods_repeat =
      std::equal(place(more, end - alike * count), place(more, end),
                 place(more, end - (alike - 1) * count), place(more, end + count), repeats);
  if (!drains_alike || !periods_repeat) return std::nullopt;
  return SlotPeriod{end, count};
}

// True if a call and its waits are those of the call `period` calls before it, with later
// microbatches.
bool repeats_call(const RankProgram& rank, std::size_t call, std::size_t period,
                  std::int64_t microbatches) {
  const Call &now = rank.calls[call], &before = rank.calls[call - period];
  const std::uint32_t ops = now.first_op - before.first_op;
  const auto waits = rank.waits_of(call), waits_before = rank.waits_of(call - period);
  return now.block == before.block && now.layer == before.layer && now.chunk == before.chunk &&
         now.microbatch == before.microbatch + microbatches &&
         std::equal(waits.begin(), waits.end(), waits_before.begin(), waits_before.end(),
                    [ops](const Wait& a, const Wait& b) {
                      return a.op - b.op == ops && a.on - b.on == ops;
                    });
}

// True if the calls reduce gradients.
bool reduces(const Program& program, const RankProgram& rank, const StagePeriod& period) {
  return std::any_of(rank.calls.begin() + static_cast<std::ptrdiff_t>(period.first),
                     rank.calls.begin() + static_cast<std::ptrdiff_t>(period.end),
                     [&](const Call& call) {
                       const std::vector<Op>& ops = program.blocks[call.block].ops;
                       return !ops.empty() && ops.front().stream == Stream::GradientReduce;
                     });
}

std::optional<StagePeriod> period_of(const Program& program, const RankProgram& rank,
                                     const SlotPeriod& slots, std::int64_t microbatches,
                                     std::size_t alike, bool fills_buckets) {
  const StagePeriod period{rank.slot_calls[slots.end - slots.count], rank.slot_calls[slots.end],
                           alike};
  if (period.begin() != rank.slot_calls[slots.end - alike * slots.count]) return std::nullopt;
  for (std::size_t call = period.begin() + period.calls(); call < period.end; ++call) {
    if (!repeats_call(rank, call, period.calls(), microbatches)) return std::nullopt;
  }
  // A bucket that fills up over several periods is not seen in any of them.
  if (fills_buckets && !reduces(program, rank, period)) return std::nullopt;
  return period;
}

}  // namespace

std::vector<std::int64_t> short_steps(const Plan& plan) {
  // In multiples of the stages. Pipelines have come to their steady state by then, if they have
  // one: most by the first number. Periods of several chunks are longer.
  const bool interleaved = plan.schedule == ScheduleKind::Interleaved;
  const std::array<std::int64_t, 2> multiples = {interleaved ? 7 : 5, interleaved ? 12 : 10};
  const std::int64_t all = plan.microbatches(), period = microbatches_of_period(plan);
  std::vector<std::int64_t> numbers;
  // Replicas on several pools run different numbers of microbatches.
  if (!plan.replica_pools.empty()) return numbers;
  // A whole step is what hides exchanges of local steps.
  if (plan.replicas.overlap_steps > 0) return numbers;
  for (const std::int64_t multiple : multiples) {
    const std::int64_t least = multiple * std::max<std::int64_t>(plan.pp, 2);
    const std::int64_t number = all - (all - least) / period * period;
    if (2 * number <= all) numbers.push_back(number);
  }
  return numbers;
}

std::optional<ShortStep> shorten(const Scenario& scenario, const BlockSet& blocks,
                                 std::int64_t microbatches) {
  const Plan& plan = scenario.plan;
  const std::int64_t period = microbatches_of_period(plan);
  const std::size_t alike = periods_alike(plan);
  const ScheduleShape shape{plan.pp, plan.vpp, microbatches};
  const ScheduleShape longer{plan.pp, plan.vpp, microbatches + period};
  if (why_not(plan.schedule, shape) || why_not(plan.schedule, longer)) return std::nullopt;
  const PipelineSchedule less = make_schedule(plan.schedule, shape);
  const PipelineSchedule more = make_schedule(plan.schedule, longer);
  std::vector<SlotPeriod> slots;
  for (std::size_t stage = 0; stage < less.stages.size(); ++stage) {
    const auto found = find_period(less.stages[stage], more.stages[stage], period, alike);
    if (!found) return std::nullopt;
    slots.push_back(*found);
  }
  ShortStep step;
  step.program = lower(scenario.model, plan, scenario.stack, blocks, less);
  step.left_out = static_cast<double>((plan.microbatches() - microbatches) / period);
  const bool fills_buckets = plan.zero_stage == 2;
  for (std::size_t stage = 0; stage < slots.size(); ++stage) {
    const auto found = period_of(step.program, step.program.stages[stage], slots[stage], period,
                                 alike, fills_buckets);
    if (!found) return std::nullopt;
    step.periods.push_back(*found);
  }
  return step;
}

}  // namespace shardwright::sim
