// The checks before a full replay: of its options, and of the memory that it takes.
#include <fmt/format.h>

#include <string>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/gap_blame.hpp"

namespace shardwright::sim {
namespace {

// The replay keeps each op once, in its lane and as the event level has it, and on each rank the
// ops that another lane waits for, which every other one does.
Bytes replay_memory(const Program& program) {
  constexpr double kPerOp = sizeof(LaneOp) + sizeof(OpTime) + sizeof(Seconds);
  constexpr double kPerRank = 0.5 * sizeof(double);
  double bytes = 0.0;
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    const auto ranks = static_cast<double>(ranks_of_stage(program.plan, stage));
    bytes += program.stages[stage].ops * (kPerOp + kPerRank * ranks);
  }
  return Bytes(bytes);
}

}  // namespace

void check_full_options(const FullOptions& options, const Plan& plan, const ClusterSpec& cluster) {
  check_variation(options.variation, plan.world_size());
  check_slow_nics(options.slow_nics, plan, cluster);
  if (options.contention && !alike_links(cluster, plan)) {
    throw InputError("full replay",
                     {{plan.stage_pools.empty() ? "/plan/replica_pools" : "/plan/stage_pools",
                       "pools with different links",
                       "pools with the same nodes and fabric, or a replay without "
                       "contention"}});
  }
  ProblemList problems("watched ranks");
  for (const std::int64_t rank : options.watched_ranks) {
    if (rank < 0 || rank >= plan.world_size())
      problems.add("", std::to_string(rank), "0 to " + std::to_string(plan.world_size() - 1));
  }
  problems.throw_if_any();
}

void check_replay_memory(const Program& program) {
  const Bytes needed = replay_memory(program);
  if (needed <= kMostReplayMemory) return;
  const Plan& plan = program.plan;
  // Ops are about as many as microbatches.
  const bool batch = needed / static_cast<double>(plan.microbatches()) <= kMostReplayMemory;
  const std::string step =
      fmt::format("{} microbatches on {} ranks, whose replay takes about {}", plan.microbatches(),
                  plan.world_size(), format_bytes(needed));
  throw InputError(
      "full replay",
      {{batch ? "/global_batch" : "",
        batch ? fmt::format("{}, in {}", plan.global_batch, step) : step,
        fmt::format("at most {}: {}, or the event simulation", format_bytes(kMostReplayMemory),
                    batch ? "a smaller batch, a larger micro_batch" : "fewer ranks")}});
}

}  // namespace shardwright::sim
