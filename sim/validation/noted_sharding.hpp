// How states are sharded, in the words of PyTorch's FSDP, of ZeRO++ and of InternEvo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Fills in `zero_stage` where its field is empty: FULL_SHARD and HYBRID_SHARD are 3, SHARD_GRAD_OP
// and _HYBRID_SHARD_ZERO2 2, NO_SHARD 0 (torch.distributed.fsdp.ShardingStrategy). Notes or stacks
// that name two of them are not read.
void complete_sharding(TrainingRow& row, std::vector<std::string>& filled_in);

// The ranks that share one copy of the states ("HSDP", "HYBRID_SHARD"): those that the notes or the
// stack's name state ("dp_shard=16", "shard group size 16"), or those of a node; with ZeRO-1 also
// InternEvo's `zero1` (configs/7B_sft.py: the ranks that divide the optimizer's states, all of them
// if not positive), which is listed where the degrees rule it out. Lists what of ZeRO++ (arXiv
// 2306.10209) is not simulated.
void set_shard_group(const TrainingRow& row, const ModelSpec& model, Plan& plan,
                     std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
