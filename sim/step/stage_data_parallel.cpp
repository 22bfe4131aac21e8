// Reductions and gathers of data parallelism in the costs of a stage, and the gradients that other
// ranks know a part of.
#include <algorithm>
#include <numeric>

#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "sim/step/stage_costs.hpp"

namespace shardwright::sim {

// Gradients that ranks other than data-parallel ones know a part of.
double StageCoster::copies_time(const PartParameters& parameters, const Plan& plan) {
  const double main = main_gradient_bytes(stack_, plan.precision).value();
  const double reduced = reduced_gradient_bytes(stack_, plan.precision).value();
  const double dense_parts = plan.zero_stage >= 1 ? dense_shards(plan) : 1.0;
  const double expert_parts = plan.zero_stage >= 1 ? expert_shards(plan) : 1.0;
  return messages_.of(
             OpKind::AllReduce, Group::Tensor,
             parameters.tensor_reduced * main / (plan.zero_stage == 3 ? dense_parts : 1.0)) +
         messages_.of(OpKind::AllReduce, Group::Mirror, parameters.dense * reduced / dense_parts) +
         messages_.of(OpKind::AllReduce, Group::Mirror, parameters.expert * reduced / expert_parts);
}

double StageCoster::reduce_time(double dense, double expert, const Plan& plan) {
  if (plan.zero_stage == 0) {
    return messages_.of(OpKind::AllReduce, Group::Data, dense) +
           messages_.of(OpKind::AllReduce, Group::ExpertData, expert);
  }
  return scatter_time(dense, expert) +
         messages_.of(OpKind::AllReduce, Group::ShardOuter, dense / dense_shards(plan)) +
         messages_.of(OpKind::AllReduce, Group::ExpertShardOuter, expert / expert_shards(plan));
}

double StageCoster::scatter_time(double dense, double expert) {
  return messages_.of(OpKind::ReduceScatter, Group::ShardInner, dense) +
         messages_.of(OpKind::ReduceScatter, Group::ExpertShardInner, expert);
}

// By chunk of the stage: the time from the start of the slot that completes its gradients to the
// end of the stage's last slot. Returns the time of the slots before the first gradient.
double StageCoster::find_completions(std::size_t stage) {
  const StageProfile& profile = costs_.profile->stages[stage];
  const std::size_t chunks = profile.position.size();
  std::array<double, kSlotCosts> mean{};
  for (const std::int32_t position : profile.position) {
    for (std::size_t i = 0; i < kSlotCosts; ++i)
      mean[i] += costs_.chunk(static_cast<std::size_t>(position)).slot[i].time;
  }
  for (double& each : mean) each /= static_cast<double>(chunks);
  const auto time_of = [&mean](const SlotCounts& counts) {
    return std::inner_product(counts.of.begin(), counts.of.end(), mean.begin(), 0.0);
  };
  from_completion_.assign(chunks, 0.0);
  std::transform(profile.from_completion.begin(), profile.from_completion.end(),
                 from_completion_.begin(), time_of);
  return time_of(profile.before_completion);
}

namespace {

// Buckets that are reduced one after the other. FSDP scatters them on the stream of its gathers;
// replicas meet on a stream of their own.
struct Reductions {
  double scattered = 0.0;  // the last bucket is, seconds from where `ready` counts
  double reduced = 0.0;    // … and its replicas have met

  void add(double ready, double scatter, double replicas) {
    scattered = std::max(scattered, ready) + scatter;
    reduced = std::max(reduced, scattered) + replicas;
  }
};

}  // namespace

// The last microbatch fills the buckets chunk by chunk, in each from the last part to the first.
DataParallelCost StageCoster::reduce_in_buckets(const LayerCosts& layers, const Plan& plan,
                                                std::size_t stage) {
  DataParallelCost cost;
  const double size = reduced_gradient_bytes(stack_, plan.precision).value();
  const bool beside = costs_.sharded || (stack_.overlap.grad_reduce && plan.overlap.grad_reduce &&
                                         stack_.gradients.buckets != GradientBuckets::Single);
  const SlotCost completes =
      costs_.profile->splits_backward ? SlotCost::BackwardWeight : SlotCost::Backward;
  const StageProfile& profile = costs_.profile->stages[stage];
  cost.before_gradients = find_completions(stage);
  double dense = 0.0, expert = 0.0, scattered = 0.0;
  Reductions stream;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  Reductions likely{kNever, kNever};
  double elapsed = 0.0, first_scatter = 0.0;
  double known_dense = -1.0, known_expert = -1.0, scatter = 0.0;  // of the bucket before
  for (const std::int32_t chunk : profile.completion_order) {
    const auto c = static_cast<std::size_t>(chunk);
    list_parts(layers, plan, static_cast<std::size_t>(profile.position[c]));
    if (chunk == 0) stream = {};  // what came before may be through
    double completing = -from_completion_[c];
    for (std::size_t i = parts_.size(); i-- > 0;) {
      const PartCost& part = *parts_[i];
      if (chunk == 0) elapsed += part.of(SlotCost::Backward).time;
      completing += part.of(completes).time;
      dense += part.parameters.dense * size;
      expert += part.parameters.expert * size;
      // FSDP reduces what the part's own parameters are.
      const bool copies = &part == &layers.head_of(plan) && copies_embedding(plan, stage);
      if (copies && !costs_.sharded) dense += layers.embedding.parameters.dense * size;
      const bool full = costs_.sharded || stack_.gradients.buckets == GradientBuckets::PerLayer ||
                        dense + expert >= size * elements_per_bucket(stack_, plan);
      if (!beside || !full) continue;
      if (dense != known_dense || expert != known_expert) {
        cost.last_reduce = reduce_time(dense, expert, plan);
        if (costs_.sharded) scatter = scatter_time(dense, expert);
        known_dense = dense;
        known_expert = expert;
      }
      cost.reduce += cost.last_reduce;
      if (scattered == 0.0) first_scatter = scatter;
      scattered += scatter;
      stream.add(elapsed, scatter, cost.last_reduce - scatter);
      likely.add(completing, scatter, cost.last_reduce - scatter);
      dense = expert = 0.0;
    }
  }
  if (dense + expert > 0.0) {
    cost.last_reduce = reduce_time(dense, expert, plan);
    cost.reduce += cost.last_reduce;
    stream.add(elapsed, 0.0, cost.last_reduce);
    likely.add(0.0, 0.0, cost.last_reduce);
  }
  cost.reduce_from_last_slot = stream.reduced;
  cost.likely_tail = std::max(likely.reduced, 0.0);
  const double rounds = costs_.microbatches * costs_.profile->microbatch_share;
  // Replicas of a hybrid group meet once, after the last microbatch.
  cost.step_reduce = std::max(rounds * scattered + cost.last_reduce - scatter,
                              first_scatter + cost.reduce - scattered);
  cost.likely_reduce = cost.step_reduce;
  if (costs_.sharded && !plan.overlap.grad_reduce) {  // the last slot has waited for it
    cost.last_reduce -= scatter;
    cost.likely_tail = std::max(0.0, cost.likely_tail - scatter);
  }
  if (plan.zero_stage == 2) {
    // Buckets fill up across microbatches. However they do, one message of all bytes takes less.
    const PartParameters all = chunk_parameters(stage);
    cost.step_reduce = reduce_time(all.dense * size * rounds, all.expert * size * rounds, plan);
    cost.likely_reduce = beside ? cost.reduce * rounds : cost.step_reduce;
    if (!beside) cost.likely_tail = cost.last_reduce = cost.step_reduce;
    const auto trailing =
        std::accumulate(profile.trailing_weights.begin(), profile.trailing_weights.end(), 0.0);
    if (beside)
      cost.trailing_reduce = cost.reduce * trailing / static_cast<double>(profile.position.size());
  }
  return cost;
}

void StageCoster::gather_parameters(const LayerCosts& layers, const Plan& plan, std::size_t stage,
                                    StageStates& states) {
  const double element = storage_bytes(plan.precision).value();
  const auto gather = [&](double dense, double expert) {
    return messages_.of(OpKind::AllGather, Group::ShardInner, dense) +
           messages_.of(OpKind::AllGather, Group::ExpertShardInner, expert);
  };
  if (!(stack_.overlap.param_gather && plan.overlap.param_gather)) {
    const PartParameters parameters = stage_parameters(layers, plan, stage);
    states.late_gathers = gather(parameters.dense * element, parameters.expert * element);
    return;
  }
  list_parts(layers, plan, static_cast<std::size_t>(costs_.profile->stages[stage].position[0]));
  const double bucket = element * elements_per_bucket(stack_, plan);
  double dense = 0.0, expert = 0.0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    dense += parts_[i]->parameters.dense * element;
    expert += parts_[i]->parameters.expert * element;
    const bool copies = parts_[i] == &layers.head_of(plan) && copies_embedding(plan, stage);
    if (copies) dense += layers.embedding.parameters.dense * element;
    if (i + 1 < parts_.size() && dense + expert < bucket) continue;
    const double time = gather(dense, expert);
    if (states.early_gathers == 0.0) states.first_gather = time;
    states.early_gathers += time;
    dense = expert = 0.0;
  }
}

}  // namespace shardwright::sim
