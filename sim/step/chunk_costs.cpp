#include "sim/step/chunk_costs.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/lowering/data_parallel_messages.hpp"
#include "core/program/groups.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/data_parallel_cost.hpp"
#include "sim/step/host_launch.hpp"

namespace shardwright::sim {
namespace {

using CostPart = ChunkPart<PartCost>;

// True if both chunks, and those before and behind them, are on one pool.
bool on_one_pool(const PipelineLayout& layout, std::size_t a, std::size_t b) {
  if (layout.chunk_pools.empty()) return true;
  const auto pools = layout.chunk_pools.begin();
  return std::all_of(pools + static_cast<std::ptrdiff_t>(a) - 1,
                     pools + static_cast<std::ptrdiff_t>(b) + 2,
                     [&](std::size_t pool) { return pool == layout.chunk_pools[a]; });
}

// Two neighbouring chunks that are not at the ends of the model.
bool are_alike(const PipelineLayout& layout, const LayerCosts& layers, std::size_t a,
               std::size_t b) {
  const std::vector<bool>& joined = layout.profile->joined;
  const LayerRange &first = layout.ranges[a], &second = layout.ranges[b];
  if (first.count != second.count || joined[a] || joined[b] || joined[b + 1]) return false;
  if (!on_one_pool(layout, a, b)) return false;
  const auto kinds = layers.kind_of_layer.begin();
  return std::equal(kinds + first.first, kinds + first.first + first.count, kinds + second.first);
}

// True if the stage's chunks are like those of the stage before.
bool is_like_before(const PipelineLayout& layout, std::size_t stage) {
  const std::vector<std::int32_t>& here = layout.stage(stage).position;
  const std::vector<std::int32_t>& before = layout.stage(stage - 1).position;
  const auto kind = [&](std::int32_t position) {
    return layout.chunk_kind[static_cast<std::size_t>(position)];
  };
  return std::equal(here.begin(), here.end(), before.begin(), before.end(),
                    [&](std::int32_t a, std::int32_t b) { return kind(a) == kind(b); });
}

void number_stages(PipelineLayout& layout) {
  std::vector<std::size_t>& kind = layout.stage_kind;
  kind.assign(layout.profile->stages.size(), 0);
  for (std::size_t s = 1; s < kind.size(); ++s)
    kind[s] = kind[s - 1] + (is_like_before(layout, s) ? 0 : 1);
  for (std::size_t first = 0, last = 0; last < kind.size(); ++last) {
    if (last + 1 < kind.size() && kind[last + 1] == kind[first]) continue;
    if (first < last) layout.ends.push_back({first, static_cast<std::int64_t>(last - first)});
    layout.ends.push_back({last, 1});
    first = last + 1;
  }
}

BlockCost allocation(double bytes, double launch = 0.0) {
  BlockCost cost;
  cost.rise = std::max(bytes, 0.0);
  cost.net = bytes;
  cost.launch = launch;
  return cost;
}

// Adds up memory, launches and times of the steps of a slot, one after the other.
struct SlotSum {
  SlotPhase phase;
  bool sharded = false;
  // The host's time to launch one kernel.
  double launch = 0.0;
  BlockCost sum{};
  // The part that has run last.
  const PartCost* before = nullptr;

  // Dense parameters and those of experts go over different groups.
  double launches(double dense, double expert) const {
    return launch * ((dense > 0.0 ? 1.0 : 0.0) + (expert > 0.0 ? 1.0 : 0.0));
  }
  void gather(const CostPart& part, std::size_t) {
    if (!part.part->gathers[phase]) return;
    const PartParameters& held = part.part->parameters;
    sum = sum + allocation(part.part->gathered_bytes,
                           launches(held.dense_weights(), held.expert_weights()));
  }
  void fetch(const CostPart& part, std::size_t) {
    sum = sum + allocation(part.part->offloaded_bytes, launch);
  }
  void rerun(const CostPart& part, std::size_t) { sum = sum + part.part->rerun; }
  void run(const CostPart& part, std::size_t) {
    sum = sum + part.part->slot[phase];
    if (phase == SlotPhase::Forward && part.part == before) {
      sum.time += before->slot[phase].behind_its_kind;
      sum.passing += before->slot[phase].behind_its_kind;
    }
    before = part.part;
  }
  void store(const CostPart& part, std::size_t) {
    sum = sum + allocation(-part.part->offloaded_bytes, launch);
  }
  void reduce(const CostPart& part, std::size_t) {
    const PartParameters& held = part.part->parameters;
    if (!sharded || held.total() <= 0.0) return;
    sum = sum + allocation(-part.part->gradient_bytes, launches(held.dense, held.expert));
  }
};

// Times of FSDP's messages, one after the other: most parts are like the one before.
struct ShardingTimes {
  const PlanContext& in;
  MessageTimes& messages;
  const PartCost *gathered_part = nullptr, *reduced_part = nullptr;
  double gather_time = 0.0, reduce_time = 0.0;

  double gather(const PartCost& part) {
    if (gathered_part == &part) return gather_time;
    gathered_part = &part;
    const double element = storage_bytes(in.plan.precision).value();
    const PartParameters& held = part.parameters;
    return gather_time = gather_seconds(
               {held.dense_weights() * element, held.expert_weights() * element}, messages);
  }
  double reduce(const PartCost& part) {
    if (reduced_part == &part) return reduce_time;
    reduced_part = &part;
    const double size = reduced_gradient_bytes(in.stack, in.plan.precision).value();
    return reduce_time = scatter_seconds(bucket_of(part.parameters, size), in.plan, messages);
  }
};

// Times the steps of a slot: gathers of FSDP, with its reductions, and copies of offloaded
// activations run beside the kernels of the parts before, each on a stream of its own.
struct SlotTiming {
  const PlanContext& in;
  // Null where gathers and reductions take no time.
  ShardingTimes* sharding;
  SlotPhase phase;
  // True if the gathers and copies that the first part waits for may have ended before it, because
  // they begin when the slot before has ended.
  bool begun = false;
  // Copies of the slot before run until then.
  double copied = 0.0;

  // The end of the gathers and copies for each place.
  std::vector<double> ready{};
  // The earliest start of the part at hand.
  double before = 0.0;
  double computed = 0.0, gathered = 0.0;
  // The time of all gathers of the slot.
  double gathering = 0.0;
  bool has_run = false;
  // The end of the gathers and copies that the first kernel waits for.
  double first_ready = 0.0;

  void gather(const CostPart& part, std::size_t place) {
    if (!part.part->gathers[phase]) return;
    const double time = sharding->gather(*part.part);
    gathering += time;
    gathered = std::max(gathered, computed) + time;
    ready[place] = std::max(ready[place], gathered);
  }
  void fetch(const CostPart& part, std::size_t place) {
    copied = std::max(copied, computed) + part.part->fetch_time;
    ready[place] = std::max(ready[place], copied);
  }
  void rerun(const CostPart& part, std::size_t place) { compute(part.part->rerun.time, place); }
  void run(const CostPart& part, std::size_t place) { compute(part.part->slot[phase].time, place); }
  void compute(double time, std::size_t place) {
    if (!has_run && begun) {
      gathered = copied = 0.0;
      std::fill(ready.begin(), ready.end(), 0.0);
    }
    if (!std::exchange(has_run, true)) first_ready = ready[place];
    before = computed;
    computed = std::max(computed, ready[place]) + time;
  }
  void store(const CostPart& part, std::size_t place) {
    copied = std::max(copied, before) + part.part->store_time;
    const std::size_t waits = place + kPartsBeforeStore;
    if (waits < ready.size()) ready[waits] = std::max(ready[waits], copied);
  }
  // FSDP reduces the gradients of a part behind its kernels, on the stream of the gathers.
  void reduce(const CostPart& part, std::size_t) {
    if (sharding == nullptr) return;
    const double time = sharding->reduce(*part.part);
    if (time <= 0.0) return;
    gathered = std::max(gathered, computed) + time;
    if (!in.plan.overlap.grad_reduce) computed = gathered;
  }
};

// `sharding`: of FSDP's gathers and reductions; null: without these.
SlotTiming time_slot(const PlanContext& in, const ChunkCost& chunk, SlotPhase phase,
                     ShardingTimes* sharding, bool begun, double copied = 0.0) {
  SlotTiming timing{.in = in,
                    .sharding = sharding,
                    .phase = phase,
                    .begun = begun,
                    .copied = copied,
                    .ready = std::vector<double>(chunk.parts.size(), 0.0)};
  walk_slot(phase, chunk.parts, {sharding != nullptr, parts_gathered_ahead(in.stack, in.plan)},
            timing);
  return timing;
}

// Walks a slot from the start of its first gather on. Kernels count from the first part on that
// waits for its gather; those before may have run by then.
struct CycleTiming {
  const PlanContext& in;
  ShardingTimes& sharding;
  SlotPhase phase;
  // The end of the gather for each place; 0 where there is none.
  std::vector<double> ready{};
  bool has_run = false, holds = false;
  double gathered = 0.0;
  GatherCycle cycle{};

  void gather(const CostPart& part, std::size_t place) {
    if (!part.part->gathers[phase]) return;
    gathered = std::max(gathered, cycle.computed) + sharding.gather(*part.part);
    ready[place] = gathered;
    if (!has_run) cycle.ahead = gathered;
  }
  void fetch(const CostPart&, std::size_t) {}
  void rerun(const CostPart& part, std::size_t place) { compute(part.part->rerun.time, place); }
  void run(const CostPart& part, std::size_t place) { compute(part.part->slot[phase].time, place); }
  void compute(double time, std::size_t place) {
    has_run = true;
    holds = holds || ready[place] > 0.0;
    if (holds) cycle.computed = std::max(cycle.computed, ready[place]) + time;
  }
  void store(const CostPart&, std::size_t) {}
  void reduce(const CostPart& part, std::size_t) {
    const double time = sharding.reduce(*part.part);
    if (time <= 0.0) return;
    gathered = std::max(gathered, cycle.computed) + time;
    if (!in.plan.overlap.grad_reduce && holds) cycle.computed = gathered;
  }
};

GatherCycle gather_cycle(const PlanContext& in, const ChunkCost& chunk, SlotPhase phase,
                         ShardingTimes& sharding) {
  CycleTiming timing{.in = in,
                     .sharding = sharding,
                     .phase = phase,
                     .ready = std::vector<double>(chunk.parts.size(), 0.0)};
  walk_slot(phase, chunk.parts, {true, parts_gathered_ahead(in.stack, in.plan)}, timing);
  GatherCycle cycle = timing.cycle;
  // Weight gradients gather nothing, so that a slot before them may end beside them.
  const bool splits = in.layout.profile->splits_backward;
  cycle.next = splits ? timing.gathered : std::max(timing.gathered, cycle.computed);
  return cycle;
}

// The slot takes at least the host's time to issue its parts up to the start of the last op,
// without the messages and copies around them.
void wait_for_launches(const ChunkCost& chunk, SlotPhase phase, BlockCost& cost) {
  double launch = 0.0;
  for (const CostPart& part : chunk.parts) launch += part.part->launch_in(phase);
  if (!chunk.parts.empty()) launch -= chunk.parts.back().part->slot[phase].launch_behind;
  cost.time = std::max(cost.time, launch);
  cost.passing = std::max(cost.passing, launch);
}

// The message at an end of a slot, which brings bytes or takes them away.
BlockCost message_cost(const PlanContext& in, double bytes) {
  if (bytes == 0.0) return {};
  const bool gathers = bytes > 0.0 && in.layers.message_bytes < in.layers.boundary_bytes;
  const double ops = gathers && !in.stack.host.cuda_graphs ? 2.0 : 1.0;
  return allocation(bytes, ops * host_launch(in.stack, in.cluster).kernel.value());
}

double copy_wait(const PlanContext& in, const ChunkCost& chunk, MessageTimes& messages,
                 std::initializer_list<SlotPhase> slots) {
  // The copies have piled up by then as far as they do.
  constexpr int kRounds = 4;
  ShardingTimes sharding{in, messages};
  ShardingTimes* const sharded = in.sharded ? &sharding : nullptr;
  double wait = 0.0, copying = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    wait = 0.0;
    for (const SlotPhase phase : slots) {
      const double alone = time_slot(in, chunk, phase, sharded, false).computed;
      const SlotTiming timing = time_slot(in, chunk, phase, sharded, false, copying);
      wait += timing.computed - alone;
      copying = std::max(0.0, timing.copied - timing.computed);
    }
  }
  return wait;
}

}  // namespace

bool splits_alike(const Plan& a, const Plan& b) {
  return a.chunks() == b.chunks() && a.embedding_counts_as_layer == b.embedding_counts_as_layer &&
         a.head_counts_as_layer == b.head_counts_as_layer && a.stage_layers == b.stage_layers &&
         a.multi_token_prediction == b.multi_token_prediction && a.stage_pools == b.stage_pools &&
         a.stage_recompute_layers == b.stage_recompute_layers;
}

namespace {

void place_on_pools(const Plan& plan, PipelineLayout& layout) {
  if (plan.stage_pools.empty()) return;
  layout.chunk_pools.resize(layout.ranges.size());
  for (std::size_t stage = 0; stage < layout.profile->stages.size(); ++stage) {
    layout.stage_pools.push_back(static_cast<std::size_t>(pool_of_stage(plan, stage)));
    for (const std::int32_t position : layout.stage(stage).position)
      layout.chunk_pools[static_cast<std::size_t>(position)] = layout.stage_pools.back();
  }
}

void number_chunk_stages(const Plan& plan, PipelineLayout& layout) {
  if (plan.stage_recompute_layers.empty()) return;
  layout.chunk_stages.resize(layout.ranges.size());
  for (std::size_t stage = 0; stage < layout.profile->stages.size(); ++stage) {
    for (const std::int32_t position : layout.stage(stage).position)
      layout.chunk_stages[static_cast<std::size_t>(position)] = static_cast<std::int64_t>(stage);
  }
}

std::int64_t recomputed_layers_number(const Plan& plan, std::int64_t stage) {
  if (!plan.stage_recompute_layers.empty())
    return plan.stage_recompute_layers[static_cast<std::size_t>(stage)];
  if (plan.recompute_interval > 1) return plan.recompute_interval;
  return plan.recompute_group > 1 ? plan.recompute_group : plan.recompute_layers;
}

}  // namespace

// Most chunks are alike, and so are most stages.
PipelineLayout lay_out(const ModelSpec& model, const LayerCosts& layers, const Plan& plan,
                       const ScheduleProfile& profile) {
  PipelineLayout layout;
  layout.profile = &profile;
  layout.ranges = split_layers(model, plan);
  place_on_pools(plan, layout);
  number_chunk_stages(plan, layout);
  layout.chunk_kind.resize(layout.ranges.size());
  const auto recomputed = [&](std::size_t chunk) {
    return recomputed_layers_number(plan, layout.stage_of_chunk(chunk));
  };
  for (std::size_t i = 0; i < layout.ranges.size(); ++i) {
    const bool like = i > 1 && i + 1 < layout.ranges.size() &&
                      are_alike(layout, layers, i - 1, i) && recomputed(i - 1) == recomputed(i);
    layout.chunk_kind[i] = like ? layout.chunk_kind[i - 1] : i;
  }
  number_stages(layout);
  return layout;
}

namespace {

// The policy, or for full recomputation in intervals and groups and by stages a number of their
// own.
std::uint64_t recomputation_kind(const Plan& plan) {
  constexpr std::uint64_t kPolicies = kEnumCount<RecomputePolicy>;
  if (!plan.stage_recompute_layers.empty()) return kPolicies + 2;
  if (plan.recompute_interval > 1) return kPolicies;
  if (plan.recompute_group > 1) return kPolicies + 1;
  return static_cast<std::uint64_t>(plan.recompute);
}

}  // namespace

std::uint64_t chunk_key(const PlanContext& in, std::size_t position) {
  const std::vector<bool>& joined = in.layout.profile->joined;
  const LayerRange& range = in.layout.ranges[position];
  const bool last = position + 1 == in.layout.ranges.size();
  const bool one_kind = in.layers.kept.size() <= 1 && in.layers.recomputed.size() <= 1;
  std::uint64_t key = 0;
  const auto append = [&key](std::uint64_t value, int bits) { key = key << bits | value; };
  append(static_cast<std::uint64_t>(range.count), 12);
  append(one_kind ? 0 : static_cast<std::uint64_t>(range.first), 12);
  append(static_cast<std::uint64_t>(
             recomputed_layers_number(in.plan, in.layout.stage_of_chunk(position))),
         12);
  append(recomputation_kind(in.plan), 3);
  append(position == 0, 1);
  append(last, 1);
  append(joined[position], 1);
  append(!last && joined[position + 1], 1);
  append(in.sharded, 1);
  append(in.sharded && in.layout.profile->splits_backward, 1);
  append(in.host_waits, 1);
  return key;
}

bool issues_none_ahead(const PlanContext& in, SlotPhase phase, std::size_t position) {
  const std::vector<bool>& joined = in.layout.profile->joined;
  if (phase == SlotPhase::BackwardWeight || !in.host_waits) return false;
  if (phase == SlotPhase::Forward) return position > 0 && !joined[position];
  return position + 1 < in.layout.ranges.size() && !joined[position + 1];
}

ChunkCost chunk_cost(const PlanContext& in, std::size_t position) {
  ChunkCost chunk;
  chunk.parts = parts_of_chunk(in.layers, in.plan, in.layout.ranges, position,
                               in.layout.stage_of_chunk(position));
  const std::vector<bool>& joined = in.layout.profile->joined;
  const bool first = position == 0, last = position + 1 == in.layout.ranges.size();
  const double input = first || joined[position] ? 0.0 : in.layers.boundary_bytes;
  const double output = last || joined[position + 1] ? 0.0 : in.layers.boundary_bytes;
  const double launch = host_launch(in.stack, in.cluster).kernel.value();
  for (const SlotPhase phase : enumerators<SlotPhase>()) {
    SlotSum sum{.phase = phase, .sharded = in.sharded, .launch = launch};
    walk_slot(phase, chunk.parts, {in.sharded, parts_gathered_ahead(in.stack, in.plan)}, sum);
    BlockCost& cost = chunk.slot[phase] = sum.sum;
    if (in.plan.offload_activations) {
      cost.time = time_slot(in, chunk, phase, nullptr, false).computed;
      cost.passing = time_slot(in, chunk, phase, nullptr, true).computed;
    }
    chunk.issued_ahead[phase] = cost.passing;
    if (issues_none_ahead(in, phase, position)) wait_for_launches(chunk, phase, cost);
    if (phase == SlotPhase::Forward)
      cost = message_cost(in, input) + cost + message_cost(in, -output);
    if (hands_gradient_on(phase)) cost = message_cost(in, output) + cost + message_cost(in, -input);
  }
  for (const CostPart& part : chunk.parts) {
    chunk.parameters += part.part->parameters;
    if (part.offloaded) chunk.copy_time += part.part->store_time + part.part->fetch_time;
  }
  return chunk;
}

ChunkCost sharded_chunk_cost(ChunkCost chunk, const PlanContext& in, std::size_t position,
                             MessageTimes& messages) {
  const double slowdown = in.stack.overlap.slowdown;
  ShardingTimes sharding{in, messages};
  for (const SlotPhase phase : enumerators<SlotPhase>()) {
    const bool half = phase == SlotPhase::BackwardInput || phase == SlotPhase::BackwardWeight;
    if (half && !in.layout.profile->splits_backward) continue;
    BlockCost& cost = chunk.slot[phase];
    const double computing = cost.time;
    const SlotTiming whole = time_slot(in, chunk, phase, &sharding, false);
    const SlotTiming passing = time_slot(in, chunk, phase, &sharding, true);
    cost.time = whole.computed;
    cost.passing = passing.computed;
    // The first gather begins after the slot before and holds the first kernel up. Slower kernels
    // hide more of a copy, and of the gathers behind the first one.
    if (!in.plan.offload_activations) cost.stalled += whole.first_ready;
    chunk.issued_ahead[phase] = cost.passing;
    if (issues_none_ahead(in, phase, position)) wait_for_launches(chunk, phase, cost);
    cost.sharding = passing.gathering;
    chunk.cycle[phase] = gather_cycle(in, chunk, phase, sharding);
    if (completes_gradients(phase))
      chunk.reducing[phase] = std::max(0.0, passing.gathered - passing.computed);
    const double hidden = std::max(0.0, passing.gathering - (cost.time - computing));
    cost.interference += hidden * slowdown / (1.0 + slowdown);
  }
  return chunk;
}

// Forward and backward passes follow each other in turn, or, with GPipe, all of one kind first.
double copy_wait(const PlanContext& in, const ChunkCost& chunk, MessageTimes& messages) {
  using enum SlotPhase;
  if (in.plan.schedule == ScheduleKind::GPipe)
    return copy_wait(in, chunk, messages, {Forward}) + copy_wait(in, chunk, messages, {Backward});
  if (in.layout.profile->splits_backward)
    return copy_wait(in, chunk, messages, {Forward, BackwardInput, BackwardWeight});
  return copy_wait(in, chunk, messages, {Forward, Backward});
}

}  // namespace shardwright::sim
