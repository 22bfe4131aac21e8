// The configurations of NeMo and Megatron-Bridge as arguments of Megatron-LM.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/import/launch_arguments.hpp"

namespace shardwright::planner {

// Reads `megatron_gpt_config.yaml` and its like, and `hparams.yaml`, of NeMo; `model.yaml` of NeMo
// 2; and `run_config.yaml` of Megatron-Bridge. References such as ${model.encoder_seq_length} are
// followed; others have no value. None where the text is no YAML with the layers of a model. Throws
// InputError where a file named .yaml is damaged, with the line, and where layers are recurrent.
std::optional<LaunchArguments> find_nemo_arguments(std::string_view text,
                                                   const std::string& source);

}  // namespace shardwright::planner
