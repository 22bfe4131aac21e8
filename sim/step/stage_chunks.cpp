// The chunks of a plan in the costs of its stages: how they split the layers, which of them are
// alike, and what the slots of each take.
#include <algorithm>
#include <array>
#include <numeric>

#include "core/program/groups.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {
namespace {

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

bool is_part_of_backward(SlotCost which) {
  return which == SlotCost::BackwardInput || which == SlotCost::BackwardWeight;
}

bool makes_weight_gradients(SlotCost which) {
  return which == SlotCost::Backward || which == SlotCost::BackwardWeight;
}

}  // namespace

bool splits_alike(const Plan& a, const Plan& b) {
  return a.chunks() == b.chunks() && a.embedding_counts_as_layer == b.embedding_counts_as_layer &&
         a.head_counts_as_layer == b.head_counts_as_layer && a.stage_layers == b.stage_layers &&
         a.multi_token_prediction == b.multi_token_prediction;
}

// Most chunks are alike, and so are most stages.
void StageCoster::split(const LayerCosts& layers, const Plan& plan) {
  ranges_ = split_layers(model_, plan);
  chunk_kind_.resize(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const bool like = i > 1 && i + 1 < ranges_.size() && are_alike(layers, i - 1, i);
    chunk_kind_[i] = like ? chunk_kind_[i - 1] : i;
  }
  number_stages();
}

// Many chunks are those of plans before.
void StageCoster::find_chunks(const LayerCosts& layers, const Plan& plan) {
  costs_.chunks.resize(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    costs_.chunks[i] = chunk_kind_[i] < i ? costs_.chunks[i - 1] : known_chunk(layers, plan, i);
  }
}

// Names a chunk among those of the same layer costs: which layers it has, which of its ends is one
// of the model or lies on its own stage, what is recomputed and sharded, and of sharded ones, which
// slots are timed.
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
  append(static_cast<std::uint64_t>(plan.recompute), 2);
  append(position == 0, 1);
  append(last, 1);
  append(joined[position], 1);
  append(!last && joined[position + 1], 1);
  append(costs_.sharded, 1);
  append(costs_.sharded && costs_.profile->splits_backward, 1);
  append(costs_.host_waits, 1);
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
    const auto group = static_cast<std::uint64_t>(plan.shard_group) << 45;
    const auto [found, is_new] = sharded_chunks_.try_emplace(chunk_key(layers, plan, i) | group);
    if (is_new) found->second = sharded(*costs_.chunks[i], layers, plan, i);
    costs_.chunks[i] = &found->second;
  }
}

ChunkCost StageCoster::sharded(ChunkCost chunk, const LayerCosts& layers, const Plan& plan,
                               std::size_t position) {
  list_parts(layers, plan, position);
  const double slowdown = stack_.overlap.slowdown;
  for (std::size_t i = 0; i < kSlotCosts; ++i) {
    const auto which = static_cast<SlotCost>(i);
    if (is_part_of_backward(which) && !costs_.profile->splits_backward) continue;
    BlockCost& cost = chunk.slot[i];
    const double computing = cost.time;
    cost.time = slot_time(which, plan, {.gathers = true, .begun = false});
    // The first gather begins after the slot before and holds the first kernel up. Slower kernels
    // hide more of a copy, and of the gathers behind the first one.
    if (!offloads_) cost.stalled += ready_.front();
    cost.passing = slot_time(which, plan, {.gathers = true, .begun = true});
    if (issues_none_ahead(which, position)) wait_for_launches(which, cost);
    cost.sharding = gathering_;
    if (makes_weight_gradients(which)) chunk.reducing[i] = reducing_;
    const double hidden = std::max(0.0, gathering_ - (cost.time - computing));
    cost.interference += hidden * slowdown / (1.0 + slowdown);
  }
  return chunk;
}

// Two neighbouring chunks that are not at the ends of the model.
bool StageCoster::are_alike(const LayerCosts& layers, std::size_t a, std::size_t b) const {
  const std::vector<bool>& joined = costs_.profile->joined;
  if (ranges_[a].count != ranges_[b].count || joined[a] || joined[b] || joined[b + 1]) return false;
  const auto kinds = layers.kind_of_layer.begin();
  return std::equal(kinds + ranges_[a].first, kinds + ranges_[a].first + ranges_[a].count,
                    kinds + ranges_[b].first);
}

// True if the stage's chunks are like those of the stage before.
bool StageCoster::is_like_before(std::size_t stage) const {
  const std::vector<std::int32_t>& here = costs_.profile->stages[stage].position;
  const std::vector<std::int32_t>& before = costs_.profile->stages[stage - 1].position;
  const auto kind = [&](std::int32_t position) {
    return chunk_kind_[static_cast<std::size_t>(position)];
  };
  return std::equal(here.begin(), here.end(), before.begin(), before.end(),
                    [&](std::int32_t a, std::int32_t b) { return kind(a) == kind(b); });
}

void StageCoster::number_stages() {
  stage_kind_.assign(costs_.profile->stages.size(), 0);
  for (std::size_t s = 1; s < stage_kind_.size(); ++s)
    stage_kind_[s] = stage_kind_[s - 1] + (is_like_before(s) ? 0 : 1);
  ends_.clear();
  for (std::size_t first = 0, last = 0; last < stage_kind_.size(); ++last) {
    if (last + 1 < stage_kind_.size() && stage_kind_[last + 1] == stage_kind_[first]) continue;
    if (first < last) ends_.push_back({first, static_cast<std::int64_t>(last - first)});
    ends_.push_back({last, 1});
    first = last + 1;
  }
}

void StageCoster::list_parts(const LayerCosts& layers, const Plan& plan, std::size_t position) {
  parts_.clear();
  offloads_ = plan.offload_activations;
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
  const double launch = host_launch(stack_, cluster_).kernel.value();
  const auto message = [&](double bytes) {
    BlockCost cost = allocation(bytes);
    const bool gathers = bytes > 0.0 && layers.message_bytes < layers.boundary_bytes;
    const double ops = bytes == 0.0 ? 0.0 : gathers && !stack_.host.cuda_graphs ? 2.0 : 1.0;
    cost.launch = ops * launch;
    return cost;
  };
  for (std::size_t i = 0; i < kSlotCosts; ++i) {
    const auto which = static_cast<SlotCost>(i);
    BlockCost cost = slot_cost(which, plan);
    if (offloads_) {
      cost.time = slot_time(which, plan, {.gathers = false, .begun = false});
      cost.passing = slot_time(which, plan, {.gathers = false, .begun = true});
    }
    if (issues_none_ahead(which, position)) wait_for_launches(which, cost);
    if (which == SlotCost::Forward)
      cost = message(receives_input) + cost + message(-receives_gradient);
    if (which == SlotCost::Backward || which == SlotCost::BackwardInput)
      cost = message(receives_gradient) + cost + message(-receives_input);
    chunk.slot[i] = cost;
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    chunk.parameters += parts_[i]->parameters;
    if (offloads(i)) chunk.copy_time += parts_[i]->store_time + parts_[i]->fetch_time;
  }
  return chunk;
}

// True if the slot begins with a message that the host waits for.
bool StageCoster::issues_none_ahead(SlotCost which, std::size_t position) const {
  const std::vector<bool>& joined = costs_.profile->joined;
  if (which == SlotCost::BackwardWeight || !costs_.host_waits) return false;
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

// Part `i` in the order of the slot.
const PartCost& StageCoster::part_at(SlotCost which, std::size_t i) const {
  return *parts_[is_backward(which) ? parts_.size() - 1 - i : i];
}

BlockCost StageCoster::slot_cost(SlotCost which, const Plan& plan) const {
  BlockCost sum;
  const std::size_t count = parts_.size();
  const bool sharded = costs_.sharded;
  const double launch = host_launch(stack_, cluster_).kernel.value();
  const std::size_t ahead = parts_gathered_ahead(stack_, plan);
  std::size_t gathered = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const PartCost& part = part_at(which, i);
    for (; sharded && gathered <= std::min(i + ahead, count - 1); ++gathered) {
      const PartCost& next = part_at(which, gathered);
      if (!next.gathers[static_cast<std::size_t>(which)]) continue;
      sum = sum + allocation(next.gathered_bytes);
      sum.launch += launch * (next.parameters.expert > 0.0 ? 2.0 : 1.0);
    }
    sum = offloads_ ? sum + copies_before(which, i) + part.of(which) + copies_after(which, i)
                    : sum + part.of(which);
    if (which == SlotCost::Forward && i > 0 && &part == &part_at(which, i - 1)) {
      sum.time += part.of(which).behind_its_kind;
      sum.passing += part.of(which).behind_its_kind;
    }
    if (sharded && makes_weight_gradients(which) && part.parameters.total() > 0.0) {
      sum = sum + allocation(-part.gradient_bytes);
      sum.launch += launch * (part.parameters.expert > 0.0 ? 2.0 : 1.0);
    }
  }
  return sum;
}

// Gathers of FSDP, with its reductions, and copies of offloaded activations run beside the kernels
// of the parts before, each on a stream of its own. Those that the first part brings about begin
// when the slot before has ended, so they may be through when the slot's input arrives (`begun`).
double StageCoster::slot_time(SlotCost which, const Plan& plan, SlotWaits waits) {
  const std::size_t count = parts_.size();
  ready_.assign(count, 0.0);
  gathering_ = 0.0;
  gathered_part_ = reduced_part_ = nullptr;
  double computed = 0.0, gathered = 0.0, copied = waits.copied;
  for (std::size_t i = 0; i < count; ++i) {
    const bool begun = waits.begun && i == 0;
    if (waits.gathers) gather_ahead(which, plan, i, computed, gathered);
    if (offloads_ && is_backward(which)) fetch_ahead(which, i, computed, copied);
    if (begun) {
      gathered = copied = 0.0;
      ready_.assign(count, 0.0);
    }
    const double before = computed;
    computed = std::max(computed, ready_[i]) + part_at(which, i).of(which).time;
    if (waits.gathers && makes_weight_gradients(which))
      computed = reduce_behind(part_at(which, i), plan, computed, gathered);
    if (offloads_ && which == SlotCost::Forward) store_before(i, before, copied);
  }
  copying_ = std::max(0.0, copied - computed);
  reducing_ = std::max(0.0, gathered - computed);
  return computed;
}

// Issues the gathers of part `i` of the slot and of those prefetched with it, behind each other and
// behind what is `computed`.
void StageCoster::gather_ahead(SlotCost which, const Plan& plan, std::size_t i, double computed,
                               double& gathered) {
  const std::size_t ahead = parts_gathered_ahead(stack_, plan);
  const std::size_t last = std::min(i + ahead, parts_.size() - 1);
  for (std::size_t at = i == 0 ? 0 : i + ahead; at <= last; ++at) {
    const PartCost& part = part_at(which, at);
    if (!part.gathers[static_cast<std::size_t>(which)]) continue;
    const double gather = gather_time(part, plan);
    gathering_ += gather;
    gathered = std::max(gathered, computed) + gather;
    ready_[at] = std::max(ready_[at], gathered);
  }
}

// Most parts of a slot are like the one before.
double StageCoster::gather_time(const PartCost& part, const Plan& plan) {
  if (gathered_part_ == &part) return gather_time_;
  gathered_part_ = &part;
  const double element = element_bytes(plan);
  const double dense = part.parameters.dense * element, expert = part.parameters.expert * element;
  gather_time_ = messages_.of(OpKind::AllGather, Group::ShardInner, dense) +
                 messages_.of(OpKind::AllGather, Group::ExpertShardInner, expert);
  return gather_time_;
}

// FSDP reduces the gradients of a part behind its kernels, on the stream of the gathers. Returns
// when what follows on the compute stream may go on.
double StageCoster::reduce_behind(const PartCost& part, const Plan& plan, double computed,
                                  double& gathered) {
  if (reduced_part_ != &part) {
    reduced_part_ = &part;
    const double size = reduced_gradient_bytes(stack_, plan.precision).value();
    reduce_time_ = scatter_time(part.parameters.dense * size, part.parameters.expert * size);
  }
  if (reduce_time_ <= 0.0) return computed;
  gathered = std::max(gathered, computed) + reduce_time_;
  return plan.overlap.grad_reduce ? computed : gathered;
}

}  // namespace shardwright::sim
