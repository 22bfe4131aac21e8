// Plans as command-line flags of torchtitan 0.3.0 (https://pypi.org/project/torchtitan/0.3.0/). The
// names come from torchtitan/config/configs.py and distributed/activation_checkpoint.py; what else
// it refuses, from trainer.py, distributed/parallel_dims.py, distributed/pipeline_parallel.py and
// models/common/decoder.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "core/spec/plan_text.hpp"
#include "planner/export/adapter_notes.hpp"
#include "planner/export/argument_list.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::planner {
namespace {

// Inductor fuses what PyTorch's eager mode runs as kernels of their own.
bool compiles(const StackSpec& stack) {
  return stack.family == "pytorch" && stack.fusion.norm && stack.fusion.activation;
}

// The ranks along torchtitan's two data-parallel axes. Context-parallel ranks shard as well.
struct DataDegrees {
  std::int64_t replicate = 1;
  std::int64_t shard = 1;
};

DataDegrees data_degrees(const Plan& plan) {
  if (plan.zero_stage == 0) return {plan.dp, 1};
  if (plan.shard_group == 0 || plan.shard_group % plan.cp != 0) return {1, plan.dp};
  const std::int64_t shard = plan.shard_group / plan.cp;
  return {plan.dp / shard, shard};
}

void refuse_sharding(const Plan& plan, PlanExport& result) {
  if (plan.shard_group % plan.cp != 0) {
    result.refuse(
        "shard_group", fmt::format("{}", plan.shard_group),
        fmt::format("a multiple of cp {}: torchtitan shards over all of its ranks", plan.cp));
  }
  if (plan.dp * plan.cp == 1) return;
  if (plan.zero_stage == 1)
    result.refuse("zero_stage", "1", "0, 2 or 3: FSDP shards gradients with the optimizer states");
  if (plan.zero_stage == 0 && plan.cp > 1) {
    result.refuse("zero_stage", fmt::format("0 with cp {}", plan.cp),
                  "2 or 3: torchtitan shards over context-parallel ranks");
  }
}

void add_data(const Plan& plan, ArgumentList& flags, PlanExport& result) {
  const DataDegrees data = data_degrees(plan);
  flags.assign("--parallelism.data_parallel_replicate_degree", data.replicate);
  flags.assign("--parallelism.data_parallel_shard_degree", data.shard);
  refuse_sharding(plan, result);
  if (data.shard * plan.cp > 1) {
    flags.assign("--parallelism.fsdp_reshard_after_forward",
                 plan.zero_stage == 3 ? "always" : "never");
  }
}

void add_torchtitan_tensor(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const AttentionSpec& attention = scenario.model.attention;
  flags.assign("--parallelism.tensor_parallel_degree", plan.tp);
  if (attention.kind == AttentionKind::GroupedQuery && attention.kv_heads % plan.tp != 0) {
    result.refuse("tp", fmt::format("{}", plan.tp),
                  fmt::format("a divisor of the {} key/value heads", attention.kv_heads));
  }
  if (plan.tp > 1 && !plan.sequence_parallel)
    flags.add("--parallelism.no-enable-sequence-parallel");
}

// Torchtitan's own context parallelism is PyTorch's, which gathers keys and values unless told
// otherwise (torch/distributed/tensor/experimental/_context_parallel/_attention.py).
void add_torchtitan_context(const Plan& plan, ArgumentList& flags, PlanExport& result) {
  if (plan.cp == 1) return;
  flags.assign("--parallelism.context_parallel_degree", plan.cp);
  if (plan.context_parallel != ContextParallelKind::AllGather) {
    result.refuse("context_parallel", name_of(plan.context_parallel),
                  "all-gather, or cp 1: torchtitan has no other");
  }
  const std::int64_t parts = 2 * plan.cp * (plan.sequence_parallel ? plan.tp : 1);
  if (plan.seq_len % parts != 0) {
    result.refuse("seq_len", fmt::format("{}", plan.seq_len),
                  fmt::format("a multiple of {}, as torchtitan requires", parts));
  }
}

void add_torchtitan_experts(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (!scenario.model.moe) return;
  flags.assign("--parallelism.expert_parallel_degree", plan.ep);
  const std::int64_t split = plan.ep == 1 ? plan.tp : 1;
  if (plan.expert_tp != split) {
    result.refuse("expert_tp", fmt::format("{}", plan.expert_tp),
                  fmt::format("{}: experts are split over the tensor-parallel ranks without expert "
                              "parallelism, and else not at all",
                              split));
  }
  const std::int64_t ranks = data_degrees(plan).shard * plan.cp * plan.tp;
  if (ranks % plan.ep != 0) {
    result.refuse(
        "ep", fmt::format("{}", plan.ep),
        fmt::format("a divisor of the {} ranks of a shard group and their tensor-parallel "
                    "ranks",
                    ranks));
  }
}

// The name in torch.distributed.pipelining.schedules; none if it lacks the schedule.
const char* schedule_name(const Plan& plan) {
  switch (plan.schedule) {
    case ScheduleKind::GPipe:
      return "GPipe";
    case ScheduleKind::OneFOneB:
      return "1F1B";
    case ScheduleKind::Interleaved:
      return plan.vpp == 1 ? "1F1B" : "Interleaved1F1B";
    case ScheduleKind::ZbV:
      return "ZBVZeroBubble";
    case ScheduleKind::ZbH1:
    case ScheduleKind::ZbH2:
    case ScheduleKind::DualPipe:
      break;
  }
  return nullptr;
}

// torchtitan derives the chunks from the layers of one chunk; by default a rank has two chunks.
void add_chunks(const Plan& plan, std::int64_t units, ArgumentList& flags, PlanExport& result) {
  if (plan.vpp <= 2) return;
  const std::int64_t layers = plan.even_chunk(units);
  flags.assign("--parallelism.pipeline_parallel_layers_per_stage", layers);
  if ((units + layers - 1) / layers != plan.chunks()) {
    result.refuse("vpp", fmt::format("{}", plan.vpp),
                  fmt::format("chunks of {} layers each: torchtitan derives their number", layers));
  }
}

void add_torchtitan_layer_split(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const std::optional<FewerLayers> fewer = fewer_layers_at_ends(scenario.model, scenario.plan);
  if (!fewer) {
    return result.refuse("stage_layers", "a split that is not even",
                         fmt::format("an even one, with up to {} fewer layers in the first and the "
                                     "last chunk",
                                     kMostFewerLayers));
  }
  if (trained_mtp_layers(scenario.model, scenario.plan) > 0)
    result.refuse("multi_token_prediction", "true",
                  "false: torchtitan trains it without pipelines");
  if (scenario.model.tied_embeddings)
    result.refuse("pp", fmt::format("{}", scenario.plan.pp), "1: the model has tied embeddings");
  flags.assign("--parallelism.pipeline_parallel_first_stage_less_layers", fewer->first);
  flags.assign("--parallelism.pipeline_parallel_last_stage_less_layers", fewer->last);
  add_chunks(scenario.plan, scenario.model.layers + fewer->first + fewer->last, flags, result);
}

void add_torchtitan_pipeline(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const Plan& plan = scenario.plan;
  flags.assign("--parallelism.pipeline_parallel_degree", plan.pp);
  if (plan.pp == 1) return;
  if (const char* name = schedule_name(plan)) {
    flags.assign("--parallelism.pipeline_parallel_schedule", name);
  } else {
    result.refuse("schedule", name_of(plan.schedule), "gpipe, 1f1b, interleaved or zb-v");
  }
  flags.assign("--parallelism.pipeline_parallel_microbatch_size", plan.micro_batch);
  add_torchtitan_layer_split(scenario, flags, result);
}

// A pipeline takes all microbatches of a step at once.
void add_torchtitan_batch(const Plan& plan, ArgumentList& flags) {
  const std::int64_t microbatches = plan.pp > 1 ? plan.microbatches() : 1;
  flags.assign("--training.local_batch_size", plan.micro_batch * microbatches);
  flags.assign("--training.global_batch_size", plan.global_batch);
  flags.assign("--training.seq_len", plan.seq_len);
}

void add_torchtitan_precision(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const Precision precision = scenario.plan.precision;
  const bool full = precision == Precision::Fp32 || precision == Precision::Tf32;
  flags.assign("--training.mixed_precision_param", full ? "float32" : "bfloat16");
  flags.assign("--training.mixed_precision_reduce", "float32");
  if (!full && !scenario.stack.gradients.fp32_reduction)
    result.note("gradients", "torchtitan reduces them in fp32 only");
  if (precision == Precision::Fp16 || precision == Precision::Nvfp4)
    result.refuse("precision", name_of(precision), "bf16, fp32, tf32 or fp8");
  if (precision == Precision::Tf32)
    result.note("precision tf32", "torch.set_float32_matmul_precision(\"high\") says it");
}

void note_overlap(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const OverlapSwitches overlap = effective_overlap(scenario);
  const bool shards = data_degrees(plan).shard * plan.cp > 1;
  if (shards && (!overlap.grad_reduce || !overlap.param_gather))
    result.note("overlap", "FSDP always overlaps reductions and gathers");
  if (!overlap.p2p && plan.pp > 1)
    result.note("overlap.p2p", "torchtitan always sends beside compute");
  if (overlap.tensor_parallel && plan.tp > 1 && !compiles(scenario.stack))
    result.note("overlap.tensor_parallel", "torchtitan overlaps it in compiled models only");
  if (overlap.expert_parallel)
    result.note("overlap.expert_parallel", "torchtitan has no flag for it");
  if (overlap.expert_microbatches)
    result.note("overlap.expert_microbatches", "torchtitan has no flag for it");
}

// Torchtitan takes activation checkpointing as a subcommand, after which no further flags may come.
void add_activation_checkpointing(const Scenario& scenario, ArgumentList& flags,
                                  PlanExport& result) {
  const Plan& plan = scenario.plan;
  const RecomputePolicy policy = plan.recompute;
  if (policy == RecomputePolicy::Selective)
    result.refuse("recompute", "selective", "none, per-op or full: torchtitan has no other");
  const bool by_op = policy == RecomputePolicy::PerOp;
  flags.add(fmt::format("activation-checkpoint:{}", by_op ? "selective" : name_of(policy)));
  if (plan.recompute_layers > 0) {
    result.refuse("recompute_layers", fmt::format("{}", plan.recompute_layers),
                  "0: torchtitan treats all layers alike");
  }
  if (!plan.stage_recompute_layers.empty()) {
    result.refuse("stage_recompute_layers", layers_text(plan.stage_recompute_layers),
                  "none: torchtitan treats all layers alike");
  }
  const bool interval = plan.recompute_interval > 1;
  if (interval || plan.recompute_group > 1) {
    result.refuse(interval ? "recompute_interval" : "recompute_group",
                  fmt::format("{}", interval ? plan.recompute_interval : plan.recompute_group),
                  interval ? "1: torchtitan treats all layers alike since 0.3; up to 0.2 it has "
                             "--activation_checkpoint.selective_ac_option"
                           : "1: torchtitan recomputes layers one by one");
  }
}

void add_compilation(const Scenario& scenario, ArgumentList& flags) {
  const StackSpec& stack = scenario.stack;
  if (!compiles(stack)) return flags.add("--compile.no-enable");
  flags.add("--compile.enable");
  flags.assign("--compile.components", stack.fusion.loss ? "model,loss" : "model");
  const bool overlaps = effective_overlap(scenario).tensor_parallel && scenario.plan.tp > 1;
  flags.add(overlaps ? "--compile.enable-async-tensor-parallel"
                     : "--compile.no-enable-async-tensor-parallel");
}

// A model of torchtitan: the module, the flavor that its model_registry knows, and the function of
// its config_registry; null if it has none.
struct KnownModel {
  std::string_view model;
  const char *module, *flavor, *config, *fp8_config;
};
constexpr std::array kKnownModels = {
    KnownModel{"llama3.2-1b", "llama3", "1B", nullptr, nullptr},
    KnownModel{"llama3.2-3b", "llama3", "3B", nullptr, nullptr},
    KnownModel{"llama3-8b", "llama3", "8B", "llama3_8b", nullptr},
    KnownModel{"llama3.1-8b", "llama3", "8B", "llama3_8b", nullptr},
    KnownModel{"llama3-70b", "llama3", "70B", "llama3_70b", nullptr},
    KnownModel{"llama3.1-70b", "llama3", "70B", "llama3_70b", nullptr},
    KnownModel{"llama3.1-405b", "llama3", "405B", nullptr, "llama3_405b"},
    KnownModel{"qwen3-0.6b", "qwen3", "0.6B", "qwen3_0_6b", nullptr},
    KnownModel{"qwen3-1.7b", "qwen3", "1.7B", "qwen3_1_7b", nullptr},
    KnownModel{"qwen3-4b", "qwen3", "4B", nullptr, nullptr},
    KnownModel{"qwen3-8b", "qwen3", "8B", nullptr, nullptr},
    KnownModel{"qwen3-14b", "qwen3", "14B", "qwen3_14b", nullptr},
    KnownModel{"qwen3-32b", "qwen3", "32B", "qwen3_32b", nullptr},
    KnownModel{"qwen3-30b-a3b", "qwen3", "30B-A3B", "qwen3_30b_a3b", nullptr},
    KnownModel{"qwen3-235b-a22b", "qwen3", "235B-A22B", nullptr, nullptr},
    KnownModel{"gpt-oss-20b", "gpt_oss", "20b", "gpt_oss_20b", nullptr},
    KnownModel{"gpt-oss-120b", "gpt_oss", "120b", "gpt_oss_120b", nullptr},
    KnownModel{"deepseek-v2-lite", "deepseek_v3", "16B", "deepseek_v3_16b", nullptr},
    KnownModel{"deepseek-v2", "deepseek_v3", "236B", nullptr, nullptr},
    KnownModel{"deepseek-v3", "deepseek_v3", "671B", "deepseek_v3_671b", "deepseek_v3_671b_float8"},
};

// The arguments that choose the model and the rest of the configuration.
std::string configuration_of(const Scenario& scenario, PlanExport& result) {
  const bool fp8 = scenario.plan.precision == Precision::Fp8;
  const std::string field = "model " + scenario.model.name;
  const std::string adapters = torchtitan_converter(scenario, result);
  const auto* known = std::ranges::find(kKnownModels, scenario.model.name, &KnownModel::model);
  if (known == kKnownModels.end()) {
    result.note(field, "torchtitan does not ship it; CONFIG is a function of your module MODULE" +
                           (adapters.empty() ? "" : ", with " + adapters));
    return "--module MODULE --config CONFIG";
  }
  std::vector<std::string> converters;
  if (fp8) converters.emplace_back("Float8LinearConverter.Config()");
  if (!adapters.empty()) converters.push_back(adapters);
  const char* config = !adapters.empty() ? nullptr : fp8 ? known->fp8_config : known->config;
  if (config == nullptr) {
    const std::string converted =
        converters.empty() ? "" : fmt::format(", converters=[{}]", fmt::join(converters, ", "));
    result.note(field,
                fmt::format("torchtitan ships no such configuration; CONFIG is a function of "
                            "yours in torchtitan/models/{}/config_registry.py, with "
                            "model_registry(\"{}\"{})",
                            known->module, known->flavor, converted));
  }
  return fmt::format("--module {} --config {}", known->module,
                     config == nullptr ? "CONFIG" : config);
}

// Parameters of torchtitan have one format, and with it gradients and moments, but for moments in
// bf16.
void add_torchtitan_states(const Plan& plan, ArgumentList& flags, PlanExport& result) {
  using enum OptimizerStates;
  switch (plan.optimizer_states) {
    case OfStack:
    case Fp32:
      return;
    case Bf16:
      return flags.assign("--optimizer.implementation", "fused_opt_states_bf16");
    case PureBf16:
      return flags.assign("--training.dtype", "bfloat16");
    case EightBit:
    case PureBf16EightBit:
      return result.refuse("optimizer_states", name_of(plan.optimizer_states),
                           "fp32, bf16 or pure-bf16: torchtitan has no optimizer of 8 bits");
  }
}

void check_offload(const Plan& plan, PlanExport& result) {
  if (plan.offloads_optimizer()) {
    result.refuse("offload_optimizer", name_of(plan.offload_optimizer),
                  "none: torchtitan offloads parameters and gradients along with the states");
  }
  if (plan.offload_activations)
    result.refuse("offload_activations", "true", "false: torchtitan has no flag for it");
}

}  // namespace

PlanExport torchtitan_flags(const Scenario& scenario) {
  static const std::vector<std::string> kFamilies = {"pytorch"};
  const Plan& plan = scenario.plan;
  PlanExport result;
  ArgumentList flags;
  check_accumulation(plan, result);
  check_replicas(plan, result);
  note_pools(scenario, result);
  add_data(plan, flags, result);
  add_torchtitan_tensor(scenario, flags, result);
  add_torchtitan_context(plan, flags, result);
  add_torchtitan_experts(scenario, flags, result);
  add_torchtitan_pipeline(scenario, flags, result);
  add_torchtitan_batch(plan, flags);
  add_torchtitan_precision(scenario, flags, result);
  if (!scenario.stack.host.cuda_graphs) flags.add("--training.disable_cuda_graphs");
  check_rank_order(plan, result);
  add_torchtitan_states(plan, flags, result);
  check_offload(plan, result);
  note_overlap(scenario, result);
  if (trained_mtp_layers(scenario.model, plan) > 0)
    result.note("multi_token_prediction", "the model of the configuration says it");
  add_compilation(scenario, flags);
  add_activation_checkpointing(scenario, flags, result);
  note_foreign_stack(scenario.stack, kFamilies, "torchtitan", result);
  const std::string program = fmt::format("-m torchtitan.train {} \"${{TORCHTITAN_FLAGS[@]}}\"",
                                          configuration_of(scenario, result));
  const LaunchShape shape = launch_shape(scenario.cluster, plan);
  result.launch = torchrun_line(shape, program);
  result.slurm_launch = slurm_line(shape, program);
  result.launch_in_text = true;
  result.text = flags.text("TORCHTITAN_FLAGS", {title_of(scenario), result.launch,
                                                "in a Slurm job: " + result.slurm_launch});
  return result;
}

}  // namespace shardwright::planner
