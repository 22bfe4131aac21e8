#include "sim/validation/framework_family.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

struct Framework {
  std::string_view name;  // in small letters and digits, any part of the spelling
  std::string_view family;
};

// From the documentation of each. The first that fits holds: many names are made of others.
constexpr std::array kFrameworks = {
    // Models cut by hand for tensor and pipeline parallelism.
    Framework{"megatron", "megatron"},
    Framework{"zerobubble", "megatron"},
    Framework{"mcore", "megatron"},
    Framework{"nemo", "megatron"},
    Framework{"mbridge", "megatron"},
    Framework{"megascale", "megatron"},
    Framework{"mindspeed", "megatron"},
    Framework{"modellink", "megatron"},
    Framework{"internevo", "megatron"},
    Framework{"internlm", "megatron"},
    Framework{"colossal", "megatron"},
    Framework{"paddle", "megatron"},
    Framework{"nanotron", "megatron"},
    Framework{"picotron", "megatron"},
    Framework{"neox", "megatron"},
    Framework{"primus", "megatron"},
    Framework{"flagscale", "megatron"},
    Framework{"galvatron", "megatron"},
    Framework{"libai", "megatron"},
    Framework{"mindformers", "megatron"},
    // ZeRO.
    Framework{"deepspeed", "deepspeed"},
    Framework{"zero", "deepspeed"},
    Framework{"bmtrain", "deepspeed"},
    Framework{"llamafactory", "deepspeed"},
    // Modules sharded by PyTorch or by a copy of its FSDP.
    Framework{"fsdp", "pytorch"},
    Framework{"ddp", "pytorch"},
    Framework{"torch", "pytorch"},
    Framework{"vescale", "pytorch"},
    Framework{"xtuner", "pytorch"},
    Framework{"axolotl", "pytorch"},
    Framework{"accelerate", "pytorch"},
    Framework{"huggingface", "pytorch"},
    Framework{"transformers", "pytorch"},
    Framework{"lightning", "pytorch"},
    Framework{"litgpt", "pytorch"},
    Framework{"foundry", "pytorch"},
    Framework{"composer", "pytorch"},
    Framework{"fairscale", "pytorch"},
    Framework{"fairseq", "pytorch"},
    Framework{"metaseq", "pytorch"},
    Framework{"veomni", "pytorch"},
    Framework{"olmo", "pytorch"},
};

}  // namespace

std::optional<std::string_view> framework_family(std::string_view framework) {
  const std::string wanted = letters_and_digits(framework);
  const auto* const found = std::find_if(
      kFrameworks.begin(), kFrameworks.end(),
      [&](const Framework& each) { return wanted.find(each.name) != std::string::npos; });
  if (found == kFrameworks.end()) return std::nullopt;
  return found->family;
}

}  // namespace shardwright::sim
