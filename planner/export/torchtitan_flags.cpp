// Plans as command-line flags of torchtitan. The names come from torchtitan/config/parallelism.py at
// commit 15e24313ef2e and torchtitan/config/training.py at f204eb63c07b of
// https://github.com/pytorch/torchtitan. Its set of flags is frozen (torchtitan/config/README.md):
// newer settings belong to the Python function that --config names.
#include <fmt/format.h>

#include <optional>

#include "core/program/shard_shape.hpp"
#include "planner/export/argument_list.hpp"
#include "planner/export/plan_export.hpp"

namespace shardwright::planner {
namespace {

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

void add_torchtitan_tensor(const Plan& plan, ArgumentList& flags) {
  flags.assign("--parallelism.tensor_parallel_degree", plan.tp);
  if (plan.tp > 1 && !plan.sequence_parallel)
    flags.add("--parallelism.no-enable-sequence-parallel");
}

void add_torchtitan_context(const Plan& plan, ArgumentList& flags, PlanExport& result) {
  if (plan.cp == 1) return;
  flags.assign("--parallelism.context_parallel_degree", plan.cp);
  result.note(fmt::format("context_parallel {}", name_of(plan.context_parallel)),
              "set it in the configuration (ContextParallelTransform)");
  const std::int64_t parts = 2 * plan.cp * (plan.sequence_parallel ? plan.tp : 1);
  if (plan.micro_batch * plan.seq_len % parts != 0) {
    result.refuse(
        "seq_len", fmt::format("{}", plan.seq_len),
        fmt::format("tokens of a microbatch that {} divides, as torchtitan requires", parts));
  }
}

void add_torchtitan_experts(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const Plan& plan = scenario.plan;
  if (!scenario.model.moe) return;
  flags.assign("--parallelism.expert_parallel_degree", plan.ep);
  if (plan.expert_tp > 1) {
    result.refuse("expert_tp", fmt::format("{}", plan.expert_tp),
                  "1: expert parallelism of torchtitan takes the tensor-parallel ranks");
  }
  const std::int64_t ranks = data_degrees(plan).shard * plan.cp * plan.tp;
  if (plan.ep < plan.tp || ranks % plan.ep != 0) {
    result.refuse(
        "ep", fmt::format("{}", plan.ep),
        fmt::format("at least tp {} and a divisor of the {} ranks that shard", plan.tp, ranks));
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

// The layers of each chunk if the first has `first` and the last `last` fewer, as
// generate_llm_fqn_per_model_part in torchtitan's pipeline_parallel.py splits them; empty if it
// refuses to.
std::vector<std::int64_t> torchtitan_split(std::int64_t layers, std::int64_t chunks,
                                           std::int64_t first, std::int64_t last) {
  const std::int64_t units = layers + first + last;
  const std::int64_t least = units / chunks;
  if (least == 0 || first > least || last > least) return {};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(chunks), least);
  for (std::size_t i = 0; i < static_cast<std::size_t>(units % chunks); ++i) ++counts[i];
  counts.front() -= first;
  counts.back() -= last;
  return counts;
}

struct FewerLayers {
  std::int64_t first = 0, last = 0;
};

std::optional<FewerLayers> find_split(const ModelSpec& model, const Plan& plan) {
  constexpr std::int64_t kMostFewer = 8;
  std::vector<std::int64_t> wanted;
  for (const LayerRange& range : split_layers(model, plan)) wanted.push_back(range.count);
  for (std::int64_t first = 0; first <= kMostFewer; ++first) {
    for (std::int64_t last = 0; last <= kMostFewer; ++last) {
      if (torchtitan_split(model.layers, plan.chunks(), first, last) == wanted)
        return FewerLayers{first, last};
    }
  }
  return std::nullopt;
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
  const std::optional<FewerLayers> fewer = find_split(scenario.model, scenario.plan);
  if (!fewer) {
    return result.refuse("stage_layers", "a split that is not even",
                         "an even one, with up to 8 fewer layers in the first and the last chunk");
  }
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
  flags.assign("--parallelism.num_pp_microbatches", plan.microbatches());
  add_torchtitan_layer_split(scenario, flags, result);
}

void add_torchtitan_batch(const Plan& plan, ArgumentList& flags) {
  flags.assign("--training.num_tokens_per_microbatch_per_dp_rank", plan.micro_batch * plan.seq_len);
  flags.assign("--training.num_tokens_per_train_step", plan.global_batch * plan.seq_len);
  flags.assign("--training.max_context_length", plan.seq_len);
}

void add_torchtitan_precision(const Scenario& scenario, ArgumentList& flags, PlanExport& result) {
  const Precision precision = scenario.plan.precision;
  const bool full = precision == Precision::Fp32 || precision == Precision::Tf32;
  flags.assign("--training.mixed_precision_param", full ? "float32" : "bfloat16");
  flags.assign("--training.mixed_precision_reduce",
               full || scenario.stack.gradients.fp32_reduction ? "float32" : "bfloat16");
  if (precision == Precision::Fp16 || precision == Precision::Nvfp4)
    result.refuse("precision", name_of(precision), "bf16, fp32, tf32 or fp8");
  if (precision == Precision::Tf32)
    result.note("precision tf32", "torch.set_float32_matmul_precision(\"high\") says it");
  if (precision == Precision::Fp8)
    result.note("precision fp8", "the configuration says it, by its float8 linear layers");
}

void note_overlap(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const OverlapSwitches overlap = effective_overlap(scenario);
  const bool shards = data_degrees(plan).shard * plan.cp > 1;
  if (shards && (!overlap.grad_reduce || !overlap.param_gather))
    result.note("overlap", "FSDP always overlaps reductions and gathers");
  if (!overlap.p2p && plan.pp > 1)
    result.note("overlap.p2p", "torchtitan always sends beside compute");
  if (overlap.tensor_parallel && plan.tp > 1) {
    result.note("overlap.tensor_parallel",
                "the configuration says it (config.compile.enable_async_tensor_parallel)");
  }
  if (overlap.expert_parallel)
    result.note("overlap.expert_parallel", "torchtitan has no flag for it");
  if (overlap.expert_microbatches)
    result.note("overlap.expert_microbatches", "torchtitan has no flag for it");
}

// The part of the configuration that sets recomputation.
void note_recomputation(const Scenario& scenario, PlanExport& result) {
  const Plan& plan = scenario.plan;
  const RecomputePolicy policy = effective_recompute(scenario, result);
  const char* choice = policy == RecomputePolicy::None ? "None"
                       : policy == RecomputePolicy::Full
                           ? "FullAC.Config()"
                           : "SelectiveAC.Config(), which chooses by op";
  result.note(fmt::format("recompute {}", name_of(policy)),
              fmt::format("set config.activation_checkpoint = {} in the configuration", choice));
  if (plan.recompute_layers > 0) {
    result.refuse("recompute_layers", fmt::format("{}", plan.recompute_layers),
                  "0: torchtitan treats all layers alike");
  }
}

// Notes on settings that a configuration has and no flag.
void note_configuration(const Scenario& scenario, PlanExport& result) {
  result.note("model " + scenario.model.name, "the function that --config names gives it");
  note_recomputation(scenario, result);
  if (trained_mtp_layers(scenario.model, scenario.plan) > 0)
    result.note("multi_token_prediction", "the model of the configuration says it");
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
  add_data(plan, flags, result);
  add_torchtitan_tensor(plan, flags);
  add_torchtitan_context(plan, flags, result);
  add_torchtitan_experts(scenario, flags, result);
  add_torchtitan_pipeline(scenario, flags, result);
  add_torchtitan_batch(plan, flags);
  add_torchtitan_precision(scenario, flags, result);
  if (!scenario.stack.host.cuda_graphs) flags.add("--training.disable_cuda_graphs");
  check_rank_order(plan, result);
  check_offload(plan, result);
  note_overlap(scenario, result);
  note_configuration(scenario, result);
  note_foreign_stack(scenario.stack, kFamilies, "torchtitan", result);
  result.launch = torchrun_line(
      launch_shape(scenario.cluster, plan),
      "-m torchtitan.train --module MODULE --config CONFIG \"${TORCHTITAN_FLAGS[@]}\"");
  result.launch_in_text = true;
  result.text = flags.text("TORCHTITAN_FLAGS", {title_of(scenario), result.launch});
  return result;
}

}  // namespace shardwright::planner
