// Words for the parts of a plan that are neither numbers nor names, as tables have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/plan.hpp"

namespace shardwright {

// Runs of equal numbers: "7×5 8×3".
std::string layers_text(const std::vector<std::int64_t>& counts);

// The split of the layers over the chunks where it is not the plain even one: the layers of each as
// above, or "ends as layers" where embedding and head count as layers ("head as layer", "embedding
// as layer" where one of them does); else, and without a pipeline, empty.
std::string layer_split_text(const Plan& plan);

// The pool of a part of the replicas; where it has several, these in the order of its stages, with
// `between` between them.
std::string part_pools_text(const PoolReplicas& part, const char* between);

// The pools of the plan: "h100" if all stages lie on one, or "h100×3 a100×1" with the number of
// stages on each; "h100 2×6 a100 4×1" where four replicas on the second one run a microbatch each,
// and "h100+a100 4×1" where their stages lie on both; empty if the plan names none.
std::string pools_text(const Plan& plan);

// "stage 3"; "stage 3 on h100" where replicas on several pools have stages of their own, counted as
// core/spec/pools.hpp does; "stage 3 on h100, replicas 4 to 7" where several of these may be on one
// pool.
std::string stage_name(const Plan& plan, std::int64_t stage);

// "none", "full", "full, 3 layers" (of a chunk), "selective", "selective mla_up_proj+moe_act".
std::string recompute_text(const Plan& plan);

// The activations that wait on the host between their passes: "activations", "activations of 20
// layers" (of a chunk), "34 % of activations"; empty if none do.
std::string offloaded_activations_text(const Plan& plan);

// "LoRA of rank 16", "LoRA of rank 16 on q, v over NF4 weights"; empty if all parameters are
// trained.
std::string lora_text(const Plan& plan);

// How replicas agree: "local steps of 500 with Nesterov, int8", "gradients in powersgd of rank 4",
// "parameter servers (one for each node of the workers), synchronous"; empty if they add up their
// gradients as they are.
std::string replicas_text(const Plan& plan);

// "tp-cp-ep-dp-pp", innermost first.
std::string rank_order_text(const std::vector<Axis>& order);

}  // namespace shardwright
