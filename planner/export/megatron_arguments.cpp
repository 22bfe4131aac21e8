// Plans with their models as arguments of Megatron-LM. The names, and the combinations that
// Megatron-LM refuses, come from megatron/training/arguments.py at commit 000c4ac24f61 of
// https://github.com/NVIDIA/Megatron-LM (2025).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <vector>

#include "core/program/shard_shape.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_text.hpp"
#include "planner/export/adapter_notes.hpp"
#include "planner/export/argument_list.hpp"
#include "planner/export/megatron_layer_kinds.hpp"
#include "planner/export/megatron_model.hpp"
#include "planner/export/plan_export.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::planner {
namespace {

// ZeRO stages 2 and 3 use another implementation of data parallelism.
bool runs_fsdp(const Plan& plan) {
  return plan.zero_stage >= 2 && plan.dp * plan.cp > 1;
}

// "ttt", "t*12".
std::string repeated(char layer, std::int64_t count) {
  constexpr std::int64_t kMostWritten = 3;
  return count <= kMostWritten ? std::string(static_cast<std::size_t>(count), layer)
                               : fmt::format("{}*{}", layer, count);
}

// "Et*7|t*8|t*7L": chunks in the order of the forward pass; E embedding, t layer, m multi-token
// prediction, L loss.
std::string pipeline_layout(const ModelSpec& model, const Plan& plan) {
  std::vector<std::string> chunks;
  for (const LayerRange& range : split_layers(model, plan))
    chunks.push_back(repeated('t', range.count));
  chunks.front().insert(0, "E");
  chunks.back() += repeated('m', trained_mtp_layers(model, plan)) + "L";
  return fmt::format("{}", fmt::join(chunks, "|"));
}

// The layers, including the ends that count as one, which Megatron-LM divides evenly.
std::int64_t split_units(const ModelSpec& model, const Plan& plan) {
  return model.layers + int{plan.embedding_counts_as_layer} + int{plan.head_counts_as_layer};
}

void add_layer_split(const Scenario& scenario, ArgumentList& arguments) {
  const Plan& plan = scenario.plan;
  const std::int64_t units = split_units(scenario.model, plan);
  if (!plan.stage_layers.empty() || units % plan.chunks() != 0 ||
      trained_mtp_layers(scenario.model, plan) > 0) {
    return arguments.add("--pipeline-model-parallel-layout", pipeline_layout(scenario.model, plan));
  }
  if (plan.vpp > 1) arguments.add("--num-layers-per-virtual-pipeline-stage", units / plan.chunks());
  if (plan.embedding_counts_as_layer) arguments.add("--account-for-embedding-in-pipeline-split");
  if (plan.head_counts_as_layer) arguments.add("--account-for-loss-in-pipeline-split");
}

void add_pipeline(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const Plan& plan = scenario.plan;
  arguments.add("--pipeline-model-parallel-size", plan.pp);
  if (plan.pp == 1) return;
  // The pattern of a hybrid model has the split.
  if (!is_hybrid(scenario.model)) add_layer_split(scenario, arguments);
  if (plan.schedule != ScheduleKind::OneFOneB && plan.schedule != ScheduleKind::Interleaved)
    result.refuse("schedule", name_of(plan.schedule),
                  "1f1b or interleaved: Megatron-LM has no other");
  const bool overlaps = effective_overlap(scenario).p2p;
  if (overlaps && plan.vpp == 1)
    result.note("overlap.p2p", "Megatron-LM overlaps messages of interleaved stages only");
  if (overlaps || plan.vpp == 1) return;
  arguments.add("--no-overlap-p2p-communication");
  if (plan.pp == 2) {
    result.refuse("overlap/p2p", "false with pp 2 and interleaved",
                  "true, or more stages: Megatron-LM requires overlapped messages there");
  }
}

void add_context(const Plan& plan, ArgumentList& arguments, PlanExport& result) {
  if (plan.cp == 1) return;
  arguments.add("--context-parallel-size", plan.cp);
  const bool ring = plan.context_parallel == ContextParallelKind::Ring;
  const bool gather = plan.context_parallel == ContextParallelKind::AllGather;
  arguments.add("--cp-comm-type", ring ? "p2p" : gather ? "all_gather" : "a2a");
  if (plan.seq_len % (2 * plan.cp) != 0) {
    result.refuse(
        "seq_len", fmt::format("{}", plan.seq_len),
        fmt::format("a multiple of 2 x cp = {}, which Megatron-LM requires", 2 * plan.cp));
  }
}

// As Megatron Bridge's recipes choose (src/megatron/bridge/training/flex_dispatcher_backend.py).
const char* flex_backend(const ClusterSpec& cluster) {
  return cluster.node.scale_up.domain > sim::kDeepEpDomain ? "hybridep" : "deepep";
}

// The flex dispatcher needs other ranks to send tokens to, and does not pad experts to a capacity.
bool sends_by_flex(const Scenario& scenario) {
  return scenario.stack.communication.sends_tokens_once_per_node &&
         scenario.plan.ep * scenario.plan.expert_tp > 1 && !scenario.model.moe->pads_to_capacity;
}

void add_token_dispatcher(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const bool overlaps = effective_overlap(scenario).expert_parallel;
  if (!sends_by_flex(scenario)) {
    arguments.add("--moe-token-dispatcher-type", "alltoall");
    if (overlaps) arguments.add("--moe-shared-expert-overlap");
    return;
  }
  arguments.add("--moe-token-dispatcher-type", "flex");
  arguments.add("--moe-flex-dispatcher-backend", flex_backend(scenario.cluster));
  // It takes no other number format of the router's probabilities.
  arguments.add("--moe-router-dtype", "fp32");
  if (overlaps) {
    result.note("overlap.expert_parallel",
                "Megatron-LM overlaps shared experts with the alltoall dispatcher only");
  }
}

void add_expert_parallel(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  if (!scenario.model.moe) return;
  const Plan& plan = scenario.plan;
  arguments.add("--expert-model-parallel-size", plan.ep);
  arguments.add("--expert-tensor-parallel-size", plan.expert_tp);
  add_token_dispatcher(scenario, arguments, result);
  if (effective_overlap(scenario).expert_microbatches)
    arguments.add("--overlap-moe-expert-parallel-comm");
}

void add_degrees(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const Plan& plan = scenario.plan;
  arguments.add("--tensor-model-parallel-size", plan.tp);
  if (plan.tp > 1 && plan.sequence_parallel) arguments.add("--sequence-parallel");
  add_pipeline(scenario, arguments, result);
  add_context(plan, arguments, result);
  add_expert_parallel(scenario, arguments, result);
}

void add_rank_order(const Plan& plan, ArgumentList& arguments, PlanExport& result) {
  using enum Axis;
  constexpr std::array kPipelineInside = {Tensor, Context, Expert, Pipeline, Data};
  if (nests_as(plan, kUsualRankOrder)) return;
  if (nests_as(plan, kPipelineInside) && !runs_fsdp(plan))
    return arguments.add("--use-tp-pp-dp-mapping");
  result.refuse(
      "rank_order", shown(plan.rank_order),
      fmt::format("{}, or {} up to ZeRO stage 1", shown(kUsualRankOrder), shown(kPipelineInside)));
}

void add_batch(const Plan& plan, ArgumentList& arguments) {
  arguments.add("--micro-batch-size", plan.micro_batch);
  arguments.add("--global-batch-size", plan.global_batch);
  arguments.add("--seq-length", plan.seq_len);
}

void add_fsdp(const Plan& plan, ArgumentList& arguments, PlanExport& result) {
  arguments.add("--use-megatron-fsdp");
  arguments.add("--data-parallel-sharding-strategy",
                plan.zero_stage == 2 ? "optim_grads" : "optim_grads_params");
  arguments.add("--no-gradient-accumulation-fusion");
  arguments.add("--ckpt-format", "fsdp_dtensor");
  if (plan.pp > 1) {
    result.refuse("zero_stage", fmt::format("{} with pp {}", plan.zero_stage, plan.pp),
                  "0 or 1: Megatron-FSDP runs with tp, cp and ep, not with pp");
  }
}

void add_sharding(const Plan& plan, ArgumentList& arguments, PlanExport& result) {
  if (plan.zero_stage == 0) return;
  arguments.add("--use-distributed-optimizer");
  if (runs_fsdp(plan)) add_fsdp(plan, arguments, result);
  const std::int64_t replicas = plan.dp * plan.cp;
  if (plan.shard_group > 0 && plan.shard_group < replicas)
    arguments.add("--num-distributed-optimizer-instances", replicas / plan.shard_group);
}

void add_overlap(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const OverlapSwitches overlap = effective_overlap(scenario);
  const bool gathers = overlap.param_gather && plan.zero_stage > 0;
  if (overlap.grad_reduce) arguments.add("--overlap-grad-reduce");
  if (gathers && overlap.grad_reduce) arguments.add("--overlap-param-gather");
  if (gathers && !overlap.grad_reduce) {
    result.refuse("overlap/param_gather", "true without grad_reduce",
                  "false: Megatron-LM overlaps gathers only together with reductions");
  }
  if (!overlap.tensor_parallel || plan.tp == 1) return;
  if (plan.sequence_parallel) return arguments.add("--tp-comm-overlap");
  result.refuse("overlap/tensor_parallel", "true without sequence_parallel",
                "false, or sequence parallelism: Megatron-LM overlaps only its collectives");
}

void add_recomputation(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (plan.recompute == RecomputePolicy::PerOp)
    result.refuse("recompute", name_of(plan.recompute), "none, selective or full");
  if (plan.recompute == RecomputePolicy::None) return;
  arguments.add("--recompute-granularity", name_of(plan.recompute));
  if (plan.recompute == RecomputePolicy::Selective) {
    const RecomputeModuleSet modules = recomputed_modules(scenario.stack.capabilities, plan);
    if (modules.contains(RecomputeModule::MlpActivation))
      result.refuse("recompute_modules", "mlp_act", "modules of Megatron Core, as mlp");
    return arguments.add_words("--recompute-modules", names_of(modules, " "));
  }
  if (plan.recompute_interval > 1) {
    result.refuse("recompute_interval", fmt::format("{}", plan.recompute_interval),
                  "1: Megatron-LM recomputes the first layers of a chunk or all of them");
  }
  if (!plan.stage_recompute_layers.empty()) {
    result.refuse("stage_recompute_layers", layers_text(plan.stage_recompute_layers),
                  "none: Megatron-LM recomputes as many layers on each stage");
  }
  const bool block = plan.recompute_layers > 0;
  arguments.add("--recompute-method", block ? "block" : "uniform");
  arguments.add("--recompute-num-layers", block ? plan.recompute_layers : plan.recompute_group);
  if (plan.recompute_group > 1 && trained_mtp_layers(scenario.model, plan) > 0) {
    result.refuse("recompute_group", fmt::format("{}", plan.recompute_group),
                  "1 with multi-token prediction, whose layers Megatron-LM recomputes alone");
  }
}

// Transformer Engine's FusedAdam keeps the moments in fewer bits, as a part of the distributed
// optimizer.
void add_megatron_states(const Plan& plan, ArgumentList& arguments, PlanExport& result) {
  if (!is_narrow(plan.optimizer_states)) return;
  const char* states = name_of(plan.optimizer_states);
  if (is_pure(plan.optimizer_states)) {
    return result.refuse("optimizer_states", states,
                         "fp32, bf16 or 8-bit: Megatron-LM keeps master weights in fp32");
  }
  if (plan.zero_stage == 0)
    result.refuse("optimizer_states", fmt::format("{} with ZeRO stage 0", states),
                  "stage 1, which Megatron-LM requires");
  const char* format = plan.optimizer_states == OptimizerStates::Bf16 ? "bf16" : "fp8";
  arguments.add("--use-precision-aware-optimizer");
  arguments.add("--exp-avg-dtype", format);
  arguments.add("--exp-avg-sq-dtype", format);
}

void add_module_offload(const Plan& plan, ArgumentList& arguments, PlanExport& result) {
  arguments.add("--fine-grained-activation-offloading");
  arguments.add_words("--offload-modules", names_of(plan.offload_modules, " "));
  if (plan.offload_layers > 0)
    result.refuse("offload_layers", fmt::format("{}", plan.offload_layers),
                  "0: Megatron-LM offloads modules of all layers");
  if (plan.offload_ratio < 1.0)
    result.refuse("offload_ratio", fmt::format("{}", plan.offload_ratio),
                  "1: Megatron-LM offloads a share of the layers, not of each");
}

void add_offload(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (plan.offload_optimizer == OptimizerOffload::Nvme)
    result.refuse("offload_optimizer", "nvme", "none or host: Megatron-LM uses no disks");
  if (plan.offload_optimizer == OptimizerOffload::Host) {
    arguments.add("--optimizer-cpu-offload");
    arguments.add("--use-precision-aware-optimizer");
    if (plan.zero_stage == 0)
      result.refuse("offload_optimizer", "host with ZeRO stage 0",
                    "stage 1, which Megatron-LM requires");
  }
  if (!plan.offload_activations) return;
  if (!plan.offload_modules.empty()) return add_module_offload(plan, arguments, result);
  arguments.add("--cpu-offloading-num-layers",
                plan.offload_layers > 0 ? plan.offload_layers : scenario.model.layers - 1);
  if (plan.offload_layers == 0)
    result.note("offload_activations",
                "those of the last layer stay: Megatron-LM does not offload them");
  if (plan.offload_ratio < 1.0) {
    result.refuse("offload_ratio", fmt::format("{}", plan.offload_ratio),
                  "1: Megatron-LM offloads whole layers");
  }
  if (plan.pp > 1 || plan.recompute != RecomputePolicy::None) {
    result.refuse("offload_activations",
                  fmt::format("true with pp {} and recompute {}", plan.pp, name_of(plan.recompute)),
                  "pp 1 and no recomputation: Megatron-LM refuses the combination");
  }
}

// Scales of small blocks leave gradients no need for the range of e5m2 (Transformer Engine's
// Float8BlockScaling and MXFP8BlockScaling).
void add_fp8(const StackFusion& fusion, ArgumentList& arguments, PlanExport& result) {
  const Fp8Recipe recipe = fusion.fp8_recipe;
  const bool of_blocks = recipe == Fp8Recipe::Blockwise || recipe == Fp8Recipe::Mxfp8;
  arguments.add("--fp8-format", of_blocks ? "e4m3" : "hybrid");
  if (recipe == Fp8Recipe::Rowwise)
    return result.note("fp8_recipe", "Megatron-LM has no rowwise scales; it takes delayed ones");
  arguments.add("--fp8-recipe", name_of(recipe));
  if (fusion.fp8_attention) arguments.add("--fp8-dot-product-attention");
}

void add_precision(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const Precision precision = scenario.plan.precision;
  if (precision == Precision::Fp16) return arguments.add("--fp16");
  if (precision == Precision::Tf32) {
    return result.note("precision tf32",
                       "Megatron-LM has no argument; set torch.backends.cuda.matmul.allow_tf32");
  }
  if (precision == Precision::Fp32) return;
  arguments.add("--bf16");
  if (precision == Precision::Fp8) add_fp8(scenario.stack.fusion, arguments, result);
  if (precision == Precision::Nvfp4) arguments.add("--fp4-format", "e2m1");
  if (!scenario.stack.gradients.fp32_reduction) arguments.add("--grad-reduce-in-bf16");
}

void add_kernels(const StackSpec& stack, ArgumentList& arguments) {
  if (!stack.fusion.flash_attention) arguments.add("--attention-backend", "unfused");
  if (stack.fusion.loss) arguments.add("--cross-entropy-loss-fusion");
}

// The shapes of experts without a capacity change from step to step, and no graph holds them.
void add_cuda_graphs(const Scenario& scenario, ArgumentList& arguments, PlanExport& result) {
  const StackHost& host = scenario.stack.host;
  if (!host.cuda_graphs && host.graph_modules.empty()) return;
  if (scenario.plan.recompute != RecomputePolicy::None || scenario.plan.offload_activations) {
    return result.note(
        "CUDA graphs",
        "Megatron-LM refuses them with recomputation and with offloaded activations");
  }
  const auto& moe = scenario.model.moe;
  const bool whole_layers = host.cuda_graphs && (!moe || moe->pads_to_capacity);
  EnumSet<GraphModule> modules = host.graph_modules;
  if (host.cuda_graphs) modules = {GraphModule::Attention, GraphModule::Router};
  std::vector<std::string> words;
  if (modules.contains(GraphModule::Attention)) words.emplace_back("attn");
  if (moe && modules.contains(GraphModule::Router)) words.emplace_back("moe_router moe_preprocess");
  if (words.empty() && !whole_layers) return;
  arguments.add("--cuda-graph-impl", "transformer_engine");
  // Without modules, graphs hold whole layers.
  if (!whole_layers)
    arguments.add_words("--cuda-graph-modules", fmt::format("{}", fmt::join(words, " ")));
}

void add_launch(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  // Before Blackwell, tp and cp rely on the launch order of kernels, which FSDP must not enforce.
  const bool one_queue = (plan.tp > 1 || plan.cp > 1) && !runs_fsdp(plan) &&
                         scenario.cluster.accelerator.architecture != Architecture::Blackwell;
  // From 2.10 on Transformer Engine would offload weights, too.
  const std::string variables = std::string(one_queue ? "CUDA_DEVICE_MAX_CONNECTIONS=1 " : "") +
                                (plan.offload_modules.empty() ? "" : "NVTE_CPU_OFFLOAD_V1=1 ");
  const std::string program =
      std::string(is_hybrid(scenario.model) ? "pretrain_mamba.py" : "pretrain_gpt.py") +
      " \"${MEGATRON_ARGS[@]}\" \"${RUN_ARGS[@]}\"";
  const LaunchShape shape = launch_shape(scenario.cluster, plan);
  result.launch = variables + torchrun_line(shape, program);
  result.slurm_launch = variables + slurm_line(shape, program);
  result.launch_in_text = true;
}

}  // namespace

PlanExport megatron_arguments(const Scenario& scenario) {
  static const std::vector<std::string> kFamilies = {"megatron"};
  PlanExport result;
  ArgumentList arguments;
  check_accumulation(scenario.plan, result);
  check_replicas(scenario.plan, result);
  note_pools(scenario, result);
  add_degrees(scenario, arguments, result);
  add_rank_order(scenario.plan, arguments, result);
  add_batch(scenario.plan, arguments);
  add_sharding(scenario.plan, arguments, result);
  add_overlap(scenario, arguments, result);
  add_recomputation(scenario, arguments, result);
  add_megatron_states(scenario.plan, arguments, result);
  add_offload(scenario, arguments, result);
  note_megatron_adapters(scenario, result);
  add_precision(scenario, arguments, result);
  add_kernels(scenario.stack, arguments);
  add_cuda_graphs(scenario, arguments, result);
  add_model_arguments(scenario, arguments, result);
  note_foreign_stack(scenario.stack, kFamilies, "Megatron-LM", result);
  add_launch(scenario, result);
  result.text =
      arguments.text("MEGATRON_ARGS",
                     {title_of(scenario),
                      fmt::format("dp {} follows from the other degrees and the {} ranks",
                                  scenario.plan.dp, scenario.plan.world_size()),
                      "data, tokenizer, learning rate and length of the run: add them as RUN_ARGS",
                      result.launch, "in a Slurm job: " + result.slurm_launch});
  return result;
}

}  // namespace shardwright::planner
