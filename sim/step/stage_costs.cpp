#include "sim/step/stage_costs.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/slowest_device.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/prices.hpp"

namespace shardwright::sim {
namespace {

constexpr double kUnfusedOptimizerKernels = 100.0;

double element_bytes(const Plan& plan) {
  return storage_bytes(plan.precision).value();
}

BlockCost allocation(double bytes) {
  BlockCost cost;
  cost.rise = std::max(bytes, 0.0);
  cost.net = bytes;
  return cost;
}

bool is_backward(SlotCost which) {
  return which != SlotCost::Forward;
}

bool makes_weight_gradients(SlotCost which) {
  return which == SlotCost::Backward || which == SlotCost::BackwardWeight;
}

}  // namespace

const StageCosts& StageCoster::cost(const LayerCosts& layers, const Plan& plan) {
  memory(layers, plan);
  return times(layers, plan);
}

Bytes StageCoster::memory(const LayerCosts& layers, const Plan& plan) {
  costs_.profile = &profiles_.of(plan.schedule, shape_of(plan));
  costs_.microbatches = static_cast<double>(plan.microbatches());
  costs_.slowdown = stack_.overlap_slowdown;
  split(plan);
  find_chunks(layers, plan);
  find_peak(layers, plan);
  return costs_.memory;
}

// Neighbouring plans split the layers alike.
void StageCoster::split(const Plan& plan) {
  const Split asked{plan.chunks(), plan.embedding_counts_as_layer, plan.head_counts_as_layer};
  const bool even = plan.stage_layers.empty();
  if (even && asked == split_) return;
  ranges_ = split_layers(model_, plan);
  split_ = even ? asked : Split{};
}

const StageCosts& StageCoster::times(const LayerCosts& layers, const Plan& plan) {
  if (priced_.pp != plan.pp || priced_.dp != plan.dp || priced_.tp != plan.tp ||
      priced_.cp != plan.cp || priced_.ep != plan.ep || priced_.expert_tp != plan.expert_tp ||
      priced_.rank_order != plan.rank_order) {
    messages_.clear();
    sharded_chunks_.clear();
    priced_ = plan;
  }
  for (int group = 0; group < kGroups; ++group)
    alone_[static_cast<std::size_t>(group)] = group_size(static_cast<Group>(group), plan) == 1;
  costs_.message = costs_.gather = 0.0;
  if (plan.pp > 1)
    costs_.message = message_time(OpKind::Send, Group::Pipeline, layers.message_bytes, plan);
  if (plan.pp > 1 && layers.message_bytes < layers.boundary_bytes)
    costs_.gather = message_time(OpKind::AllGather, Group::Tensor, layers.boundary_bytes, plan);
  costs_.blocking = plan.pp > 1 && kernels_wait_for_sends(stack_, plan);
  costs_.host_waits = plan.pp > 1 && host_waits_for_receives(stack_, plan);
  if (shards_parameters(plan)) shard_chunks(layers, plan);
  chain_chunks();
  find_passages();
  costs_.tie = 0.0;
  if (shares_embedding(model_, plan) && plan.pp > 1 && plan.schedule != ScheduleKind::ZbV &&
      plan.schedule != ScheduleKind::DualPipe) {
    const double size = stack_.fp32_main_gradients ? 4.0 : element_bytes(plan);
    costs_.tie = message_time(OpKind::AllReduce, Group::EmbeddingTie,
                              layers.embedding.parameters.total() * size, plan);
  }
  costs_.norm_reduce = message_time(OpKind::AllReduce, Group::ModelParallel, 4.0, plan);
  costs_.stages.resize(static_cast<std::size_t>(plan.pp));
  for (std::size_t s = 0; s < costs_.stages.size(); ++s) {
    const std::size_t like = stage_like(s);
    costs_.stages[s] = like < s ? costs_.stages[like] : stage_cost(layers, plan, s);
    add_warmup(s, costs_.stages[s]);
  }
  return costs_;
}

// Most chunks are alike, in one plan and in the plans before it.
void StageCoster::find_chunks(const LayerCosts& layers, const Plan& plan) {
  const std::size_t count = ranges_.size();
  costs_.chunks.resize(count);
  chunk_kind_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const bool like = i > 1 && i + 1 < count && are_alike(layers, i - 1, i);
    chunk_kind_[i] = like ? chunk_kind_[i - 1] : i;
    costs_.chunks[i] = like ? costs_.chunks[i - 1] : known_chunk(layers, plan, i);
  }
}

// Names a chunk among those of the same layer costs: which layers it has, which of its ends is one
// of the model or lies on its own stage, and what is recomputed and sharded.
std::uint64_t StageCoster::chunk_key(const LayerCosts& layers, const Plan& plan,
                                     std::size_t position) const {
  const std::vector<bool>& joined = costs_.profile->joined;
  const bool last = position + 1 == ranges_.size();
  const bool one_kind = layers.kept.size() <= 1 && layers.recomputed.size() <= 1;
  std::uint64_t key = 0;
  const auto append = [&key](std::uint64_t value, int bits) { key = key << bits | value; };
  append(static_cast<std::uint64_t>(ranges_[position].count), 12);
  append(one_kind ? 0 : static_cast<std::uint64_t>(ranges_[position].first), 12);
  append(static_cast<std::uint64_t>(plan.recompute_layers), 12);
  append(static_cast<std::uint64_t>(plan.recompute), 3);
  append(position == 0, 1);
  append(last, 1);
  append(joined[position], 1);
  append(!last && joined[position + 1], 1);
  append(shards_parameters(plan), 1);
  append(host_waits_for_receives(stack_, plan), 1);
  return key;
}

const ChunkCost* StageCoster::known_chunk(const LayerCosts& layers, const Plan& plan,
                                          std::size_t position) {
  const auto [found, is_new] = chunks_.try_emplace(chunk_key(layers, plan, position));
  if (is_new) found->second = chunk_cost(layers, plan, position);
  return &found->second;
}

// FSDP: the slots' times with the gathers of this plan's groups.
void StageCoster::shard_chunks(const LayerCosts& layers, const Plan& plan) {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (chunk_kind_[i] < i) {
      costs_.chunks[i] = costs_.chunks[i - 1];
      continue;
    }
    const auto group = static_cast<std::uint64_t>(plan.shard_group) << 44;
    const auto [found, is_new] = sharded_chunks_.try_emplace(chunk_key(layers, plan, i) | group);
    if (is_new) found->second = sharded(*costs_.chunks[i], layers, plan, i);
    costs_.chunks[i] = &found->second;
  }
}

ChunkCost StageCoster::sharded(ChunkCost chunk, const LayerCosts& layers, const Plan& plan,
                               std::size_t position) {
  list_parts(layers, plan, position);
  const double slowdown = stack_.overlap_slowdown;
  for (std::size_t i = 0; i < kSlotCosts; ++i) {
    const auto which = static_cast<SlotCost>(i);
    BlockCost& cost = chunk.slot[i];
    const double computing = cost.time;
    cost.time = sharded_time(which, plan, false);
    cost.passing = sharded_time(which, plan, true);
    // The first gather begins after the slot before and holds the first kernel up.
    cost.stalled += cost.time - cost.passing;
    if (issues_none_ahead(which, plan, position)) wait_for_launches(which, cost);
    cost.sharding = std::max(gathering_, reductions_within(which, plan));
    const double hidden = std::max(0.0, gathering_ - (cost.time - computing));
    cost.interference += hidden * slowdown / (1.0 + slowdown);
  }
  return chunk;
}

void StageCoster::find_passages() {
  passages_.resize(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    passages_[i] = chunk_kind_[i] < i ? passages_[i - 1] : passage_of(costs_.chunk(i));
}

void StageCoster::chain_chunks() {
  const std::size_t count = costs_.chunks.size();
  const ScheduleProfile& profile = *costs_.profile;
  costs_.forward_chain.assign(count + 1, 0.0);
  costs_.gradient_chain.assign(count + 1, 0.0);
  costs_.gradient_arrival.assign(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const ChunkCost& chunk = costs_.chunk(i);
    const double whole = chunk.of(SlotCost::Backward).passing;
    const double input = chunk.of(SlotCost::BackwardInput).passing;
    const double gradient = profile.mixes_backward    ? std::min(whole, input)
                            : profile.splits_backward ? input
                                                      : whole;
    const bool last = i + 1 == count;
    const double message = last || profile.joined[i + 1] ? 0.0 : costs_.message + costs_.gather;
    costs_.forward_chain[i + 1] =
        costs_.forward_chain[i] + chunk.of(SlotCost::Forward).passing + message;
    costs_.gradient_chain[i + 1] = costs_.gradient_chain[i] + gradient + message;
    costs_.gradient_arrival[i] = message - costs_.gradient_chain[i + 1];
  }
  const double first_gradient = costs_.forward_chain[count] + forwards_before_gradient();
  for (double& arrival : costs_.gradient_arrival)
    arrival += first_gradient + costs_.gradient_chain[count];
}

// From the arrival of the first microbatch at the last stage to that of the one whose forward pass
// it computes last before the first gradient: the microbatches follow each other through the
// slowest chunk.
double StageCoster::forwards_before_gradient() const {
  const StageProfile& last = costs_.profile->stages.back();
  if (last.position.size() > 1) return 0.0;
  double slowest = 0.0;
  for (const ChunkCost* chunk : costs_.chunks)
    slowest = std::max(slowest, chunk->of(SlotCost::Forward).passing);
  return (last.warmup.front() - 1.0) * slowest;
}

// Two neighbouring chunks that are not at the ends of the model.
bool StageCoster::are_alike(const LayerCosts& layers, std::size_t a, std::size_t b) const {
  const std::vector<bool>& joined = costs_.profile->joined;
  if (ranges_[a].count != ranges_[b].count || joined[a] || joined[b] || joined[b + 1]) return false;
  const auto kinds = layers.kind_of_layer.begin();
  return std::equal(kinds + ranges_[a].first, kinds + ranges_[a].first + ranges_[a].count,
                    kinds + ranges_[b].first);
}

// The stage before, if its chunks are like those of this one; else the stage itself.
std::size_t StageCoster::stage_like(std::size_t stage) const {
  if (stage == 0) return 0;
  const std::vector<std::int32_t>& here = costs_.profile->stages[stage].position;
  const std::vector<std::int32_t>& before = costs_.profile->stages[stage - 1].position;
  const auto kind = [&](std::int32_t position) {
    return chunk_kind_[static_cast<std::size_t>(position)];
  };
  const bool alike = std::equal(here.begin(), here.end(), before.begin(), before.end(),
                                [&](std::int32_t a, std::int32_t b) { return kind(a) == kind(b); });
  return alike ? stage - 1 : stage;
}

void StageCoster::list_parts(const LayerCosts& layers, const Plan& plan, std::size_t position) {
  parts_.clear();
  last_layer_ = parts_.max_size();
  const LayerRange& range = ranges_[position];
  if (position == 0) parts_.push_back(&layers.embedding);
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto kind =
        static_cast<std::size_t>(layers.kind_of_layer[static_cast<std::size_t>(range.first + i)]);
    const bool recomputed = plan.recompute == RecomputePolicy::Full &&
                            (plan.recompute_layers == 0 || i < plan.recompute_layers);
    if (i + 1 == range.count) last_layer_ = parts_.size();
    parts_.push_back(recomputed ? &layers.recomputed[kind] : &layers.kept[kind]);
  }
  if (position + 1 == ranges_.size()) parts_.push_back(&layers.head_of(plan));
}

ChunkCost StageCoster::chunk_cost(const LayerCosts& layers, const Plan& plan,
                                  std::size_t position) {
  list_parts(layers, plan, position);
  ChunkCost chunk;
  const bool first = position == 0, last = position + 1 == ranges_.size();
  const double receives_input =
      first || costs_.profile->joined[position] ? 0.0 : layers.boundary_bytes;
  const double receives_gradient =
      last || costs_.profile->joined[position + 1] ? 0.0 : layers.boundary_bytes;
  const double launch = launch_time(stack_, cluster_).value();
  const auto message = [&](double bytes) {
    BlockCost cost = allocation(bytes);
    const bool gathers = bytes > 0.0 && layers.message_bytes < layers.boundary_bytes;
    const double ops = bytes == 0.0 ? 0.0 : gathers && !stack_.cuda_graphs ? 2.0 : 1.0;
    cost.launch = ops * launch;
    return cost;
  };
  for (std::size_t i = 0; i < kSlotCosts; ++i) {
    const auto which = static_cast<SlotCost>(i);
    BlockCost cost = slot_cost(which, plan);
    if (issues_none_ahead(which, plan, position)) wait_for_launches(which, cost);
    if (which == SlotCost::Forward)
      cost = message(receives_input) + cost + message(-receives_gradient);
    if (which == SlotCost::Backward || which == SlotCost::BackwardInput)
      cost = message(receives_gradient) + cost + message(-receives_input);
    chunk.slot[i] = cost;
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    chunk.parameters += parts_[i]->parameters;
    if (offloaded_bytes(i) > 0.0) chunk.copy_time += parts_[i]->copy_time;
  }
  return chunk;
}

// True if the slot begins with a message that the host waits for.
bool StageCoster::issues_none_ahead(SlotCost which, const Plan& plan, std::size_t position) const {
  const std::vector<bool>& joined = costs_.profile->joined;
  if (which == SlotCost::BackwardWeight || !host_waits_for_receives(stack_, plan)) return false;
  if (which == SlotCost::Forward) return position > 0 && !joined[position];
  return position + 1 < ranges_.size() && !joined[position + 1];
}

// The slot takes at least the host's time to issue its parts, without the messages and copies
// around them.
void StageCoster::wait_for_launches(SlotCost which, BlockCost& cost) const {
  const double launch = std::accumulate(
      parts_.begin(), parts_.end(), 0.0,
      [which](double sum, const PartCost* part) { return sum + part->of(which).launch; });
  cost.time = std::max(cost.time, launch);
  cost.passing = std::max(cost.passing, launch);
}

BlockCost StageCoster::slot_cost(SlotCost which, const Plan& plan) const {
  BlockCost sum;
  const std::size_t count = parts_.size();
  const bool sharded = shards_parameters(plan);
  const double launch = launch_time(stack_, cluster_).value();
  const auto ahead = static_cast<std::size_t>(stack_.prefetch_layers);
  const auto part_at = [&](std::size_t i) -> const PartCost& {
    return *parts_[is_backward(which) ? count - 1 - i : i];
  };
  std::size_t gathered = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const PartCost& part = part_at(i);
    for (; sharded && gathered <= std::min(i + ahead, count - 1); ++gathered) {
      const PartCost& next = part_at(gathered);
      if (!next.gathers[static_cast<std::size_t>(which)]) continue;
      sum = sum + allocation(next.gathered_bytes);
      sum.launch += launch * (next.parameters.expert > 0.0 ? 2.0 : 1.0);
    }
    sum = sum + copies_before(which, i) + part.of(which) + copies_after(which, i);
    if (sharded && makes_weight_gradients(which) && part.parameters.total() > 0.0) {
      sum = sum + allocation(-part.gradient_bytes);
      sum.launch += launch * (part.parameters.expert > 0.0 ? 2.0 : 1.0);
    }
  }
  return sum;
}

// FSDP: gathers run beside the kernels of the part before. Those of the first part begin when the
// slot before has ended, so they may be through when the slot's input arrives.
double StageCoster::sharded_time(SlotCost which, const Plan& plan, bool first_gathered) {
  const double element = element_bytes(plan);
  const auto ahead = static_cast<std::size_t>(stack_.prefetch_layers);
  const std::size_t count = parts_.size();
  const auto part_at = [&](std::size_t i) -> const PartCost& {
    return *parts_[is_backward(which) ? count - 1 - i : i];
  };
  gather_end_.assign(count, 0.0);
  gathering_ = 0.0;
  double computed = 0.0, stream = 0.0;
  std::size_t gathered = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (; gathered <= std::min(i + ahead, count - 1); ++gathered) {
      const PartCost& part = part_at(gathered);
      if (!part.gathers[static_cast<std::size_t>(which)]) continue;
      const double gather = message_time(OpKind::AllGather, Group::ShardInner,
                                         part.parameters.dense * element, plan) +
                            message_time(OpKind::AllGather, Group::ExpertShardInner,
                                         part.parameters.expert * element, plan);
      gathering_ += gather;
      stream = std::max(stream, computed) + gather;
      if (first_gathered && i == 0) stream = 0.0;
      gather_end_[gathered] = stream;
    }
    computed = std::max(computed, gather_end_[i]) + part_at(i).of(which).time;
  }
  return computed;
}

// FSDP: of the reductions of a slot of whole backward passes, those that surely end before it does.
// The rest may run beside the gathers of the slot that comes next.
double StageCoster::reductions_within(SlotCost which, const Plan& plan) {
  if (which != SlotCost::Backward || costs_.profile->splits_backward) return 0.0;
  const double size = stack_.fp32_gradient_reduction ? 4.0 : element_bytes(plan);
  double computed = 0.0, reduced = 0.0, stream = 0.0;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    computed += (*part)->of(which).time;
    const PartParameters& parameters = (*part)->parameters;
    const double reduce = scatter_time(parameters.dense * size, parameters.expert * size, plan);
    stream = std::max(stream, computed) + reduce;
    reduced += reduce;
  }
  // Otherwise they may pile up from slot to slot.
  const bool keeps_up = reduced <= computed;
  return keeps_up ? reduced - (stream - computed) : 0.0;
}

StageCost StageCoster::stage_cost(const LayerCosts& layers, const Plan& plan, std::size_t stage) {
  StageCost cost;
  add_slots(stage, cost);
  cost.data = data_parallel(layers, plan, stage);
  add_update(layers, plan, stage, cost);
  return cost;
}

void StageCoster::add_slots(std::size_t stage, StageCost& cost) const {
  const StageProfile& profile = costs_.profile->stages[stage];
  const double slots = costs_.microbatches * costs_.profile->microbatch_share;
  double computing = 0.0, gathering = 0.0, sending = 0.0;
  for (const std::int32_t each : profile.position) {
    const auto position = static_cast<std::size_t>(each);
    const Passage& passage = passages_[position];
    cost.compute += slots * passage.compute;
    cost.launch += slots * passage.launch;
    cost.interference += slots * passage.interference;
    cost.stalled += slots * passage.stalled;
    cost.sharding += slots * passage.sharding;
    cost.offload += slots * costs_.chunk(position).copy_time;
    computing += slots * (passage.forward_passing + passage.backward_passing);
    gathering += slots * (passage.forward_exposed() + passage.backward_exposed());
    sending += slots * sending_of(position);
    cost.first_exposed = std::max(cost.first_exposed, passage.forward_exposed());
    cost.gradient_exposed = std::max(cost.gradient_exposed, passage.backward_exposed());
  }
  // A slot's first gather begins when the slot before has ended, and so does that one's message.
  cost.busy = computing + std::max(gathering, sending);
}

// Messages of one microbatch that a chunk's stage waits for.
double StageCoster::sending_of(std::size_t position) const {
  const double neighbours =
      (position > 0 ? 1.0 : 0.0) + (position + 1 < ranges_.size() ? 1.0 : 0.0);
  return costs_.blocking ? neighbours * costs_.message : 0.0;
}

// Stages of like chunks differ in it.
void StageCoster::add_warmup(std::size_t stage, StageCost& cost) const {
  const StageProfile& profile = costs_.profile->stages[stage];
  cost.warmup = cost.warmup_launch = 0.0;
  for (std::size_t i = 0; i < profile.position.size(); ++i) {
    const auto position = static_cast<std::size_t>(profile.position[i]);
    cost.warmup += profile.warmup[i] * (passages_[position].forward + sending_of(position));
    cost.warmup_launch += profile.warmup[i] * costs_.chunk(position).of(SlotCost::Forward).launch;
  }
}

// What one microbatch takes in a chunk, as the schedule cuts its backward pass.
StageCoster::Passage StageCoster::passage_of(const ChunkCost& chunk) const {
  const BlockCost& forward = chunk.of(SlotCost::Forward);
  const BlockCost& whole = chunk.of(SlotCost::Backward);
  const BlockCost& input = chunk.of(SlotCost::BackwardInput);
  const BlockCost& weight = chunk.of(SlotCost::BackwardWeight);
  const bool splits = costs_.profile->splits_backward, mixes = costs_.profile->mixes_backward;
  const auto backward = [&](double BlockCost::*member) {
    const double split = input.*member + weight.*member;
    return mixes ? std::min(split, whole.*member) : splits ? split : whole.*member;
  };
  return {forward.time,
          forward.passing,
          backward(&BlockCost::time),
          backward(&BlockCost::passing),
          forward.compute + backward(&BlockCost::compute),
          forward.launch + backward(&BlockCost::launch),
          forward.interference + backward(&BlockCost::interference),
          forward.stalled + backward(&BlockCost::stalled),
          forward.sharding + backward(&BlockCost::sharding)};
}

void StageCoster::add_update(const LayerCosts& layers, const Plan& plan, std::size_t stage,
                             StageCost& cost) {
  const PartParameters parameters = stage_parameters(layers, plan, stage);
  const bool splits = plan.zero_stage >= 1;
  const double updated = parameters.dense / (splits ? dense_shards(plan) : 1.0) +
                         parameters.expert / (splits ? expert_shards(plan) : 1.0);
  const double element = element_bytes(plan);
  const double gradient = stack_.fp32_main_gradients ? 4.0 : element;
  const double states = stack_.master_weight_bytes.value() + stack_.optimizer_state_bytes.value();
  cost.copies = copies_time(parameters, plan);
  cost.norm = over_parameters(OpKind::GradientNorm, updated * gradient, 0.0, 1, plan);
  cost.optimizer =
      plan.offload_optimizer
          ? over_parameters(OpKind::Offload, updated * gradient, updated * element, 1, plan)
          : over_parameters(
                OpKind::Optimizer, updated * (gradient + states), updated * (states + element),
                stack_.fused_optimizer ? 1 : static_cast<std::int64_t>(kUnfusedOptimizerKernels),
                plan);
}

double StageCoster::over_parameters(OpKind kind, double read, double written, std::int64_t kernels,
                                    const Plan& plan) const {
  return kernel_cost(kind, MemoryWork{Bytes(read), Bytes(written), Flop(), kernels}, plan.precision,
                     cluster_, stack_, Phase::Optimizer)
             .time.value() *
         slowest_device_factor(cluster_.accelerator, plan.world_size());
}

double StageCoster::message_time(OpKind kind, Group group, double bytes, const Plan& plan) {
  if (bytes <= 0.0 || alone_[static_cast<std::size_t>(group)]) return 0.0;
  for (const Message& known : messages_) {
    if (known.bytes == bytes && known.kind == kind && known.group == group &&
        known.shard_group == plan.shard_group)
      return known.time;
  }
  const double time =
      collective_time(kind, Bytes(bytes), place(group, plan, cluster_), cluster_, stack_).value();
  messages_.push_back({kind, group, plan.shard_group, bytes, time});
  return time;
}

}  // namespace shardwright::sim
