// Low-rank adapters in exports: no framework has an argument for them, so that notes say what to
// write in the training script or the configuration.
#pragma once

#include "planner/export/plan_export.hpp"

namespace shardwright::planner {

// Megatron Bridge trains adapters of the models that Megatron-LM's arguments describe.
void note_megatron_adapters(const Scenario& scenario, PlanExport& result);

// Hugging Face's PEFT, with bitsandbytes for weights of 4 bits.
void note_peft_adapters(const Scenario& scenario, PlanExport& result);

// Returns the converter of torchtitan's model configuration: "LoRAConverter.Config(rank=16, …)";
// empty if all parameters are trained. Refuses what it has not.
std::string torchtitan_converter(const Scenario& scenario, PlanExport& result);

}  // namespace shardwright::planner
