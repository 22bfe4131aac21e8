// Plans as JSON.
//
// Required: dp, tp, pp, micro_batch, global_batch and seq_len. Everything else has a default. Names
// are those of the fields:
//   {"dp": 8, "tp": 4, "pp": 2, "micro_batch": 1, "global_batch": 256, "seq_len": 8192,
//    "schedule": "1f1b", "overlap": {"grad_reduce": true}, "rank_order": ["tp", "cp", …], …}
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// Reads the members of a plan and refuses any other. Checks what depends on the plan alone; whether
// a model and a cluster allow it is for broken_rules (core/spec/plan_check.hpp). A plan that was
// read without a problem keeps the limits of plan_check.hpp, so its products do not overflow.
// What is left out is as in `usual`.
Plan read_plan(ObjectReader& object, Plan usual = {});

// Likewise, for a model and a stack: overlap that is left out is what the stack usually does, and a
// pipeline with one or two more chunks than the model has layers counts the embedding and the head
// as layers, which is its only even split (Llama 3 405B, arXiv 2407.21783, section 3.3.2).
Plan read_plan_of(ObjectReader& object, const ModelSpec& model, const StackSpec& stack);

// Reads the members of its section "lora", likewise.
Lora read_lora(ObjectReader& object);

// All fields, in the order of `Plan`. `read_plan` gives back an equal plan.
nlohmann::ordered_json to_json(const Plan& plan);

}  // namespace shardwright
