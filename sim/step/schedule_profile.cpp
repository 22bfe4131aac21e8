#include "sim/step/schedule_profile.hpp"

#include <algorithm>

namespace shardwright::sim {
namespace {

// `a` holds as much as `b` or more, of every chunk.
bool covers(const HeldActivations& a, const HeldActivations& b) {
  if (a.slot != b.slot || a.chunk != b.chunk || a.all_forwarded < b.all_forwarded ||
      a.all_half_done < b.all_half_done)
    return false;
  for (std::size_t i = 0; i < a.forwarded.size(); ++i) {
    if (a.forwarded[i] < b.forwarded[i] || a.half_done[i] < b.half_done[i]) return false;
  }
  return true;
}

bool holds_no_more(const std::vector<HeldActivations>& held,
                   const std::vector<HeldActivations>& than) {
  return std::all_of(held.begin(), held.end(), [&than](const HeldActivations& each) {
    return std::any_of(than.begin(), than.end(),
                       [&each](const HeldActivations& other) { return covers(other, each); });
  });
}

void remember(std::vector<HeldActivations>& held, const HeldActivations& now) {
  for (const HeldActivations& other : held) {
    if (covers(other, now)) return;
  }
  std::erase_if(held, [&](const HeldActivations& other) { return covers(now, other); });
  held.push_back(now);
}

void pass(HeldActivations& now, const Slot& slot) {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const auto add = [&](std::int32_t forwarded, std::int32_t half_done) {
    now.forwarded[chunk] += forwarded;
    now.all_forwarded += forwarded;
    now.half_done[chunk] += half_done;
    now.all_half_done += half_done;
  };
  switch (slot.phase) {
    case SlotPhase::Forward:
      add(1, 0);
      break;
    case SlotPhase::Backward:
      add(-1, 0);
      break;
    case SlotPhase::BackwardInput:
      add(-1, 1);
      break;
    case SlotPhase::BackwardWeight:
      add(0, -1);
      break;
  }
}

void find_warmup(const std::vector<Slot>& slots, StageProfile& profile) {
  profile.warmup.assign(profile.position.size(), 0);
  for (const Slot& slot : slots) {
    if (slot.phase != SlotPhase::Forward) {
      profile.first_gradient_chunk = slot.chunk;
      return;
    }
    ++profile.warmup[static_cast<std::size_t>(slot.chunk)];
  }
}

void find_window(const std::vector<Slot>& slots, StageProfile& profile) {
  if (profile.position.size() > 1) return;
  std::int32_t in_flight = 0;
  for (const Slot& slot : slots) {
    if (slot.phase == SlotPhase::Forward) ++in_flight;
    if (hands_gradient_on(slot.phase)) --in_flight;
    profile.window = std::max(profile.window, in_flight);
  }
}

void find_completions(const std::vector<Slot>& slots, StageProfile& profile) {
  profile.from_completion.assign(profile.position.size(), {});
  SlotCounts counts;
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    ++counts.of[static_cast<std::size_t>(slot->phase)];
    auto& order = profile.completion_order;
    if (!completes_gradients(slot->phase) ||
        std::find(order.begin(), order.end(), slot->chunk) != order.end())
      continue;
    order.insert(order.begin(), slot->chunk);
    profile.from_completion[static_cast<std::size_t>(slot->chunk)] = counts;
  }
}

void find_first_completion(const std::vector<Slot>& slots, StageProfile& profile) {
  for (const Slot& slot : slots) {
    if (completes_gradients(slot.phase)) return;
    ++profile.before_completion.of[static_cast<std::size_t>(slot.phase)];
  }
}

StageProfile profile_stage(const std::vector<Slot>& slots, std::vector<std::int32_t> position) {
  StageProfile profile;
  HeldActivations now;
  now.forwarded.assign(position.size(), 0);
  now.half_done.assign(position.size(), 0);
  profile.position = std::move(position);
  find_warmup(slots, profile);
  find_window(slots, profile);
  find_completions(slots, profile);
  find_first_completion(slots, profile);
  profile.trailing_weights.assign(profile.position.size(), 0);
  for (const Slot& slot : slots) {
    now.slot = slot.phase;
    now.chunk = slot.chunk;
    remember(profile.held, now);
    pass(now, slot);
    if (slot.phase == SlotPhase::BackwardWeight) {
      ++profile.trailing_weights[static_cast<std::size_t>(slot.chunk)];
    } else if (slot.phase != SlotPhase::Forward) {
      profile.last_gradient_chunk = slot.chunk;
      std::fill(profile.trailing_weights.begin(), profile.trailing_weights.end(), 0);
    }
  }
  return profile;
}

// The number of microbatches from which on a schedule only repeats its steady state.
std::int64_t representative_microbatches(ScheduleKind kind, const ScheduleShape& shape) {
  if (kind == ScheduleKind::GPipe) return shape.microbatches;
  const std::int64_t most = 6 * shape.stages;
  if (shape.microbatches <= most) return shape.microbatches;
  return most + shape.microbatches % 2 * (kind == ScheduleKind::DualPipe ? 1 : 0);
}

}  // namespace

ScheduleProfile profile_schedule(const PipelineSchedule& schedule) {
  ScheduleProfile profile;
  profile.microbatch_share = 1.0 / static_cast<double>(schedule.routes.size());
  for (const Place& place : schedule.routes.front().places) {
    const Place* before = schedule.previous(place);
    profile.joined.push_back(before && before->stage == place.stage);
  }
  bool whole = false;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    profile.stages.push_back(profile_stage(schedule.stages[stage], schedule.position[stage]));
    for (const Slot& slot : schedule.stages[stage]) {
      whole = whole || slot.phase == SlotPhase::Backward;
      profile.splits_backward = profile.splits_backward || slot.phase == SlotPhase::BackwardWeight;
    }
  }
  for (std::size_t stage = 1; stage < profile.stages.size(); ++stage) {
    StageProfile& each = profile.stages[stage];
    each.holds_no_more_than_before = holds_no_more(each.held, profile.stages[stage - 1].held);
  }
  profile.mixes_backward = whole && profile.splits_backward;
  return profile;
}

const ScheduleProfile& ScheduleProfileStore::of(ScheduleKind kind, const ScheduleShape& shape) {
  ScheduleShape written = shape;
  written.microbatches = representative_microbatches(kind, shape);
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    entry = &entries_[{kind, written.stages, written.chunks, written.microbatches}];
  }
  std::call_once(entry->written, [&] {
    entry->profile = profile_schedule(make_schedule(kind, written));
    entry->profile.kind = kind;
    entry->profile.shape = written;
  });
  return entry->profile;
}

const SchedulePath& ScheduleProfiles::path(const ScheduleProfile& profile,
                                           const NominalTimes& times) {
  if (asked_ != &profile) paths_of_asked_ = &paths_[&profile];
  asked_ = &profile;
  const auto [found, is_new] = paths_of_asked_->try_emplace(times);
  if (!is_new) return found->second;
  if (listed_ != &profile) list_ = list_slots(make_schedule(profile.kind, profile.shape));
  listed_ = &profile;
  return found->second = find_path(list_, times);
}

}  // namespace shardwright::sim
