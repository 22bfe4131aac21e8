#include "sim/validation/row_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/spec/profile_library.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// FlashAttention 1 against 2 on an A100, forward and backward: 85 to 124 against 165 to 203 TFLOP/s
// at sequences of 2,048 tokens with a causal mask (FlashAttention-2, arXiv 2307.08691, figure 4).
constexpr double kFlashAttention1Ratio = 0.6;

// Experts as wide as the feed-forward block of a dense model are cut by tensor parallelism as it
// is; narrow ones are left whole.
constexpr std::int64_t kWideExpert = 4096;

void set_attention_kernel(StackSpec& stack, const std::string& kernel) {
  if (kernel.empty()) return;
  stack.flash_attention = says(kernel, "flash");
  if (says(kernel, "attentionv1")) {
    stack.attention_kernel_ratio = kFlashAttention1Ratio;
    stack.hopper_attention_kernel_ratio *= kFlashAttention1Ratio;
  }
  stack.fused_softmax = kernel != "torch";
  stack.fused_norm = says(kernel, "rms");
}

// Takes a row's value or says what stands in for it.
template <class T>
T value_or(const std::optional<T>& value, T fallback, const char* key,
           std::vector<std::string>& filled_in) {
  if (!value) filled_in.push_back(fmt::format("{}: {}", key, fallback));
  return value.value_or(fallback);
}

std::optional<ScheduleKind> schedule_of(const std::string& text, std::int64_t pp,
                                        std::int64_t vpp) {
  if (pp == 1) return ScheduleKind::OneFOneB;
  if (text == "1f1b" || text == "interleaved" || text.empty() || text.starts_with("none"))
    return vpp > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  if (text == "gpipe") return ScheduleKind::GPipe;
  if (text == "zero-bubble zb-1p" || text == "zb-h1") return ScheduleKind::ZbH1;
  if (text == "zero-bubble zb-2p" || text == "zb-h2") return ScheduleKind::ZbH2;
  if (text == "zb-v" || text == "zero-bubble zb-v") return ScheduleKind::ZbV;
  if (text == "dualpipe") return ScheduleKind::DualPipe;
  return std::nullopt;
}

std::optional<Precision> precision_of(const std::string& text) {
  for (const Precision each :
       {Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16, Precision::Fp8}) {
    if (text == name_of(each)) return each;
  }
  return std::nullopt;
}

std::optional<RecomputePolicy> recompute_of(const std::string& text) {
  for (const RecomputePolicy each :
       {RecomputePolicy::None, RecomputePolicy::Selective, RecomputePolicy::Full}) {
    if (text == name_of(each)) return each;
  }
  return std::nullopt;
}

int usual_zero_stage(const StackSpec& stack) {
  if (stack.family == "pytorch") return 3;
  return stack.overlap_param_gather || stack.family == "deepspeed" ? 1 : 0;
}

// Degrees; false and a reason if they cannot be told.
bool set_degrees(const TrainingRow& row, Plan& plan, std::vector<std::string>& filled_in,
                 std::string& reason) {
  const PlanRow& from = row.plan;
  if (!from.tp || !from.pp) {
    reason = "the source does not say the tensor and pipeline degrees";
    return false;
  }
  plan.tp = *from.tp;
  plan.pp = *from.pp;
  plan.cp = value_or<std::int64_t>(from.cp, 1, "cp", filled_in);
  const std::int64_t others = plan.tp * plan.pp * plan.cp;
  if (row.cluster.gpus % others != 0) {
    reason = fmt::format("{} accelerators are no multiple of tp x pp x cp = {}", row.cluster.gpus,
                         others);
    return false;
  }
  plan.dp = value_or(from.dp, row.cluster.gpus / others, "dp", filled_in);
  plan.ep = value_or<std::int64_t>(from.ep, 1, "ep", filled_in);
  plan.vpp = plan.pp == 1 ? 1 : value_or<std::int64_t>(from.virtual_pp, 1, "virtual_pp", filled_in);
  if (plan.dp * others != row.cluster.gpus) {
    reason = fmt::format("dp x tp x pp x cp = {} is not the {} accelerators", plan.dp * others,
                         row.cluster.gpus);
    return false;
  }
  return true;
}

void set_expert_parallel(const TrainingRow& row, const ModelSpec& model, Plan& plan) {
  if (!model.moe) return;
  const bool whole = model.moe->expert_ffn < kWideExpert || (plan.dp * plan.cp) % plan.ep != 0;
  plan.expert_tp = expert_tensor_parallel_in(row.notes).value_or(whole ? 1 : plan.tp);
}

// A pipeline that the layers do not divide, but do together with the embedding and the head.
void set_stage_layers(const ModelSpec& model, Plan& plan, std::vector<std::string>& filled_in) {
  if (model.layers % plan.chunks() == 0) return;
  const bool both = (model.layers + 2) % plan.chunks() == 0;
  const bool head_only = (model.layers + 1) % plan.chunks() == 0;
  if (!both && !head_only) return;
  plan.head_counts_as_layer = true;
  plan.embedding_counts_as_layer = both;
  filled_in.push_back(fmt::format("layers per stage: {} counted as layers, which the stages divide",
                                  both ? "embedding and head" : "the head"));
}

// What PyTorch's trainers call selective: every second layer, or every second matrix product of
// each layer, which costs and saves about the same.
void recompute_every_second_layer(const ModelSpec& model, Plan& plan,
                                  std::vector<std::string>& filled_in) {
  plan.recompute = RecomputePolicy::Full;
  plan.recompute_layers = std::max<std::int64_t>(1, model.layers / plan.chunks() / 2);
  filled_in.emplace_back("recompute: every second layer, for selective recomputation in PyTorch");
}

void set_overlap(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                 Plan& plan) {
  plan.overlap.grad_reduce = row.plan.overlap_grad_reduce.value_or(stack.overlap_grad_reduce);
  plan.overlap.param_gather = row.plan.overlap_grad_reduce.value_or(stack.overlap_param_gather);
  plan.overlap.tensor_parallel =
      stack.overlap_tp && plan.sequence_parallel && !notes_say_no_tensor_overlap(row.notes);
  plan.overlap.expert_parallel =
      stack.overlap_ep && has_shared_experts(model) && notes_say_expert_overlap(row.notes);
}

bool set_batch(const TrainingRow& row, Plan& plan, std::vector<std::string>& filled_in,
               std::string& reason) {
  if (!row.plan.global_batch) {
    reason = "the source does not say the global batch";
    return false;
  }
  plan.seq_len = *row.model.seq_len;
  plan.global_batch = *row.plan.global_batch;
  plan.micro_batch = value_or<std::int64_t>(row.plan.micro_batch, 1, "micro_batch", filled_in);
  return true;
}

// Schedule, recomputation and number format, whose names may be unknown.
bool set_choices(const TrainingRow& row, Plan& plan, std::vector<std::string>& filled_in,
                 std::string& reason) {
  const PlanRow& from = row.plan;
  const auto choose = [&](const char* key, const std::string& text, const auto& choice) {
    if (!choice) reason = fmt::format("the {} \"{}\" is not modelled", key, text);
    return choice.has_value();
  };
  const auto schedule = schedule_of(from.schedule, plan.pp, plan.vpp);
  const auto recompute = recompute_of(from.recompute.empty() ? "none" : from.recompute);
  const auto precision = precision_of(from.precision.empty() ? "bf16" : from.precision);
  if (!choose("schedule", from.schedule, schedule) ||
      !choose("recomputation", from.recompute, recompute) ||
      !choose("number format", from.precision, precision))
    return false;
  plan.schedule = *schedule;
  plan.recompute = *recompute;
  plan.precision = *precision;
  if (from.precision.empty()) filled_in.emplace_back("precision: bf16");
  return true;
}

}  // namespace

StackSpec stack_of_row(const TrainingRow& row, std::vector<std::string>& filled_in) {
  const bool pytorch = says(row.stack, "fsdp") || says(row.stack, "torch");
  const bool megatron = says(row.stack, "megatron") || says(row.stack, "nemo");
  const std::string family = megatron ? "megatron" : pytorch ? "pytorch" : "deepspeed";
  const bool known_family = megatron || pytorch || says(row.stack, "deepspeed");
  std::string name = find_stack(row.stack, known_family ? family : "");
  constexpr std::string_view kCompiled = "-compile";
  if (notes_say_not_compiled(row.notes) && name.ends_with(kCompiled))
    name.resize(name.size() - kCompiled.size());
  // The name has stood for two generations of the software.
  if (name == "megatron-deepspeed" && row.source_year.value_or(0) >= 2023) name += "-23";
  StackSpec stack = load_stack(name);
  if (stack.name.starts_with("generic"))
    filled_in.push_back(fmt::format("stack: {} for \"{}\"", stack.name, row.stack));
  set_attention_kernel(stack, row.attention_kernel);
  if (notes_say_cuda_graphs(row.notes)) stack.cuda_graphs = true;
  // DeepSpeed keeps fp16 gradients as they are; its BF16_Optimizer adds bf16 ones up in fp32.
  if (says(stack.name, "deepspeed") && row.plan.precision == "bf16")
    stack.fp32_main_gradients = true;
  return stack;
}

std::optional<Plan> plan_of_row(const TrainingRow& row, const ModelSpec& model,
                                const StackSpec& stack, std::vector<std::string>& filled_in,
                                std::string& reason) {
  Plan plan;
  if (!set_degrees(row, plan, filled_in, reason) || !set_batch(row, plan, filled_in, reason) ||
      !set_choices(row, plan, filled_in, reason))
    return std::nullopt;
  set_expert_parallel(row, model, plan);
  plan.multi_token_prediction = !notes_say_no_further_tokens(row.notes);
  plan.sequence_parallel = plan.tp > 1 && value_or(row.plan.sequence_parallel, stack.overlap_tp,
                                                   "sequence_parallel", filled_in);
  plan.zero_stage = static_cast<int>(value_or<std::int64_t>(
      row.plan.zero_stage, usual_zero_stage(stack), "zero_stage", filled_in));
  if (plan.zero_stage > 0 && notes_say_hybrid_shard(row.notes))
    plan.shard_group = row.cluster.gpus_per_node.value_or(8);
  if (stack.family == "pytorch") plan.context_parallel = ContextParallelKind::AllGather;
  set_stage_layers(model, plan, filled_in);
  if (stack.family == "pytorch" && plan.recompute == RecomputePolicy::Selective)
    recompute_every_second_layer(model, plan, filled_in);
  set_overlap(row, model, stack, plan);
  return plan;
}

}  // namespace shardwright::sim
