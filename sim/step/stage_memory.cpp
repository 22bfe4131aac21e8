// What a stage holds: parameters, and the memory peak of StageCosts.
#include <algorithm>

#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

PartParameters StageCoster::chunk_parameters(std::size_t stage) const {
  PartParameters sum;
  for (const std::int32_t position : costs_.profile->stages[stage].position) {
    sum += costs_.chunk(static_cast<std::size_t>(position)).parameters;
  }
  return sum;
}

bool StageCoster::copies_embedding(const Plan& plan, std::size_t stage) const {
  bool embeds = false, heads = false;
  for (const std::int32_t position : costs_.profile->stages[stage].position) {
    embeds = embeds || position == 0;
    heads = heads || static_cast<std::size_t>(position) + 1 == ranges_.size();
  }
  return heads && !embeds && shares_embedding(model_, plan);
}

PartParameters StageCoster::stage_parameters(const LayerCosts& layers, const Plan& plan,
                                             std::size_t stage) const {
  PartParameters sum = chunk_parameters(stage);
  if (copies_embedding(plan, stage)) sum += layers.embedding.parameters;
  return sum;
}

// See gradient_placeholders (core/lowering/stage_states.hpp).
double StageCoster::placeholders(const LayerCosts& layers, const Plan& plan,
                                 std::size_t stage) const {
  double parameters = 0.0;
  for (const auto* kinds : {&layers.kept, &layers.recomputed}) {
    for (const PartCost& layer : *kinds) parameters = std::max(parameters, layer.parameters.dense);
  }
  const auto& positions = costs_.profile->stages[stage].position;
  const auto last = static_cast<std::int32_t>(ranges_.size()) - 1;
  if (std::find(positions.begin(), positions.end(), last) != positions.end()) {
    parameters += layers.embedding.parameters.dense;
  }
  return parameters * storage_bytes(plan.precision).value();
}

double StageCoster::states_bytes(const LayerCosts& layers, const Plan& plan, std::size_t stage) {
  std::optional<double>& known = known_states(plan).bytes[stage_kind_[stage]];
  if (!known) known = sum_states(layers, plan, stage);
  return *known;
}

double StageCoster::sum_states(const LayerCosts& layers, const Plan& plan,
                               std::size_t stage) const {
  double sum = 0.0;
  for (const PersistentMemory& state :
       persistent_memory(stage_parameters(layers, plan, stage), plan, stack_))
    sum += state.bytes.value();
  if (stack_.memory.gradient_placeholders && !costs_.sharded)
    sum += placeholders(layers, plan, stage);
  return sum;
}

// The peak of memory_replay.hpp without the states: what is held before a slot and the rise inside
// of it.
double StageCoster::held_peak(const StageProfile& profile) {
  const bool splits = costs_.profile->splits_backward;
  if (has_like_chunks(profile)) return held_peak_of_like_chunks(profile);
  const std::size_t chunks = profile.position.size();
  forwarded_.resize(chunks);
  half_done_.resize(chunks);
  for (std::size_t i = 0; i < chunks; ++i) {
    const ChunkCost& cost = costs_.chunk(static_cast<std::size_t>(profile.position[i]));
    forwarded_[i] = cost.of(SlotCost::Forward).net;
    if (splits) half_done_[i] = forwarded_[i] + cost.of(SlotCost::BackwardInput).net;
  }
  double highest = 0.0;
  for (const HeldActivations& held : profile.held) {
    double level = 0.0;
    for (std::size_t i = 0; i < chunks; ++i) level += held.forwarded[i] * forwarded_[i];
    for (std::size_t i = 0; splits && i < chunks; ++i) level += held.half_done[i] * half_done_[i];
    const auto position =
        static_cast<std::size_t>(profile.position[static_cast<std::size_t>(held.chunk)]);
    highest = std::max(highest, level + costs_.chunk(position).of(held.slot).rise);
  }
  return highest;
}

bool StageCoster::has_like_chunks(const StageProfile& profile) const {
  const auto chunk = [this](std::int32_t position) {
    return costs_.chunks[static_cast<std::size_t>(position)];
  };
  return std::all_of(profile.position.begin(), profile.position.end(), [&](std::int32_t position) {
    return chunk(position) == chunk(profile.position.front());
  });
}

// Most stages are such; of them it does not matter which chunk a microbatch is held of.
double StageCoster::held_peak_of_like_chunks(const StageProfile& profile) const {
  const ChunkCost& chunk = costs_.chunk(static_cast<std::size_t>(profile.position.front()));
  const double forwarded = chunk.of(SlotCost::Forward).net;
  const double half_done = forwarded + chunk.of(SlotCost::BackwardInput).net;
  double highest = 0.0;
  for (const HeldActivations& held : profile.held) {
    const double level = held.all_forwarded * forwarded + held.all_half_done * half_done;
    highest = std::max(highest, level + chunk.of(held.slot).rise);
  }
  return highest;
}

void StageCoster::find_held_peaks() {
  held_peaks_.clear();
  for (std::size_t stage = 0; stage < stage_kind_.size(); ++stage) {
    const StageProfile& profile = costs_.profile->stages[stage];
    const bool like_before = stage > 0 && stage_kind_[stage] == stage_kind_[stage - 1];
    if (like_before && profile.holds_no_more_than_before) continue;
    const HeldPeak peak{stage, held_peak(profile)};
    if (!like_before) {
      held_peaks_.push_back(peak);
    } else if (peak.bytes > held_peaks_.back().bytes) {
      held_peaks_.back() = peak;
    }
  }
}

void StageCoster::find_peak(const LayerCosts& layers, const Plan& plan) {
  double most = -1.0;
  for (const HeldPeak& peak : held_peaks_) {
    const double bytes = states_bytes(layers, plan, peak.stage) + peak.bytes;
    if (bytes <= most) continue;
    most = bytes;
    costs_.fullest = static_cast<std::int32_t>(peak.stage);
  }
  costs_.memory = Bytes(most * (1.0 + stack_.memory.fragmentation)) + stack_.memory.context +
                  stack_.memory.communicator * communicators(plan, model_);
}

}  // namespace shardwright::sim
