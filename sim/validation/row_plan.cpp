#include "sim/validation/row_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/spec/plan_check.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/noted_sharding.hpp"
#include "sim/validation/recompute_words.hpp"
#include "sim/validation/row_batch.hpp"
#include "sim/validation/row_degrees.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/stack_habits.hpp"

namespace shardwright::sim {
namespace {

// Experts as wide as the feed-forward block of a dense model are cut by tensor parallelism as it
// is; narrow ones are left whole.
constexpr std::int64_t kWideExpert = 4096;

// Takes a row's value or says what stands in for it.
template <class T>
T value_or(const std::optional<T>& value, T fallback, const char* key,
           std::vector<std::string>& filled_in) {
  if (!value) filled_in.push_back(fmt::format("{}: {}", key, fallback));
  return value.value_or(fallback);
}

void set_expert_parallel(const TrainingRow& row, const ModelSpec& model, Plan& plan,
                         std::vector<std::string>& filled_in) {
  if (!model.moe) return;
  const auto stated = expert_tensor_parallel_in(row.notes);
  const bool as_attention = notes_say_experts_as_attention(row.notes);
  const bool cut = model.moe->expert_ffn >= kWideExpert || as_attention;
  const bool divided = (plan.dp * plan.cp) % plan.ep == 0;
  plan.expert_tp = stated.value_or(cut && divided ? plan.tp : 1);
  if (stated || as_attention)
    filled_in.push_back(fmt::format("expert_tp: {}, by the notes", plan.expert_tp));
}

// What the notes say of shards and of layers that predict further tokens.
void set_by_notes(const TrainingRow& row, const ModelSpec& model, Plan& plan,
                  std::vector<std::string>& filled_in) {
  if (notes_say_no_further_tokens(row.notes)) {
    plan.multi_token_prediction = false;
    if (model.mtp_layers > 0) filled_in.emplace_back("multi_token_prediction: false, by the notes");
  }
  set_shard_group(row, model, plan, filled_in);
}

void set_optimizer_offload(const TrainingRow& row, Plan& plan,
                           std::vector<std::string>& filled_in) {
  const std::string text = row.stack + "; " + row.notes;
  const OffloadNote note = optimizer_offload_in(text);
  if (notes_say_parameters_offloaded(text))
    filled_in.emplace_back("parameters on the host, by the notes: not simulated");
  if (note == OffloadNote::Part)
    filled_in.emplace_back("a part of the optimizer on the host, by the notes: not simulated");
  if (note != OffloadNote::Whole) return;
  plan.offload_optimizer =
      notes_say_states_on_disk(text) ? OptimizerOffload::Nvme : OptimizerOffload::Host;
  filled_in.push_back(
      fmt::format("offload_optimizer: {}, by the notes", name_of(plan.offload_optimizer)));
}

// Where all layers are recomputed nothing is left to offload.
void set_activation_offload(const TrainingRow& row, Plan& plan,
                            std::vector<std::string>& filled_in) {
  const OffloadNote note = activation_offload_in(row.notes);
  if (note == OffloadNote::None) return;
  const bool kept = plan.recompute != RecomputePolicy::Full;
  plan.offload_activations = note == OffloadNote::Whole && kept;
  if (plan.offload_activations)
    filled_in.emplace_back("offload_activations: true, by the notes");
  else
    filled_in.push_back(fmt::format("{} on the host, by the notes: not simulated",
                                    kept ? "a part of the activations" : "what layers keep"));
}

void set_stage_layers(const ModelSpec& model, Plan& plan, std::vector<std::string>& filled_in) {
  count_ends_as_layers(model, plan);
  if (!plan.head_counts_as_layer) return;
  filled_in.push_back(
      fmt::format("layers per stage: {} counted as layers, which the stages divide",
                  plan.embedding_counts_as_layer ? "embedding and head" : "the head"));
}

// What PyTorch's trainers call selective: every second layer, or every second matrix product of
// each layer, which costs and saves about the same.
void recompute_every_second_layer(const ModelSpec& model, Plan& plan,
                                  std::vector<std::string>& filled_in) {
  set_recompute({RecomputePolicy::Full, 0, 2}, model, plan);
  filled_in.emplace_back("recompute: every second layer, for selective recomputation in PyTorch");
}

// Exchanging sequence for heads needs a head for each rank.
bool has_heads_for_ulysses(const ModelSpec& model, const Plan& plan) {
  const std::vector<BrokenRule> broken = broken_rules(model, nullptr, plan);
  return std::none_of(broken.begin(), broken.end(),
                      [](const BrokenRule& each) { return each.rule == PlanRule::UlyssesHeads; });
}

void set_context_parallel(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                          Plan& plan, std::vector<std::string>& filled_in) {
  if (stack.family == "pytorch") plan.context_parallel = ContextParallelKind::AllGather;
  const auto said = context_parallel_in(row.stack + "; " + row.notes);
  if (!said || plan.cp == 1) return;
  plan.context_parallel = *said;
  if (!has_heads_for_ulysses(model, plan)) {
    plan.context_parallel = ContextParallelKind::Ring;
    filled_in.push_back(
        fmt::format("context_parallel: ring for ulysses, as tp x cp = {} ranks do "
                    "not divide the heads",
                    plan.tp * plan.cp));
    return;
  }
  filled_in.push_back(fmt::format("context_parallel: {}, by the {}", name_of(*said),
                                  context_parallel_in(row.notes) ? "notes" : "stack's name"));
}

// A pipeline adds the gradients of its microbatches up whole and reduces them after the last, as it
// gathers parameters once a step: FSDP (reshard_after_forward,
// torchtitan/models/llama3/parallelize.py; Llama 3, arXiv 2407.21783, section 3.3.2) as Megatron-LM
// and its relatives; DeepSpeed's engine refuses more than ZeRO-1
// (deepspeed/runtime/pipe/engine.py). A rank holds both whole and divides only the optimizer's
// states, as ZeRO-1 does, whatever the source calls it.
void keep_whole_in_pipeline(Plan& plan, std::vector<std::string>& filled_in) {
  if (plan.pp == 1 || plan.zero_stage < 2) return;
  filled_in.push_back(fmt::format(
      "zero_stage: 1 for {}, as a pipeline runs its microbatches with whole {}", plan.zero_stage,
      plan.zero_stage == 2 ? "gradients" : "parameters and gradients"));
  plan.zero_stage = 1;
}

// PyTorch's trainers cut tensor-parallel collectives up where they are asked to, Megatron-LM's
// relatives unless they are told not to.
void set_tensor_overlap(const TrainingRow& row, const StackSpec& stack, Plan& plan,
                        std::vector<std::string>& filled_in) {
  if (!stack.overlap.tensor_parallel || !plan.sequence_parallel) return;
  const bool asked = stack.family == "pytorch";
  plan.overlap.tensor_parallel = asked ? notes_say_asynchronous_tensor_parallel(row.notes) ||
                                             notes_say_asynchronous_tensor_parallel(row.stack)
                                       : !notes_say_no_tensor_overlap(row.notes);
  if (plan.overlap.tensor_parallel == asked)
    filled_in.push_back(fmt::format("overlap of tp: {}, by the notes", asked));
}

// DualPipe is made to run the exchanges of one microbatch beside the kernels of another (arXiv
// 2412.19437, section 3.2.1).
void set_expert_overlap(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                        Plan& plan, std::vector<std::string>& filled_in) {
  if (!stack.overlap.expert_parallel || !model.moe || plan.ep == 1) return;
  const bool noted = notes_say_expert_overlap(row.notes);
  const bool paired = plan.pp > 1 && plan.schedule == ScheduleKind::DualPipe &&
                      !notes_say_no_expert_overlap(row.notes);
  if (!noted && !paired) return;
  plan.overlap.expert_microbatches = true;
  filled_in.push_back(fmt::format("overlap of ep: beside another microbatch, {}",
                                  noted ? "by the notes" : "as dualpipe has it"));
}

void set_overlap(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack, Plan& plan,
                 std::vector<std::string>& filled_in) {
  plan.overlap.grad_reduce =
      row.plan.overlap_grad_reduce.value_or(usually_overlaps_gradients(stack, plan));
  if (!row.plan.overlap_grad_reduce && plan.dp * plan.cp > 1)
    filled_in.push_back(fmt::format("overlap_grad_reduce: {}", plan.overlap.grad_reduce));
  plan.overlap.param_gather = row.plan.overlap_grad_reduce.value_or(stack.overlap.param_gather);
  set_tensor_overlap(row, stack, plan, filled_in);
  set_expert_overlap(row, model, stack, plan, filled_in);
}

// Without a pipeline there is nothing to schedule, and "none" is what many sources write for 1F1B.
void set_schedule(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                  Plan& plan, std::vector<std::string>& filled_in) {
  if (plan.pp == 1) return;
  const std::string& text = row.plan.schedule;
  const auto usual = usual_schedule(model, stack, plan);
  const auto known = schedule_in(text, plan.vpp);
  plan.schedule = known.value_or(usual);
  if (known) return;
  filled_in.push_back(
      text.empty() || says(text, "none")
          ? fmt::format("schedule: {}", name_of(usual))
          : fmt::format("schedule: {} for \"{}\", which is not known", name_of(usual), text));
}

bool set_precision(const TrainingRow& row, Plan& plan, std::vector<std::string>& filled_in,
                   std::string& reason) {
  const std::string& text = row.plan.precision;
  const auto usual = usual_precision(row.cluster.gpu);
  if (names_other_format(text)) {
    reason = fmt::format("the number format \"{}\" is not modelled", text);
    return false;
  }
  const auto stated = precision_in(text);
  plan.precision = stated.value_or(usual);
  const std::string name = name_of(plan.precision);
  if (text.empty())
    filled_in.push_back(fmt::format("precision: {}", name));
  else if (!stated || (casts_operands(*stated) && lower_case(text) != name))
    filled_in.push_back(fmt::format("precision: {} for \"{}\"", name, text));
  return true;
}

std::string recomputed_layers_text(const Plan& plan) {
  if (plan.recompute == RecomputePolicy::None) return "none";
  return plan.recompute_layers == 0
             ? "full on all layers"
             : fmt::format("full on {} layers of each stage", plan.recompute_layers);
}

// Words that are not known leave recomputation open, as if nothing stood there.
void set_recomputation(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack,
                       Plan& plan, std::vector<std::string>& filled_in) {
  const std::string& text = row.plan.recompute;
  if (leaves_recomputation_open(row) && recomputes_parts_by_habit(stack)) {
    plan.recompute = RecomputePolicy::Selective;
    filled_in.emplace_back("recompute: selective, as the stack has it");
    return;
  }
  const auto words = recompute_in(text.empty() ? "none" : text);
  if (!words) return;
  const std::string beside = set_recompute(*words, model, plan);
  const bool part = recomputes_part_of_layers(text);
  if (words->policy == RecomputePolicy::Selective && part)
    filled_in.push_back(fmt::format("recompute: selective on all layers for \"{}\"", text));
  if (words->policy != RecomputePolicy::Full) return;
  if (part || !says(text, "full"))
    filled_in.push_back(fmt::format("recompute: {} for \"{}\"{}", recomputed_layers_text(plan),
                                    text, beside.empty() ? "" : ": " + beside));
  if (affirms_any(text, {"selective"}))
    filled_in.emplace_back("selective recomputation of the other layers: not simulated");
}

}  // namespace

void count_ends_as_layers(const ModelSpec& model, Plan& plan) {
  const auto divide = [&](std::int64_t layers) { return layers % plan.chunks() == 0; };
  const bool both = !divide(model.layers) && divide(model.layers + 2);
  plan.embedding_counts_as_layer = both;
  plan.head_counts_as_layer = both || (!divide(model.layers) && divide(model.layers + 1));
}

bool leaves_recomputation_open(const TrainingRow& row) {
  return row.plan.recompute.empty() || !recompute_in(row.plan.recompute);
}

std::optional<Plan> plan_of_row(const TrainingRow& row, const ModelSpec& model,
                                const StackSpec& stack, std::vector<std::string>& filled_in,
                                std::string& reason) {
  Plan plan;
  if (!set_degrees(row, model, stack, plan, filled_in, reason) ||
      !set_batch(row, model, stack, plan, filled_in, reason) ||
      !set_precision(row, plan, filled_in, reason))
    return std::nullopt;
  set_schedule(row, model, stack, plan, filled_in);
  set_recomputation(row, model, stack, plan, filled_in);
  set_expert_parallel(row, model, plan, filled_in);
  plan.sequence_parallel =
      plan.tp > 1 && value_or(row.plan.sequence_parallel, usual_sequence_parallel(stack),
                              "sequence_parallel", filled_in);
  plan.zero_stage = static_cast<int>(value_or<std::int64_t>(
      row.plan.zero_stage, usual_zero_stage(row, stack), "zero_stage", filled_in));
  set_by_notes(row, model, plan, filled_in);
  set_context_parallel(row, model, stack, plan, filled_in);
  keep_whole_in_pipeline(plan, filled_in);
  set_stage_layers(model, plan, filled_in);
  if (stack.family == "pytorch" && plan.recompute == RecomputePolicy::Selective)
    recompute_every_second_layer(model, plan, filled_in);
  set_optimizer_offload(row, plan, filled_in);
  set_activation_offload(row, plan, filled_in);
  set_overlap(row, model, stack, plan, filled_in);
  return plan;
}

}  // namespace shardwright::sim
