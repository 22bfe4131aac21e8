// Plans as the JSON configuration of DeepSpeed 0.19.8. The keys, and the combinations that
// DeepSpeed refuses, come from https://www.deepspeed.ai/docs/config-json/,
// deepspeed/runtime/config.py, zero/config.py, engine.py and pipe/engine.py; those of tensor and
// expert parallelism from deepspeed/runtime/tensor_parallel/config.py,
// module_inject/auto_ep_config.py, auto_ep_folding.py and utils/groups.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/program/shard_shape.hpp"
#include "core/spec/plan_text.hpp"
#include "planner/export/adapter_notes.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::planner {
namespace {

using nlohmann::ordered_json;

// Megatron-DeepSpeed implements tensor parallelism itself.
bool runs_megatron(const Scenario& scenario) {
  return scenario.stack.family == "megatron";
}

// DeepSpeed checks that the first value is the product of the others and the data-parallel ranks.
void add_deepspeed_batch(const Plan& plan, ordered_json& config) {
  config["train_batch_size"] = plan.global_batch;
  config["train_micro_batch_size_per_gpu"] = plan.micro_batch;
  config["gradient_accumulation_steps"] = plan.microbatches();
}

void check_sharding(const Plan& plan, PlanExport& result) {
  if (plan.zero_stage >= 2 && plan.pp > 1) {
    result.refuse("zero_stage", fmt::format("{} with pp {}", plan.zero_stage, plan.pp),
                  "0 or 1: DeepSpeed's pipelines run no higher stage");
  }
  if (plan.shard_group > 0 && plan.shard_group < plan.dp * plan.cp) {
    result.refuse("shard_group", fmt::format("{}", plan.shard_group),
                  "0: DeepSpeed shards over all data-parallel ranks");
  }
  const char* place = name_of(plan.offload_optimizer);
  if (plan.offloads_optimizer() && plan.zero_stage == 0)
    result.refuse("offload_optimizer", fmt::format("{} with ZeRO stage 0", place),
                  "ZeRO stage 1, 2 or 3");
  if (plan.offload_optimizer == OptimizerOffload::Nvme && plan.zero_stage < 3)
    result.refuse("offload_optimizer", fmt::format("{} with ZeRO stage {}", place, plan.zero_stage),
                  "ZeRO stage 3, which DeepSpeed requires");
}

void add_deepspeed_sharding(const Scenario& scenario, ordered_json& config, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const OverlapSwitches overlap = effective_overlap(scenario);
  ordered_json& zero = config["zero_optimization"];
  zero["stage"] = plan.zero_stage;
  check_sharding(plan, result);
  if (plan.zero_stage == 0) return;
  zero["overlap_comm"] = overlap.grad_reduce;
  zero["contiguous_gradients"] = true;
  zero["reduce_scatter"] = true;
  if (scenario.stack.gradients.buckets == GradientBuckets::FixedSize) {
    const auto elements = static_cast<std::int64_t>(scenario.stack.gradients.bucket_elements);
    zero["reduce_bucket_size"] = elements;
    zero["allgather_bucket_size"] = elements;
  }
  if (plan.offload_optimizer == OptimizerOffload::Host)
    zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  if (plan.offload_optimizer == OptimizerOffload::Nvme) {
    zero["offload_optimizer"] = {
        {"device", "nvme"}, {"nvme_path", "/local_nvme"}, {"pin_memory", true}};
    result.note("offload_optimizer", "set nvme_path to the mount point of the disks of your nodes");
  }
}

// DeepSpeed has only one switch for the overlap of reductions and gathers.
void note_data_overlap(const Scenario& scenario, PlanExport& result) {
  const OverlapSwitches overlap = effective_overlap(scenario);
  const int stage = scenario.plan.zero_stage;
  if (overlap.grad_reduce && stage == 0)
    result.note("overlap.grad_reduce", "DeepSpeed overlaps from ZeRO stage 1 on");
  if (overlap.param_gather && (stage == 1 || stage == 2))
    result.note("overlap.param_gather", "DeepSpeed gathers before the next step below stage 3");
  if (!overlap.param_gather && stage == 3)
    result.note("overlap.param_gather", "DeepSpeed always fetches parameters ahead at stage 3");
}

void add_deepspeed_precision(const Scenario& scenario, ordered_json& config, PlanExport& result) {
  const Precision precision = scenario.plan.precision;
  if (casts_operands(precision))
    result.refuse("precision", name_of(precision),
                  "fp32, tf32, fp16 or bf16: DeepSpeed's JSON has no narrower formats");
  if (precision == Precision::Tf32)
    result.note("precision tf32",
                "set it in the training script (torch.backends.cuda.matmul.allow_tf32)");
  if (precision != Precision::Fp16 && precision != Precision::Bf16) return;
  const char* name = name_of(precision);
  config[name]["enabled"] = true;
  config["communication_data_type"] = scenario.stack.gradients.fp32_reduction ? "fp32" : name;
  config["data_types"]["grad_accum_dtype"] =
      scenario.stack.gradients.fp32_accumulation ? "fp32" : name;
}

// DeepSpeed's own Adam keeps all states in bf16 or all in fp32; moments of 8 bits are those of an
// optimizer that the training script hands over.
void add_deepspeed_states(const Plan& plan, ordered_json& config, PlanExport& result) {
  using enum OptimizerStates;
  const char* states = name_of(plan.optimizer_states);
  switch (plan.optimizer_states) {
    case OfStack:
    case Fp32:
      return;
    case EightBit:
      config["zero_allow_untested_optimizer"] = true;
      return result.note("optimizer_states 8-bit",
                         "set it in the training script (bitsandbytes.optim.AdamW8bit)");
    case PureBf16:
      config["bf16"]["bf16_master_weights_and_grads"] = true;
      config["bf16"]["bf16_optimizer_states"] = true;
      if (plan.zero_stage == 0)
        result.refuse("optimizer_states", fmt::format("{} with ZeRO stage 0", states),
                      "ZeRO stage 1, 2 or 3");
      return;
    case Bf16:
    case PureBf16EightBit:
      return result.refuse("optimizer_states", states,
                           "fp32, 8-bit or pure-bf16: DeepSpeed has no such states");
  }
}

// AutoTP, Ulysses and pipelines each know data-parallel ranks beside their own, and no further
// axis.
void check_axes(const Plan& plan, PlanExport& result) {
  const std::array axes = {std::pair{"tp", plan.tp}, std::pair{"pp", plan.pp},
                           std::pair{"cp", plan.cp}};
  const char* other = nullptr;
  for (const auto& [name, degree] : axes) {
    if (degree == 1) continue;
    if (other != nullptr)
      result.refuse(name, fmt::format("{} with {} above 1", degree, other),
                    "1: DeepSpeed does not run both");
    if (other == nullptr) other = name;
  }
}

void add_deepspeed_tensor(const Scenario& scenario, ordered_json& config, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (!runs_megatron(scenario)) check_axes(plan, result);
  if (plan.tp == 1) return;
  const std::string field = fmt::format("tp {}", plan.tp);
  if (runs_megatron(scenario)) {
    return result.note(
        field, fmt::format("Megatron-DeepSpeed takes --tensor-model-parallel-size {}{}", plan.tp,
                           plan.sequence_parallel ? " --sequence-parallel" : ""));
  }
  config["tensor_parallel"]["autotp_size"] = plan.tp;
  const AttentionSpec& attention = scenario.model.attention;
  if (attention.kind == AttentionKind::GroupedQuery && attention.kv_heads % plan.tp != 0) {
    result.refuse("tp", fmt::format("{}", plan.tp),
                  fmt::format("a divisor of the {} key/value heads", attention.kv_heads));
  }
  if (plan.sequence_parallel) {
    result.refuse("sequence_parallel", "true",
                  "false: DeepSpeed's AutoTP splits weights only, not activations");
  }
}

void check_context(const Plan& plan, PlanExport& result) {
  if (plan.cp == 1) return;
  if (plan.context_parallel != ContextParallelKind::Ulysses) {
    return result.refuse("context_parallel",
                         fmt::format("{} with cp {}", name_of(plan.context_parallel), plan.cp),
                         "ulysses, or cp 1: DeepSpeed has no other");
  }
  result.note(fmt::format("cp {}", plan.cp),
              "set it in the training script (deepspeed.sequence.layer.DistributedAttention)");
}

void check_pipeline(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (plan.pp == 1) return;
  std::vector<std::int64_t> layers;
  for (const LayerRange& range : split_layers(scenario.model, plan)) layers.push_back(range.count);
  result.note(
      fmt::format("pp {}", plan.pp),
      fmt::format("set it in the training script (PipelineModule with num_stages={}, {} layers)",
                  plan.pp, fmt::join(layers, " + ")));
  if (plan.schedule != ScheduleKind::OneFOneB)
    result.refuse("schedule", name_of(plan.schedule), "1f1b: DeepSpeed's pipelines have no other");
  if (!effective_overlap(scenario).p2p)
    result.note("overlap.p2p", "DeepSpeed's JSON has no key for it");
}

// True if AutoEP knows the layers of the model's family (module_inject/auto_ep_presets).
bool has_expert_preset(const std::string& family) {
  constexpr std::array<std::string_view, 4> kPresets = {"mixtral", "qwen3_moe", "deepseek_v2",
                                                        "deepseek_v3"};
  return std::ranges::find(kPresets, family) != kPresets.end();
}

// AutoEP splits the experts of Hugging Face models; without it they are split as AutoTP does.
void add_deepspeed_experts(const Scenario& scenario, ordered_json& config, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (!scenario.model.moe) return;
  if (runs_megatron(scenario)) {
    return result.note(fmt::format("ep {}, expert_tp {}", plan.ep, plan.expert_tp),
                       "set it in the training script (deepspeed.moe.layer.MoE with ep_size and "
                       "enable_expert_tensor_parallelism)");
  }
  const std::int64_t split = plan.ep == 1 ? plan.tp : 1;
  if (plan.expert_tp != split)
    result.refuse("expert_tp", fmt::format("{}", plan.expert_tp), fmt::format("{}", split));
  if (plan.ep == 1) return;
  if (plan.cp > 1 && plan.zero_stage == 3)
    result.refuse("ep", fmt::format("{} with cp {} and ZeRO stage 3", plan.ep, plan.cp),
                  "1, or a lower stage: DeepSpeed does not run them together");
  if (plan.tp > 1 && plan.offloads_optimizer())
    result.refuse("offload_optimizer", name_of(plan.offload_optimizer),
                  "none: DeepSpeed does not offload with both tp and ep above 1");
  config["expert_parallel"] = {
      {"enabled", true}, {"autoep_size", plan.ep}, {"expert_tensor_parallel_size", 1}};
  if (has_expert_preset(scenario.model.family)) {
    config["expert_parallel"]["preset_model"] = scenario.model.family;
  } else {
    result.note(fmt::format("ep {}", plan.ep),
                "add the names of the model's layers to expert_parallel (moe_layer_pattern, "
                "expert_pattern, router_pattern)");
  }
}

// Notes on the settings that only a training script has.
void note_script(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  result.note(fmt::format("model {}, seq_len {}", scenario.model.name, plan.seq_len),
              "set them in the training script");
  if (plan.recompute != RecomputePolicy::None) {
    result.note("recompute " + recompute_text(plan),
                "set it in the training script (deepspeed.checkpointing.checkpoint)");
  }
  if (plan.offload_activations) {
    result.refuse("offload_activations", "true",
                  "false: DeepSpeed offloads checkpoints of full recomputation only");
  }
  note_peft_adapters(scenario, result);
  const OverlapSwitches overlap = effective_overlap(scenario);
  if (overlap.tensor_parallel && plan.tp > 1)
    result.note("overlap.tensor_parallel", "DeepSpeed's JSON has no key for it");
  if (overlap.expert_parallel)
    result.note("overlap.expert_parallel", "DeepSpeed's JSON has no key for it");
  if (overlap.expert_microbatches)
    result.note("overlap.expert_microbatches", "DeepSpeed's JSON has no key for it");
}

}  // namespace

PlanExport deepspeed_json(const Scenario& scenario) {
  static const std::vector<std::string> kFamilies = {"deepspeed", "megatron"};
  const Plan& plan = scenario.plan;
  PlanExport result;
  ordered_json config;
  add_deepspeed_batch(plan, config);
  add_deepspeed_sharding(scenario, config, result);
  note_data_overlap(scenario, result);
  add_deepspeed_precision(scenario, config, result);
  add_deepspeed_states(plan, config, result);
  add_deepspeed_tensor(scenario, config, result);
  check_accumulation(plan, result);
  check_replicas(plan, result);
  note_pools(scenario, result);
  check_context(plan, result);
  check_pipeline(scenario, result);
  add_deepspeed_experts(scenario, config, result);
  check_rank_order(plan, result);
  note_script(scenario, result);
  note_foreign_stack(scenario.stack, kFamilies, "DeepSpeed", result);
  const std::string program = "train.py --deepspeed --deepspeed_config ds_config.json";
  const LaunchShape shape = launch_shape(scenario.cluster, plan);
  result.launch = torchrun_line(shape, program);
  result.slurm_launch = slurm_line(shape, program);
  constexpr int kIndent = 2;
  result.text = config.dump(kIndent) + '\n';
  return result;
}

}  // namespace shardwright::planner
