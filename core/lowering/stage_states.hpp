// The states that a pipeline stage holds from step to step: parameters, gradients and optimizer
// states of one rank.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/program/program.hpp"
#include "core/program/shard_shape.hpp"
#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

// The ends of the model that a stage holds, which has the chunks at `positions` of `chunks`.
struct ModelEnds {
  bool embedding = false, head = false;
};
ModelEnds ends_of_model(const std::vector<std::int32_t>& positions, std::size_t chunks);

// True if a stage holds a copy of a shared embedding beside the head.
bool copies_embedding(const ModelSpec& model, const Plan& plan, ModelEnds ends);

// Parameters of one rank of the stage, with a copy of a shared embedding on the last stage.
PartParameters stage_parameters(const ModelSpec& model, const BlockSet& blocks,
                                const PipelineSchedule& schedule,
                                const std::vector<LayerRange>& parts, const Plan& plan,
                                std::int32_t stage);

// Ranks over which ZeRO splits what the plan's stage splits: dense parameters, and those of
// experts.
double dense_shards(const Plan& plan);
double expert_shards(const Plan& plan);

// Bytes of unused gradients. A weight's gradient may be added up inside of a GEMM, but autograd
// wants a gradient to hand on: Transformer Engine keeps one unused tensor for each shape of weight
// (`get_dummy_wgrad`), that is, for the weights of one layer, and of the head where the stage has
// it, which is as large as the embedding. `largest_layer` and `embedding` are their dense
// parameters on one rank.
Bytes gradient_placeholders(double largest_layer, double embedding, bool holds_head,
                            const Plan& plan);

// Bytes per memory category on one rank, in insertion order. They are held in place: a search asks
// for them with every plan.
class PersistentStates {
 public:
  void add(MemoryCategory category, Bytes bytes) { states_[count_++] = {category, bytes}; }
  const PersistentMemory* begin() const { return states_.data(); }
  const PersistentMemory* end() const { return states_.data() + count_; }

 private:
  std::array<PersistentMemory, kMemoryCategories> states_{};
  std::size_t count_ = 0;
};

// The bytes of what Adam keeps of a parameter. Its step reads the weight, too, where the master
// weight is not all of it.
struct AdamStates {
  Bytes master_weight, moments;
  bool reads_weight = false;

  bool operator==(const AdamStates&) const = default;
};
AdamStates adam_states(const StackSpec& stack, const Plan& plan);

// Parameters of a rank that its optimizer updates: its shard of them with ZeRO.
double updated_parameters(const PartParameters& stage, const Plan& plan);

// The norm of their gradients, and the optimizer's step on them: HostUpdateWork where the host
// makes it, MemoryWork elsewhere.
MemoryWork gradient_norm_work(double updated, const Plan& plan, const StackSpec& stack);
Work optimizer_work(double updated, const Plan& plan, const StackSpec& stack);

// Weights, master weights, gradients and optimizer states (papers: ZeRO, arXiv 1910.02054).
// `fragments` has the parameters of each fragment of local steps; without it they count as equal,
// which is the least that they can take.
PersistentStates persistent_memory(const PartParameters& parameters, const Plan& plan,
                                   const StackSpec& stack,
                                   std::span<const PartParameters> fragments = {});

}  // namespace shardwright
