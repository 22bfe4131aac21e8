// The names are those of megatron/bridge/peft/lora.py and canonical_lora.py of Megatron Bridge
// (https://github.com/NVIDIA-NeMo/Megatron-Bridge), of PEFT's LoraConfig
// (https://huggingface.co/docs/peft/package_reference/lora) and of torchtitan/components/lora.py of
// torchtitan 0.3.0.
#include "planner/export/adapter_notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/spec/adapters.hpp"

namespace shardwright::planner {
namespace {

using enum LoraTarget;
using Names = EnumArray<LoraTarget, std::vector<std::string>>;

// ["linear_qkv", "linear_proj"]: each name once.
std::string listed(LoraTargetSet targets, const Names& names) {
  std::vector<std::string> quoted;
  for (const LoraTarget target : targets.members()) {
    for (const std::string& name : names[target]) {
      const std::string each = '"' + name + '"';
      if (std::find(quoted.begin(), quoted.end(), each) == quoted.end()) quoted.push_back(each);
    }
  }
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

bool is_latent(const Scenario& scenario) {
  return scenario.model.attention.kind == AttentionKind::MultiHeadLatent;
}

// Megatron Core computes queries, keys and values as one product, and so gate and up.
Names megatron_names(const Scenario& scenario) {
  const bool joint = scenario.plan.lora->joint;
  const std::vector<std::string> kv = {"linear_kv_down_proj", "linear_kv_up_proj"};
  Names names;
  names[Q] = {joint ? "linear_qkv" : "linear_q"};
  names[K] = {joint ? "linear_qkv" : "linear_k"};
  names[V] = {joint ? "linear_qkv" : "linear_v"};
  if (is_latent(scenario)) {
    names[Q] = {"linear_q_down_proj", "linear_q_up_proj"};
    if (scenario.model.attention.q_lora_rank == 0) names[Q] = {"linear_q_proj"};
    names[K] = names[V] = kv;
  }
  names[O] = {"linear_proj"};
  names[Gate] = {joint ? "linear_fc1" : "linear_fc1_gate"};
  names[Up] = {joint || !scenario.model.mlp.gated ? "linear_fc1" : "linear_fc1_up"};
  names[Down] = {"linear_fc2"};
  return names;
}

Names hugging_face_names(const Scenario& scenario) {
  Names names;
  names[Q] = {"q_proj"};
  names[K] = {"k_proj"};
  names[V] = {"v_proj"};
  if (is_latent(scenario)) {
    if (scenario.model.attention.q_lora_rank > 0) names[Q] = {"q_a_proj", "q_b_proj"};
    names[K] = names[V] = {"kv_a_proj_with_mqa", "kv_b_proj"};
  }
  names[O] = {"o_proj"};
  names[Gate] = {"gate_proj"};
  names[Up] = {"up_proj"};
  names[Down] = {"down_proj"};
  return names;
}

void refuse_joint(const Scenario& scenario, const char* framework, PlanExport& result) {
  if (scenario.plan.lora->joint)
    result.refuse("lora/joint", "true",
                  fmt::format("false: {} gives each projection an adapter of its own", framework));
}

void refuse_4_bits(const Scenario& scenario, const char* framework, PlanExport& result) {
  if (scenario.plan.lora->base == FrozenFormat::Nf4)
    result.refuse("lora/base", "nf4", fmt::format("plain: {} has no weights of 4 bits", framework));
}

}  // namespace

void note_megatron_adapters(const Scenario& scenario, PlanExport& result) {
  if (!scenario.plan.lora) return;
  const Lora& lora = *scenario.plan.lora;
  refuse_4_bits(scenario, "Megatron Bridge", result);
  // Megatron Bridge's experts of a rank share an adapter unless told otherwise.
  result.note(
      "lora",
      fmt::format("Megatron-LM has no argument; Megatron Bridge takes peft = "
                  "{}(target_modules={}, dim={}, alpha={}{})",
                  lora.joint ? "LoRA" : "CanonicalLoRA",
                  listed(chosen_targets(scenario.model, lora), megatron_names(scenario)), lora.rank,
                  lora.alpha, scenario.model.moe ? ", share_expert_adapters=False" : ""));
}

void note_peft_adapters(const Scenario& scenario, PlanExport& result) {
  if (!scenario.plan.lora) return;
  const Lora& lora = *scenario.plan.lora;
  refuse_joint(scenario, "PEFT", result);
  const char* narrow = lora.base == FrozenFormat::Nf4
                           ? ", and BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="
                             "\"nf4\", bnb_4bit_use_double_quant=True)"
                           : "";
  result.note("lora", fmt::format("set it in the training script: peft.LoraConfig(r={}, "
                                  "lora_alpha={}, target_modules={}), or the names that the model "
                                  "has for them{}",
                                  lora.rank, lora.alpha,
                                  listed(chosen_targets(scenario.model, lora),
                                         hugging_face_names(scenario)),
                                  narrow));
}

std::string torchtitan_converter(const Scenario& scenario, PlanExport& result) {
  if (!scenario.plan.lora) return "";
  const Lora& lora = *scenario.plan.lora;
  const LoraTargetSet targets = chosen_targets(scenario.model, lora);
  refuse_4_bits(scenario, "torchtitan", result);
  refuse_joint(scenario, "torchtitan", result);
  if (targets.contains(K) != targets.contains(V)) {
    result.refuse("lora/targets", names_of(targets),
                  "both of k and v, or none: torchtitan knows them by one name");
  }
  const bool feeds = targets.contains(Gate) || targets.contains(Up) || targets.contains(Down);
  if (scenario.model.moe && feeds)
    result.refuse("lora/targets", names_of(targets),
                  "targets of attention: torchtitan has no adapters of experts");
  Names names;
  names[Q] = {"wq"};
  names[K] = names[V] = {"wkv"};
  if (is_latent(scenario)) {
    names[Q] = {"wq_a", "wq_b"};
    if (scenario.model.attention.q_lora_rank == 0) names[Q] = {"wq"};
    names[K] = names[V] = {"wkv_a", "wkv_b"};
  }
  names[O] = {"wo"};
  names[Gate] = {"w1"};
  names[Up] = {"w3"};
  names[Down] = {"w2"};
  return fmt::format("LoRAConverter.Config(rank={}, alpha={}, target_modules={})", lora.rank,
                     lora.alpha, listed(targets, names));
}

}  // namespace shardwright::planner
