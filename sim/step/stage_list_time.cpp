// The slots of a plan's stages in the order of its schedule's list, for the analytic rung.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {
namespace {

// Of the longest microbatch in a chunk. Finer ones tell more lists apart and find hardly a longer
// way.
constexpr double kNominalParts = 8.0;

// True if the ways of stage_paths.hpp say all: stages have one chunk and their backward pass is
// whole.
bool needs_no_list(const ScheduleProfile& profile) {
  return profile.joined.size() == 1 ||
         (profile.stages.front().position.size() == 1 && !profile.splits_backward);
}

double time_of(const PassedSlots& passed, const ChunkCost& chunk) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kSlotCosts; ++i) {
    sum += passed.behind_slot[i] * chunk.slot[i].time +
           passed.behind_input[i] * chunk.slot[i].passing + passed.reducing[i] * chunk.reducing[i];
  }
  return sum;
}

}  // namespace

// Of neighbouring chunks that are alike one stands for all.
void StageCoster::find_nominal_times() {
  nominal_.chunks.clear();
  double longest = 0.0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (chunk_kind_[i] == i)
      longest = std::max(longest, passages_[i].forward + passages_[i].backward);
  }
  const double part = longest / kNominalParts;
  const auto parts = [part](double time) {
    constexpr double kMost = std::numeric_limits<std::int16_t>::max();
    return static_cast<std::int16_t>(std::min(time / part + 0.5, kMost));
  };
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (chunk_kind_[i] < i) continue;
    NominalChunk& chunk = nominal_.chunks.emplace_back();
    chunk.first = static_cast<std::int32_t>(i);
    for (std::size_t slot = 0; slot < kSlotCosts; ++slot) {
      chunk.behind_slot[slot] = parts(costs_.chunk(i).slot[slot].time);
      chunk.behind_input[slot] = parts(costs_.chunk(i).slot[slot].passing);
      chunk.reducing[slot] = parts(costs_.chunk(i).reducing[slot]);
    }
  }
  nominal_.message = parts(costs_.message + costs_.gather);
}

void StageCoster::time_list() {
  const ScheduleProfile& profile = *costs_.profile;
  costs_.listed = 0.0;
  if (needs_no_list(profile)) return;
  find_nominal_times();
  const SchedulePath& path = profiles_.path(profile, nominal_);
  const auto written = static_cast<double>(profile.shape.microbatches);
  const double repeated = std::max(0.0, costs_.microbatches - written) / (written / 3.0);
  double sum = (path.messages + repeated * path.steady_messages) * (costs_.message + costs_.gather);
  for (std::size_t i = 0; i < nominal_.chunks.size(); ++i) {
    const ChunkCost& chunk = costs_.chunk(static_cast<std::size_t>(nominal_.chunks[i].first));
    sum += time_of(path.chunks[i], chunk);
    if (repeated > 0.0) sum += repeated * time_of(path.steady_chunks[i], chunk);
  }
  costs_.listed = sum;
}

}  // namespace shardwright::sim
