#include "sim/step/data_parallel_cost.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <variant>

#include "core/lowering/replica_exchange.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/server_cost.hpp"

namespace shardwright::sim {
namespace {

// The collectives of one bucket, in seconds: scattering it, and adding it up over replicas.
struct BucketCost {
  double scatter = 0.0;
  double whole = 0.0;
};

double kernel_seconds(const PlanContext& in, OpKind kind, const Work& work, Phase phase) {
  if (kind == OpKind::ServerOptimizer)
    return server_update_time(std::get<MemoryWork>(work), in.plan, in.cluster).value();
  return kernel_cost(kind, work, in.plan.precision, in.cluster, in.stack, phase).time.value() *
         in.layers.slowest_device;
}

double exchange_op_seconds(const PlanContext& in, const ExchangeOp& op, Group group, Phase phase,
                           MessageTimes& messages) {
  return is_communication(op.kind) ? messages.of(op.kind, group, op.bytes.value())
                                   : kernel_seconds(in, op.kind, op.kernel, phase);
}

// The ops of an exchange, one after another.
double exchange_seconds(const PlanContext& in, const ExchangeOps& ops, Group group, Phase phase,
                        MessageTimes& messages) {
  double seconds = 0.0;
  for (const ExchangeOp& op : ops) seconds += exchange_op_seconds(in, op, group, phase, messages);
  return seconds;
}

double reduction_seconds(const PlanContext& in, const GradientReduction& each,
                         MessageTimes& messages) {
  if (!compresses_gradients(in.plan) || each.bytes <= 0.0 || group_size(each.group, in.plan) == 1)
    return messages.of(each.kind, each.group, each.bytes);
  const ExchangeOps ops =
      compressed_reduction(each, in.plan, reduced_gradient_bytes(in.stack, in.plan.precision));
  return exchange_seconds(in, ops, each.group, Phase::BackwardWeight, messages);
}

// What is `complete` of a bucket is added up over replicas.
BucketCost bucket_cost(const PlanContext& in, const Bucket& bucket, const Bucket& complete,
                       MessageTimes& messages) {
  BucketCost cost;
  std::array<double, 2> replicas{};
  for_each_reduction(bucket, complete, in.plan, [&](const GradientReduction& each) {
    const double time = reduction_seconds(in, each, messages);
    if (each.kind == OpKind::ReduceScatter) {
      cost.scatter += time;
    } else {
      replicas[each.expert ? 1 : 0] = time;
    }
  });
  cost.whole = cost.scatter + replicas[0] + replicas[1];
  return cost;
}

// Buckets that are reduced one after the other. FSDP scatters them on the stream of its gathers;
// replicas synchronise on a stream of their own.
struct ReductionStream {
  // The end of the last bucket's scatter, in seconds from where `ready` counts.
  double scattered = 0.0;
  // The end of the reduction over its replicas.
  double reduced = 0.0;

  void add(double ready, double scatter, double replicas) {
    scattered = std::max(scattered, ready) + scatter;
    reduced = std::max(reduced, scattered) + replicas;
  }
};

// Mean times of the slots of a stage, for chunks of mean length.
struct MeanSlots {
  std::array<double, kSlotPhases> time{};

  double of(const SlotCounts& counts) const {
    return std::inner_product(counts.of.begin(), counts.of.end(), time.begin(), 0.0);
  }
};

MeanSlots mean_slots(const StageProfile& profile, const ChunkCosts& chunks) {
  MeanSlots mean;
  for (const std::int32_t position : profile.position) {
    for (std::size_t i = 0; i < kSlotPhases; ++i)
      mean.time[i] += chunks[static_cast<std::size_t>(position)]->slot[i].time;
  }
  for (double& each : mean.time) each /= static_cast<double>(profile.position.size());
  return mean;
}

bool stage_copies_embedding(const PlanContext& in, std::size_t stage) {
  return copies_embedding(in.model, in.plan,
                          ends_of_model(in.layout.stage(stage).position, in.layout.ranges.size()));
}

PartParameters chunk_parameters(const PlanContext& in, const ChunkCosts& chunks,
                                std::size_t stage) {
  PartParameters sum;
  for (const std::int32_t position : in.layout.stage(stage).position)
    sum += chunks[static_cast<std::size_t>(position)]->parameters;
  return sum;
}

// The reductions of the last microbatch, which fills the buckets chunk by chunk, in each from the
// last part to the first.
struct LastMicrobatch {
  // The time of all buckets, of FSDP's scatters among them, and of the sums over replicas.
  double reduce = 0.0, scattered = 0.0, replicas = 0.0;
  // The times of the first bucket and of the last one.
  double first_scatter = 0.0, scatter = 0.0;
  // The time of the last bucket.
  double last_reduce = 0.0;
  // The end, from the last slot's start and from its end.
  double from_last_slot = 0.0, likely_end = 0.0;
};

LastMicrobatch reduce_last_microbatch(const PlanContext& in, const ChunkCosts& chunks,
                                      std::size_t stage, const MeanSlots& mean,
                                      MessageTimes& messages) {
  const StageProfile& profile = in.layout.stage(stage);
  const SlotPhase completes =
      in.layout.profile->splits_backward ? SlotPhase::BackwardWeight : SlotPhase::Backward;
  const double size = reduced_gradient_bytes(in.stack, in.plan.precision).value();
  const double full = gradient_bucket_bytes(in.model, in.plan, in.stack);
  const bool copies = !in.sharded && stage_copies_embedding(in, stage);
  const PartCost* head = &in.layers.head_of(in.plan);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  LastMicrobatch last;
  ReductionStream stream, likely{kNever, kNever};
  // `known` is the bucket before, whose cost is `cost`.
  Bucket bucket, known{-1.0, -1.0};
  BucketCost cost;
  double elapsed = 0.0;
  for (const std::int32_t chunk : profile.completion_order) {
    const auto c = static_cast<std::size_t>(chunk);
    const std::vector<ChunkPart<PartCost>>& parts =
        chunks[static_cast<std::size_t>(profile.position[c])]->parts;
    // The messages of the chunk before may have ended.
    if (chunk == 0) stream = {};
    double completing = -mean.of(profile.from_completion[c]);
    for (std::size_t i = parts.size(); i-- > 0;) {
      const PartCost& part = *parts[i].part;
      if (chunk == 0) elapsed += part.time_in(SlotPhase::Backward);
      completing += part.time_in(completes);
      bucket.add(part.parameters, size);
      if (copies && &part == head) bucket.add(in.layers.embedding.parameters, size);
      if (!bucket.holds(full)) continue;
      if (bucket != known) cost = bucket_cost(in, bucket, bucket, messages);
      known = std::exchange(bucket, {});
      last.last_reduce = cost.whole;
      last.scatter = in.sharded ? cost.scatter : 0.0;
      last.reduce += last.last_reduce;
      last.replicas += cost.whole - cost.scatter;
      if (last.scattered == 0.0) last.first_scatter = last.scatter;
      last.scattered += last.scatter;
      stream.add(elapsed, last.scatter, last.last_reduce - last.scatter);
      likely.add(completing, last.scatter, last.last_reduce - last.scatter);
    }
  }
  if (bucket.dense + bucket.expert > 0.0) {
    cost = bucket_cost(in, bucket, bucket, messages);
    last.last_reduce = cost.whole;
    last.reduce += last.last_reduce;
    last.replicas += cost.whole - cost.scatter;
    stream.add(elapsed, 0.0, last.last_reduce);
    likely.add(0.0, 0.0, last.last_reduce);
  }
  last.from_last_slot = stream.reduced;
  last.likely_end = likely.reduced;
  return last;
}

// ZeRO-2 scatters the gradients of each microbatch, and adds up those of the step over replicas,
// which takes `replicas` seconds.
void reduce_each_microbatch(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage,
                            double rounds, double replicas, MessageTimes& messages,
                            DataParallelCost& cost) {
  const double size = reduced_gradient_bytes(in.stack, in.plan.precision).value();
  const bool beside =
      gradient_bucket_bytes(in.model, in.plan, in.stack) < std::numeric_limits<double>::infinity();
  // Buckets fill up across microbatches. However they do, one message of all bytes takes less.
  const PartParameters all = chunk_parameters(in, chunks, stage);
  cost.step_reduce =
      bucket_cost(in, bucket_of(all, size * rounds), bucket_of(all, size), messages).whole;
  const double scatter = cost.reduce - replicas;
  cost.likely_reduce = beside ? scatter * rounds + replicas : cost.step_reduce;
  if (!beside) {
    cost.likely_tail = cost.last_reduce = cost.step_reduce;
    return;
  }
  const StageProfile& profile = in.layout.stage(stage);
  const auto trailing =
      std::accumulate(profile.trailing_weights.begin(), profile.trailing_weights.end(), 0.0);
  const double trailing_rounds = trailing / static_cast<double>(profile.position.size());
  cost.trailing_reduce = scatter * trailing_rounds + replicas * std::min(trailing_rounds, 1.0);
}

void gather_parameters(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage,
                       MessageTimes& messages, StateCost& states) {
  const double element = storage_bytes(in.plan.precision).value();
  const ParameterGathers gathers = parameter_gathers(in.plan, in.stack);
  if (gathers == ParameterGathers::None) return;
  if (gathers == ParameterGathers::AfterOptimizer) {
    states.late_gathers =
        gather_seconds(bucket_of(stage_parameters(in, chunks, stage), element), messages);
    return;
  }
  const auto first = static_cast<std::size_t>(in.layout.stage(stage).position.front());
  const std::vector<ChunkPart<PartCost>>& parts = chunks[first]->parts;
  const double full = parameter_bucket_bytes(in.plan, in.stack);
  const bool copies = stage_copies_embedding(in, stage);
  const auto add_part = [&](std::size_t i, Bucket& bucket) {
    bucket.add(parts[i].part->parameters, element);
    if (copies && parts[i].part == &in.layers.head_of(in.plan))
      bucket.add(in.layers.embedding.parameters, element);
  };
  for_each_gathered_bucket(parts.size(), full, add_part,
                           [&](const Bucket& bucket, std::size_t part, std::size_t) {
                             const double time = gather_seconds(bucket, messages);
                             if (part == 0) states.first_gather = time;
                             states.early_gathers += time;
                           });
}

void exchange_local_steps(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage,
                          MessageTimes& messages, StateCost& states) {
  const ReplicaAgreement& replicas = in.plan.replicas;
  if (!replicas.local()) return;
  const auto inner_steps = static_cast<double>(replicas.inner_steps);
  if (replicas.overlap_steps > 0)
    states.beside.resize(static_cast<std::size_t>(replicas.fragments), 0.0);
  for_each_local_exchange(
      fragment_parameters(in, chunks, stage), in.plan, [&](const LocalStepsExchange& each) {
        double at_once = 0.0;
        for (const ExchangeOp& op : each.ops) {
          const double seconds =
              exchange_op_seconds(in, op, each.group, Phase::Optimizer, messages);
          (op.beside ? states.beside[each.fragment] : at_once) += seconds;
        }
        states.exchange += at_once / inner_steps;
      });
}

}  // namespace

double StateCost::exposed(const ReplicaAgreement& replicas, double step) const {
  const double hidden = step * static_cast<double>(replicas.overlap_steps);
  double seconds = 0.0;
  for (const double each : beside) seconds += std::max(0.0, each - hidden);
  return seconds / static_cast<double>(replicas.inner_steps);
}

Bucket bucket_of(const PartParameters& parameters, double element_bytes) {
  Bucket bucket;
  bucket.add(parameters, element_bytes);
  return bucket;
}

double gather_seconds(const Bucket& bucket, MessageTimes& messages) {
  double seconds = 0.0;
  for_each_gather(bucket, [&](const ParameterGather& gather) {
    seconds += messages.of(OpKind::AllGather, gather.group, gather.bytes);
  });
  return seconds;
}

double scatter_seconds(const Bucket& bucket, const Plan& plan, MessageTimes& messages) {
  double seconds = 0.0;
  for_each_reduction(bucket, plan, [&](const GradientReduction& each) {
    if (each.kind == OpKind::ReduceScatter)
      seconds += messages.of(each.kind, each.group, each.bytes);
  });
  return seconds;
}

PartParameters stage_parameters(const PlanContext& in, const ChunkCosts& chunks,
                                std::size_t stage) {
  PartParameters sum = chunk_parameters(in, chunks, stage);
  if (stage_copies_embedding(in, stage)) sum += in.layers.embedding.parameters;
  return sum;
}

std::vector<PartParameters> fragment_parameters(const PlanContext& in, const ChunkCosts& chunks,
                                                std::size_t stage) {
  const ReplicaAgreement& replicas = in.plan.replicas;
  if (replicas.fragments == 1) return {stage_parameters(in, chunks, stage)};
  std::vector<PartParameters> fragments(static_cast<std::size_t>(replicas.fragments));
  std::vector<std::int32_t> positions = in.layout.stage(stage).position;
  std::sort(positions.begin(), positions.end());
  std::vector<const std::vector<ChunkPart<PartCost>>*> of_stage;
  for (const std::int32_t position : positions)
    of_stage.push_back(&chunks[static_cast<std::size_t>(position)]->parts);
  for_each_fragment_part(
      replicas, of_stage,
      [&](const ChunkPart<PartCost>& part) {
        return part.part != &in.layers.embedding && part.layer < in.model.layers;
      },
      [&](std::size_t fragment, const ChunkPart<PartCost>& part) {
        fragments[fragment] += part.part->parameters;
      });
  if (stage_copies_embedding(in, stage)) fragments.front() += in.layers.embedding.parameters;
  return fragments;
}

DataParallelCost data_parallel_cost(const PlanContext& in, const ChunkCosts& chunks,
                                    std::size_t stage, MessageTimes& messages) {
  const MeanSlots mean = mean_slots(in.layout.stage(stage), chunks);
  const LastMicrobatch last = reduce_last_microbatch(in, chunks, stage, mean, messages);
  const double rounds =
      static_cast<double>(in.plan.microbatches()) * in.layout.profile->microbatch_share;
  DataParallelCost cost;
  cost.before_gradients = mean.of(in.layout.stage(stage).before_completion);
  cost.reduce = last.reduce;
  cost.last_reduce = last.last_reduce;
  cost.reduce_from_last_slot = last.from_last_slot;
  cost.likely_tail = std::max(last.likely_end, 0.0);
  // Replicas of a hybrid group synchronise once, after the last microbatch.
  cost.step_reduce = std::max(rounds * last.scattered + last.last_reduce - last.scatter,
                              last.first_scatter + last.reduce - last.scattered);
  cost.likely_reduce = cost.step_reduce;
  // The last slot has waited for it.
  if (in.sharded && !in.plan.overlap.grad_reduce) {
    cost.last_reduce -= last.scatter;
    cost.likely_tail = std::max(0.0, cost.likely_tail - last.scatter);
  }
  if (in.plan.zero_stage == 2)
    reduce_each_microbatch(in, chunks, stage, rounds, last.replicas, messages, cost);
  return cost;
}

StateCost state_cost(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage,
                     MessageTimes& messages) {
  const PartParameters parameters = stage_parameters(in, chunks, stage);
  StateCost states;
  gather_parameters(in, chunks, stage, messages, states);
  for_each_copy_reduction(gradient_copies(parameters, in.plan, in.stack),
                          [&](const CopyReduction& copy) {
                            states.copies += messages.of(OpKind::AllReduce, copy.group, copy.bytes);
                          });
  const double updated = updated_parameters(parameters, in.plan);
  const auto kernel = [&](OpKind kind, const Work& work) {
    return kernel_seconds(in, kind, work, Phase::Optimizer);
  };
  exchange_local_steps(in, chunks, stage, messages, states);
  if (knows_gradient_norm(in.plan))
    states.norm = kernel(OpKind::GradientNorm, gradient_norm_work(updated, in.plan, in.stack));
  for_each_norm_reduction(in.plan, [&](const char*, Group group) {
    // All stages wait for each other in that one, which the pipeline counts.
    if (group != Group::ModelParallel)
      states.norm += messages.of(OpKind::AllReduce, group, kNormBytes);
  });
  for_each_served(parameters, in.plan, [&](const char*, Group group, const ExchangeOps& ops) {
    states.exchange += exchange_seconds(in, ops, group, Phase::Optimizer, messages);
  });
  if (in.plan.replicas.has_servers()) return states;
  const Work update = optimizer_work(updated, in.plan, in.stack);
  if (const auto* on_host = std::get_if<HostUpdateWork>(&update)) {
    const std::int64_t sharers = in.cluster.ranks_per_node(in.plan.world_size());
    states.optimizer =
        host_update_cost(*on_host, in.cluster.node.host, in.cluster.accelerator, sharers)
            .time.value();
  } else {
    states.optimizer = kernel(OpKind::Optimizer, update);
  }
  return states;
}

double tied_bytes(const PlanContext& in) {
  if (!ties_embedding_gradients(in.model, in.plan)) return 0.0;
  const ModelEnds first =
      ends_of_model(in.layout.profile->stages.front().position, in.layout.ranges.size());
  if (first.embedding == first.head) return 0.0;
  return in.layers.embedding.parameters.total() * main_gradient_bytes(in.stack, in.plan).value();
}

}  // namespace shardwright::sim
