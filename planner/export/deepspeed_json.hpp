// Plans as the JSON configuration of DeepSpeed.
//
// The keys, and the combinations that DeepSpeed refuses, come from
// https://www.deepspeed.ai/docs/config-json/, deepspeed/runtime/zero/config.py and
// deepspeed/runtime/pipe/engine.py; those of tensor parallelism from
// https://www.deepspeed.ai/tutorials/autotp-training.
#pragma once

#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// Writes batch, ZeRO, number formats and tensor parallelism. Pipeline, context and expert
// parallelism belong to the training script. JSON has no comments, so that the launch line is not
// in the text.
PlanExport deepspeed_json(const Scenario& scenario);

}  // namespace shardwright::planner
