#include "sim/validation/framework_family.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

struct Framework {
  std::string_view name;  // in small letters and digits, any part of the spelling
  std::string_view family;
  bool begins_word = false;  // not any part: the beginning of a word
};

// From the documentation of each. The first that fits holds: many names are made of others.
constexpr std::array kFrameworks = {
    // Named like another of another family.
    Framework{"automodel", "pytorch"},
    Framework{"torchtitan", "pytorch"},
    // Sharded by fairscale, with the tensor parallelism of Megatron.
    Framework{"metaseq", "pytorch"},
    Framework{"fairscale", "pytorch"},
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
    // ZeRO. Amazon's model parallelism shards by a copy of it (MiCS, arXiv 2205.00119).
    Framework{"smdistributed", "deepspeed"},
    Framework{"smp", "deepspeed", true},
    Framework{"mics", "deepspeed", true},
    Framework{"deepspeed", "deepspeed"},
    Framework{"zero", "deepspeed", true},
    Framework{"bmtrain", "deepspeed"},
    Framework{"llamafactory", "deepspeed"},
    Framework{"msswift", "deepspeed"},
    // Whole steps compiled by XLA.
    Framework{"jax", "jax"},
    Framework{"maxtext", "jax"},
    Framework{"levanter", "jax"},
    Framework{"axlearn", "jax"},
    Framework{"pax", "jax", true},
    Framework{"saxml", "jax"},
    Framework{"flax", "jax", true},
    Framework{"haiku", "jax", true},
    Framework{"lingvo", "jax", true},
    Framework{"gspmd", "jax", true},
    Framework{"meshtensorflow", "jax"},
    Framework{"meshtf", "jax"},
    Framework{"praxis", "jax"},
    Framework{"t5x", "jax"},
    Framework{"pathways", "jax"},
    Framework{"easylm", "jax"},
    Framework{"alpa", "jax", true},
    Framework{"xla", "jax"},
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
    Framework{"fairseq", "pytorch"},
    Framework{"veomni", "pytorch"},
    Framework{"olmo", "pytorch"},
};

bool begins_a_word(std::string_view text, std::string_view part) {
  const std::string words = ' ' + lower_case(text);
  for (auto place = words.find(part); place != std::string::npos;
       place = words.find(part, place + 1)) {
    if (letters_and_digits(words.substr(place - 1, 1)).empty()) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string_view> framework_family(std::string_view framework) {
  const std::string wanted = letters_and_digits(framework);
  const auto* const found =
      std::find_if(kFrameworks.begin(), kFrameworks.end(), [&](const Framework& each) {
        return each.begins_word ? begins_a_word(framework, each.name)
                                : wanted.find(each.name) != std::string::npos;
      });
  if (found == kFrameworks.end()) return std::nullopt;
  return found->family;
}

bool searches_cuts(std::string_view framework) {
  return begins_a_word(framework, "alpa");
}

}  // namespace shardwright::sim
