// Plans as the JSON configuration of DeepSpeed.
//
// Keys and the combinations that DeepSpeed refuses are those of
// https://www.deepspeed.ai/docs/config-json/, deepspeed/runtime/zero/config.py and
// deepspeed/runtime/pipe/engine.py; tensor parallelism those of
// https://www.deepspeed.ai/tutorials/autotp-training.
#pragma once

#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// Batch, ZeRO, number formats and tensor parallelism. Pipeline, context and expert parallelism are
// the training script's; JSON has no comments, so the launch line is not in the text.
PlanExport deepspeed_json(const Scenario& scenario);

}  // namespace shardwright::planner
