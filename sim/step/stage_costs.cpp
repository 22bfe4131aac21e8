#include "sim/step/stage_costs.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/memory_cost.hpp"
#include "sim/cost/slowest_device.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/stage_paths.hpp"

namespace shardwright::sim {
namespace {

constexpr std::int64_t kUnfusedOptimizerKernels = 100;

}  // namespace

double mean_over_stages(const StageCosts& costs, double StageCost::*quantity) {
  double sum = 0.0;
  for (const StageCost& stage : costs.stages)
    sum += stage.*quantity * static_cast<double>(stage.like);
  return sum / static_cast<double>(costs.profile->stages.size());
}

const StageCosts& StageCoster::cost(const LayerCosts& layers, const Plan& plan) {
  memory(layers, plan);
  return times(layers, plan);
}

Bytes StageCoster::memory(const LayerCosts& layers, const Plan& plan) {
  if (!differs_only_in_states(plan)) begin_pipeline(layers, plan);
  find_peak(layers, plan);
  return costs_.memory;
}

// Of the plan before. Neighbours in the space often do.
bool StageCoster::differs_only_in_states(const Plan& plan) {
  if (!before_ || costs_.sharded != shards_parameters(model_, plan)) return false;
  before_->zero_stage = plan.zero_stage;
  before_->offload_optimizer = plan.offload_optimizer;
  return *before_ == plan;
}

// Of the plan before, apart from its states.
bool StageCoster::differs_only_in_recomputation(const Plan& plan) {
  if (!before_) return false;
  before_->recompute = plan.recompute;
  before_->recompute_layers = plan.recompute_layers;
  return *before_ == plan;
}

void StageCoster::begin_pipeline(const LayerCosts& layers, const Plan& plan) {
  const bool overlaps_alike = before_ && before_->overlap == plan.overlap;
  if (!overlaps_alike) chunks_.clear();
  if (!overlaps_alike || !ranks_alike(*before_, plan)) sharded_chunks_.clear();
  const ScheduleProfile* profile = &profiles_.of(plan.schedule, shape_of(plan));
  const bool split_alike = before_ && profile == costs_.profile && splits_alike(*before_, plan);
  costs_.profile = profile;
  costs_.microbatches = static_cast<double>(plan.microbatches());
  costs_.slowdown = stack_.overlap.slowdown;
  if (!split_alike) split(layers, plan);
  if (!differs_only_in_recomputation(plan)) forget_states();
  before_ = plan;
  costs_.sharded = shards_parameters(model_, plan);
  costs_.host_waits = plan.pp > 1 && host_waits_for_receives(stack_, plan);
  timed_ = false;
  find_chunks(layers, plan);
  find_held_peaks();
}

const StageCosts& StageCoster::times(const LayerCosts& layers, const Plan& plan) {
  if (plan.world_size() != ranks_) {
    ranks_ = plan.world_size();
    slowest_ = slowest_device_factor(cluster_.accelerator, ranks_);
  }
  if (!timed_) time_pipeline(layers, plan);
  timed_ = true;
  for (std::size_t i = 0; i < costs_.stages.size(); ++i) {
    StageCost& cost = costs_.stages[i];
    if (ends_run(i)) {
      cost.take_states_of(costs_.stages[i - 1]);
      continue;
    }
    const StageStates& states = states_times(layers, plan, cost.stage);
    cost.data = reduce_in_buckets(layers, plan, cost.stage);
    cost.data.first_gather = states.first_gather;
    cost.data.early_gathers = states.early_gathers;
    cost.data.late_gathers = states.late_gathers;
    cost.copies = states.copies;
    cost.norm = states.norm;
    cost.optimizer = states.optimizer;
  }
  find_paths(costs_);
  return costs_;
}

// What plans that differ only in their states have in common.
void StageCoster::time_pipeline(const LayerCosts& layers, const Plan& plan) {
  messages_.use_groups_of(plan);
  costs_.message = costs_.gather = 0.0;
  if (plan.pp > 1)
    costs_.message = messages_.of(OpKind::Send, Group::Pipeline, layers.message_bytes);
  if (plan.pp > 1 && layers.message_bytes < layers.boundary_bytes)
    costs_.gather = messages_.of(OpKind::AllGather, Group::Tensor, layers.boundary_bytes);
  costs_.blocking = plan.pp > 1 && kernels_wait_for_sends(stack_, plan);
  if (costs_.sharded) shard_chunks(layers, plan);
  chain_chunks();
  find_passages();
  find_copy_waits(layers, plan);
  time_list();
  costs_.tie = 0.0;
  if (shares_embedding(model_, plan) && plan.pp > 1 && plan.schedule != ScheduleKind::ZbV &&
      plan.schedule != ScheduleKind::DualPipe) {
    const double size = main_gradient_bytes(stack_, plan.precision).value();
    costs_.tie = messages_.of(OpKind::AllReduce, Group::EmbeddingTie,
                              layers.embedding.parameters.total() * size);
  }
  costs_.norm_reduce = messages_.of(OpKind::AllReduce, Group::ModelParallel, 4.0);
  costs_.stages.resize(ends_.size());
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    StageCost& cost = costs_.stages[i];
    cost = ends_run(i) ? costs_.stages[i - 1] : slots_cost(ends_[i].stage);
    cost.stage = ends_[i].stage;
    cost.like = ends_[i].like;
    add_warmup(cost);
  }
}

// True if the stage before the i-th of the costs is the first of its run.
bool StageCoster::ends_run(std::size_t i) const {
  return i > 0 && stage_kind_[ends_[i].stage] == stage_kind_[ends_[i - 1].stage];
}

StageCoster::KnownStates& StageCoster::known_states(const Plan& plan) {
  KnownStates& known =
      known_states_[kOptimizerOffloads * static_cast<std::size_t>(plan.zero_stage) +
                    static_cast<std::size_t>(plan.offload_optimizer)];
  known.bytes.resize(stage_kind_.back() + 1);
  known.times.resize(stage_kind_.back() + 1);
  return known;
}

void StageCoster::forget_states() {
  for (KnownStates& known : known_states_) {
    known.bytes.clear();
    known.times.clear();
  }
}

void StageCoster::find_passages() {
  passages_.resize(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i)
    passages_[i] = chunk_kind_[i] < i ? passages_[i - 1] : passage_of(costs_.chunk(i));
}

void StageCoster::find_copy_waits(const LayerCosts& layers, const Plan& plan) {
  copy_waits_.assign(ranges_.size(), 0.0);
  if (!plan.offload_activations) return;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    list_parts(layers, plan, i);
    copy_waits_[i] = chunk_kind_[i] < i ? copy_waits_[i - 1] : copy_wait(plan);
  }
}

void StageCoster::chain_chunks() {
  const std::size_t count = costs_.chunks.size();
  const ScheduleProfile& profile = *costs_.profile;
  costs_.forward_chain.assign(count + 1, 0.0);
  costs_.gradient_chain.assign(count + 1, 0.0);
  costs_.gradient_arrival.assign(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const double whole = from_message(SlotCost::Backward, i);
    const double input = from_message(SlotCost::BackwardInput, i);
    const double gradient = profile.mixes_backward    ? std::min(whole, input)
                            : profile.splits_backward ? input
                                                      : whole;
    const bool last = i + 1 == count;
    const double message = last || profile.joined[i + 1] ? 0.0 : costs_.message + costs_.gather;
    costs_.forward_chain[i + 1] =
        costs_.forward_chain[i] + from_message(SlotCost::Forward, i) + message;
    costs_.gradient_chain[i + 1] = costs_.gradient_chain[i] + gradient + message;
    costs_.gradient_arrival[i] = message - costs_.gradient_chain[i + 1];
  }
  const double first_gradient = costs_.forward_chain[count] + forwards_before_gradient();
  for (double& arrival : costs_.gradient_arrival)
    arrival += first_gradient + costs_.gradient_chain[count];
}

// A slot from the arrival of the message that it begins with to its end. A host that waits for the
// message issues FSDP's gathers behind it.
double StageCoster::from_message(SlotCost which, std::size_t position) const {
  const BlockCost& cost = costs_.chunk(position).of(which);
  return costs_.sharded && issues_none_ahead(which, position) ? cost.time : cost.passing;
}

// From the arrival of the first microbatch at the last stage to that of the one whose forward pass
// it computes last before the first gradient: the microbatches follow each other through the
// slowest chunk.
double StageCoster::forwards_before_gradient() const {
  const StageProfile& last = costs_.profile->stages.back();
  if (last.position.size() > 1) return 0.0;
  double slowest = 0.0;
  for (const ChunkCost* chunk : costs_.chunks)
    slowest = std::max(slowest, chunk->of(SlotCost::Forward).time);
  return (last.warmup.front() - 1.0) * slowest;
}

StageCost StageCoster::slots_cost(std::size_t stage) const {
  StageCost cost;
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
    cost.copy_wait += slots * copy_waits_[position];
    const ChunkCost& chunk = costs_.chunk(position);
    if (costs_.listed == 0.0)
      cost.copy_wait +=
          (slots - 1.0) * chunk.reducing[static_cast<std::size_t>(SlotCost::Backward)];
    computing += slots * (passage.forward_passing + passage.backward_passing);
    gathering += slots * (passage.forward_exposed() + passage.backward_exposed());
    sending += slots * sending_of(position);
    cost.first_exposed = std::max(cost.first_exposed, passage.forward_exposed());
    cost.gradient_exposed = std::max(cost.gradient_exposed, passage.backward_exposed());
  }
  // A slot's first gather begins when the slot before has ended, and so does that one's message.
  cost.busy = computing + std::max(gathering, sending);
  return cost;
}

// Messages of one microbatch that a chunk's stage waits for.
double StageCoster::sending_of(std::size_t position) const {
  const double neighbours =
      (position > 0 ? 1.0 : 0.0) + (position + 1 < ranges_.size() ? 1.0 : 0.0);
  return costs_.blocking ? neighbours * costs_.message : 0.0;
}

// Stages of like chunks differ in it.
void StageCoster::add_warmup(StageCost& cost) const {
  const StageProfile& profile = costs_.profile->stages[cost.stage];
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

const StageCoster::StageStates& StageCoster::states_times(const LayerCosts& layers,
                                                          const Plan& plan, std::size_t stage) {
  std::optional<StageStates>& known = known_states(plan).times[stage_kind_[stage]];
  if (!known) known = time_states(layers, plan, stage);
  return *known;
}

StageCoster::StageStates StageCoster::time_states(const LayerCosts& layers, const Plan& plan,
                                                  std::size_t stage) {
  StageStates states;
  const PartParameters parameters = stage_parameters(layers, plan, stage);
  if (plan.zero_stage == 1 || plan.zero_stage == 2) gather_parameters(layers, plan, stage, states);
  states.copies = copies_time(parameters, plan);
  add_update(parameters, plan, states);
  return states;
}

void StageCoster::add_update(const PartParameters& parameters, const Plan& plan,
                             StageStates& states) const {
  const bool splits = plan.zero_stage >= 1;
  const double updated = parameters.dense / (splits ? dense_shards(plan) : 1.0) +
                         parameters.expert / (splits ? expert_shards(plan) : 1.0);
  const double element = storage_bytes(plan.precision).value();
  const double gradient = main_gradient_bytes(stack_, plan.precision).value();
  const double held =
      stack_.memory.master_weight_bytes.value() + stack_.memory.optimizer_state_bytes.value();
  states.norm = over_parameters(OpKind::GradientNorm,
                                MemoryWork{Bytes(updated * gradient), Bytes(), Flop(), 1}, plan);
  states.optimizer =
      plan.offloads_optimizer()
          ? host_update_cost(host_update(plan, stack_, updated), cluster_.node.host,
                             cluster_.accelerator, cluster_.ranks_per_node(plan.world_size()))
                .time.value()
          : over_parameters(
                OpKind::Optimizer,
                MemoryWork{Bytes(updated * (gradient + held)), Bytes(updated * (held + element)),
                           Flop(), stack_.fusion.optimizer ? 1 : kUnfusedOptimizerKernels},
                plan);
}

double StageCoster::over_parameters(OpKind kind, const Work& work, const Plan& plan) const {
  return kernel_cost(kind, work, plan.precision, cluster_, stack_, Phase::Optimizer).time.value() *
         slowest_;
}

}  // namespace shardwright::sim
