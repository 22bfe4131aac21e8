// Checks that the groups of ranks of a plan nest: hybrid shard groups in the data-parallel ranks,
// groups of experts in the ranks inside of the pipeline axis. Groups that do not nest have members
// at irregular distances, which no communication library builds and neither pricing nor lowering
// describes.
//
// Plans are within the limits of plan_check.hpp; their rank order may lack axes.
#pragma once

#include <cstdint>

#include "core/spec/plan.hpp"

namespace shardwright {

// The degree of an axis in the dense layers; 1 for the expert and the pipeline axis.
std::int64_t dense_degree(const Plan& plan, Axis axis);

// The degree of an axis in the layers of experts, which lie over the same ranks of a stage: the
// tensor axis has `expert_tp` ranks, the expert axis `ep`, the context axis none, and the data axis
// the rest (as Megatron Core's expert rank generator, github.com/NVIDIA/Megatron-LM,
// parallel_state.py).
std::int64_t expert_degree(const Plan& plan, Axis axis);

// Ranks between neighbouring stages; all ranks of a plan with one stage.
std::int64_t ranks_inside_pipeline(const Plan& plan);

// Ranks between neighbouring replicas.
std::int64_t ranks_inside_data(const Plan& plan);

// The axis along which data-parallel ranks are numbered first: context or data.
Axis inner_data_axis(const Plan& plan);

// Ranks of a stage that hold the same part of the experts.
std::int64_t expert_replicas(const Plan& plan);

// Shard groups are runs of the dp * cp ranks that split them evenly, and rows of the inner axis are
// made of whole groups or groups of whole rows.
bool shard_group_nests(const Plan& plan);

// The same for the replicas of an expert, which the pipeline axis may part.
bool shard_group_nests_with_experts(const Plan& plan);

// The pipeline axis cuts groups of experts into equal parts, or not at all.
bool pipeline_nests_with_experts(const Plan& plan);

}  // namespace shardwright
