// The costs of data parallelism and of the optimizer for a stage, in seconds.
#pragma once

#include <cstddef>
#include <vector>

#include "core/lowering/data_parallel_messages.hpp"
#include "sim/step/chunk_costs.hpp"
#include "sim/step/message_times.hpp"

namespace shardwright::sim {

// The cost of each chunk, by position in forward order. Chunks that are alike share one.
using ChunkCosts = std::vector<const ChunkCost*>;

// Gradient reduction of one stage.
struct DataParallelCost {
  // All messages of the last microbatch.
  double reduce = 0.0;
  // A lower bound of all messages of the step.
  double step_reduce = 0.0;
  // The message after the last backward.
  double last_reduce = 0.0;
  // The time from the start of the last backward slot to the end of the last message, where
  // messages may only begin as the slot fills their buckets.
  double reduce_from_last_slot = 0.0;
  // Likely, all messages of the step, and how much later those of the last microbatch end than its
  // last slot.
  double likely_reduce = 0.0;
  double likely_tail = 0.0;
  // Slots of the stage before the first one that completes a gradient.
  double before_gradients = 0.0;
  // Messages of the weight gradients after the last gradient.
  double trailing_reduce = 0.0;
};

DataParallelCost data_parallel_cost(const PlanContext& in, const ChunkCosts& chunks,
                                    std::size_t stage, MessageTimes& messages);

// Costs that ZeRO and the optimizer add for the parameters of a stage, whatever is recomputed.
struct StateCost {
  // Gathers of parameters before the first forward can begin.
  double first_gather = 0.0;
  // Gathers of parameters before the first forward can end.
  double early_gathers = 0.0;
  // Gathers after the optimizer, where nothing hides them.
  double late_gathers = 0.0;
  // Adding up gradients over tensor-parallel ranks and mirrored stages.
  double copies = 0.0;
  // The norm of the gradients, up to its reduction over the stages.
  double norm = 0.0;
  double optimizer = 0.0;
  // The mean step's part of the exchange of local steps, which follows the optimizer.
  double exchange = 0.0;
  // The time of each fragment's exchanges, one after another, where these run beside further steps.
  std::vector<double> beside;

  // The mean step's part of those that is left after steps of `step` seconds.
  double exposed(const ReplicaAgreement& replicas, double step) const;
  // From the end of the norm on, without exchanges beside steps.
  double after_norm() const { return optimizer + exchange + late_gathers; }
};

StateCost state_cost(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage,
                     MessageTimes& messages);

// Bytes of a shared embedding's gradient that the ends of the pipeline add up; 0 if they share
// none.
double tied_bytes(const PlanContext& in);

// Parameters of one rank of the stage.
PartParameters stage_parameters(const PlanContext& in, const ChunkCosts& chunks, std::size_t stage);

// The same of each fragment of local steps.
std::vector<PartParameters> fragment_parameters(const PlanContext& in, const ChunkCosts& chunks,
                                                std::size_t stage);

Bucket bucket_of(const PartParameters& parameters, double element_bytes);

// Gathers of a bucket of parameters, and scatters of a bucket of gradients, over the ranks that
// share their states.
double gather_seconds(const Bucket& bucket, MessageTimes& messages);
double scatter_seconds(const Bucket& bucket, const Plan& plan, MessageTimes& messages);

}  // namespace shardwright::sim
