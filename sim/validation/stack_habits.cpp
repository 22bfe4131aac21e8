#include "sim/validation/stack_habits.hpp"

#include <algorithm>
#include <optional>
#include <regex>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/framework_family.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// "DeepSpeed ZeRO-2", "zero3"; nothing if the stack's name holds no stage.
std::optional<int> zero_stage_in(const std::string& stack) {
  static const std::regex kStage(R"(zero[ -]?(?:stage[ -]?)?([0-3])\b)", std::regex::icase);
  std::smatch match;
  if (!std::regex_search(stack, match, kStage)) return std::nullopt;
  return std::stoi(match[1]);
}

// Megatron-LM and most of its relatives have had both the distributed optimizer and sequence
// parallelism since 2022, and runs of an unknown one are later (software_generation.hpp).
bool is_newer_megatron(const StackSpec& stack) {
  return stack.name == "generic-megatron";
}

bool is_deepseeks(const StackSpec& stack) {
  return stack.name == "hai-llm";
}

// The schedule of DeepSeek's reports: DualPipe since DeepSeek-V3, which is also the first with FP8
// and with layers that predict further tokens (arXiv 2412.19437, section 3.2.1), zero bubbles for
// the sparse models before it (DeepSeek-V2, arXiv 2405.04434, section 3.1.3).
std::optional<ScheduleKind> schedule_of_deepseek(const ModelSpec& model, const Plan& plan) {
  if (!model.moe) return std::nullopt;
  const bool third = model.mtp_layers > 0 || plan.precision == Precision::Fp8;
  return third ? ScheduleKind::DualPipe : ScheduleKind::ZbH1;
}

bool can_run(ScheduleKind kind, const Plan& plan) {
  return !why_not(kind, shape_of(plan));
}

}  // namespace

bool shards_by_habit(const TrainingRow& row, const StackSpec& stack) {
  if (searches_cuts(row.stack)) return row.plan.zero_stage == 3;
  return stack.family == "pytorch" || stack.family == "deepspeed" || stack.family == "jax" ||
         row.plan.zero_stage == 3;
}

bool leaves_layers_whole(const ModelSpec& model, const StackSpec& stack) {
  return is_deepseeks(stack) && model.moe.has_value();
}

bool recomputes_parts_by_habit(const StackSpec& stack) {
  return is_deepseeks(stack);
}

ScheduleKind usual_schedule(const ModelSpec& model, const StackSpec& stack, const Plan& plan) {
  if (is_deepseeks(stack)) {
    const auto kind = schedule_of_deepseek(model, plan);
    if (kind && can_run(*kind, plan)) return *kind;
  }
  return plan.vpp > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
}

bool interleaves_by_habit(const StackSpec& stack) {
  const std::vector<ScheduleKind>& runs = stack.schedules;
  const bool nvidias = stack.name.starts_with("megatron-lm-") || stack.name.starts_with("nemo-") ||
                       stack.name == "megatron-core";
  return nvidias && (runs.empty() ||
                     std::find(runs.begin(), runs.end(), ScheduleKind::Interleaved) != runs.end());
}

int usual_zero_stage(const TrainingRow& row, const StackSpec& stack) {
  if (const auto stage = zero_stage_in(row.stack)) return *stage;
  if (stack.family == "pytorch" || stack.family == "jax") return says(row.stack, "ddp") ? 0 : 3;
  return stack.overlap.param_gather || stack.family == "deepspeed" || is_newer_megatron(stack) ||
                 notes_say_distributed_optimizer(row.notes)
             ? 1
             : 0;
}

// PyTorch's tensor parallelism splits the sequence, too (SequenceParallel of
// torch.distributed.tensor.parallel).
bool usual_sequence_parallel(const StackSpec& stack) {
  return stack.overlap.tensor_parallel || stack.family == "pytorch" || is_newer_megatron(stack);
}

// PyTorch's hooks, by which Megatron-LM overlapped in 2021, reduce after each microbatch, so that
// pipelines could not use them (megatron/training.py of v2.5: the local DDP is the default); its
// own buckets of 2023 wait for --overlap-grad-reduce (megatron/arguments.py).
bool usually_overlaps_gradients(const StackSpec& stack, const Plan& plan) {
  const bool asked = stack.name == "megatron-lm-2023";
  const bool hooks = stack.name == "megatron-lm-2021";
  return stack.overlap.grad_reduce && !asked && !(hooks && plan.pp > 1);
}

bool has_context_parallelism(const TrainingRow& row, const StackSpec& stack) {
  const bool older = stack.name.starts_with("megatron-lm-20") || stack.name == "nemo-2022" ||
                     stack.name == "megatron-flash-2023";
  return !older && !says(accelerator_name(row.cluster.gpu), "v100");
}

}  // namespace shardwright::sim
