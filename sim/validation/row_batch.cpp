#include "sim/validation/row_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/spec/plan_check.hpp"
#include "sim/validation/flops_convention.hpp"
#include "sim/validation/noted_batch.hpp"
#include "sim/validation/recompute_words.hpp"
#include "sim/validation/stack_habits.hpp"

namespace shardwright::sim {
namespace {

// Of a row's figures, which may stand as its target alone.
std::optional<double> figure(const TrainingRow& row, std::string_view metric,
                             const std::optional<double>& measured) {
  if (row.target && row.target->metric == metric) return row.target->value;
  return measured;
}

std::optional<double> step_time(const TrainingRow& row) {
  return figure(row, "step_s", row.measured.iteration_s);
}

std::optional<double> token_rate(const TrainingRow& row) {
  return figure(row, "tokens_per_s_per_gpu", row.measured.tokens_per_s_per_gpu);
}

std::optional<double> flop_rate(const TrainingRow& row) {
  return figure(row, "tflops_per_gpu", row.measured.tflops_per_gpu);
}

// Sequences that the step's time and a rate make; 0 without both.
double measured_sequences(const TrainingRow& row, const ModelSpec& model, Plan plan) {
  const auto time = step_time(row), tokens = token_rate(row), teraflops = flop_rate(row);
  if (!time || (!tokens && !teraflops)) return 0.0;
  const double ranks_seconds = *time * static_cast<double>(row.cluster.gpus);
  if (tokens) return *tokens * ranks_seconds / static_cast<double>(plan.seq_len);
  plan.global_batch = 1;
  // Hardware FLOPs depend on it, and the batch comes first.
  if (const auto words = recompute_in(row.plan.recompute)) set_recompute(*words, model, plan);
  const Flop sequence = counted_flop(model, plan, flops_convention_in(row.flops_convention));
  return *teraflops * 1e12 * ranks_seconds / sequence.value();
}

// How the TFLOP/s were taken to be counted.
std::string counted_flop_text(const TrainingRow& row) {
  return "FLOP: " + description_of(flops_convention_in(row.flops_convention));
}

// The nearest batch that the replicas share evenly; 0 where nothing was measured.
std::int64_t measured_batch(const TrainingRow& row, const ModelSpec& model, const Plan& plan) {
  const double sequences = measured_sequences(row, model, plan);
  const auto step = static_cast<double>(plan.dp * plan.micro_batch);
  const double steps = std::max(1.0, std::round(sequences / step));
  const bool makes_sense = sequences > 0.0 && steps * step <= static_cast<double>(kMaxBatch);
  return makes_sense ? static_cast<std::int64_t>(steps * step) : 0;
}

// Of the microbatches that the notes say a step adds up; 0 where they or their size are not known.
std::int64_t accumulated_batch(const TrainingRow& row, const Plan& plan) {
  const auto steps = row.plan.micro_batch ? accumulation_in(row) : std::nullopt;
  const double batch = static_cast<double>(plan.dp) * static_cast<double>(plan.micro_batch) *
                       static_cast<double>(steps.value_or(0));
  return batch <= static_cast<double>(kMaxBatch) ? static_cast<std::int64_t>(batch) : 0;
}

// Microbatches of a replica where nothing tells the batch: one where the stack does not accumulate
// gradients by habit, enough to fill a pipeline where a rate, which depends little on them, is all
// that was measured; 0: nothing tells.
std::int64_t usual_microbatches(const TrainingRow& row, const StackSpec& stack, const Plan& plan) {
  constexpr std::int64_t kPerStage = 8;
  const bool rate = measures_rate(row);
  if (!row.plan.micro_batch && !rate) return 0;
  if (shards_by_habit(row, stack) && plan.pp == 1) return 1;
  return rate ? kPerStage * plan.pp : 0;
}

// Sources print totals that were rounded: 1538 sequences in micro-batches of 4 on 12 replicas. The
// nearest batch that divides, where it differs by less than a hundredth.
std::int64_t divisible_batch(std::int64_t stated, const Plan& plan,
                             std::vector<std::string>& filled_in) {
  constexpr std::int64_t kLeastShare = 100;
  const std::int64_t each = plan.dp * plan.micro_batch;
  if (each <= 0 || stated % each == 0) return stated;
  const std::int64_t nearest = (stated + each / 2) / each * each;
  if (nearest == 0 || std::abs(nearest - stated) > stated / kLeastShare) return stated;
  filled_in.push_back(
      fmt::format("global_batch: {} in place of {}, which {} replicas of {} do not divide", nearest,
                  stated, plan.dp, plan.micro_batch));
  return nearest;
}

}  // namespace

bool measures_rate(const TrainingRow& row) {
  return row.target && row.target->metric != "step_s";
}

bool tells_batch(const TrainingRow& row) {
  return row.plan.global_batch || (step_time(row) && (token_rate(row) || flop_rate(row)));
}

bool set_batch(const TrainingRow& row, const ModelSpec& model, const StackSpec& stack, Plan& plan,
               std::vector<std::string>& filled_in, std::string& reason) {
  plan.micro_batch = row.plan.micro_batch.value_or(1);
  plan.seq_len = *row.model.seq_len;
  if (row.plan.global_batch) {
    plan.global_batch = divisible_batch(*row.plan.global_batch, plan, filled_in);
    return true;
  }
  if (const std::int64_t batch = measured_batch(row, model, plan); batch > 0) {
    plan.global_batch = batch;
    filled_in.push_back(fmt::format("global_batch: {}, by the step's time and its {}", batch,
                                    token_rate(row) ? "tokens per second" : "TFLOP/s"));
    if (!token_rate(row)) filled_in.push_back(counted_flop_text(row));
    return true;
  }
  if (const std::int64_t batch = accumulated_batch(row, plan); batch > 0) {
    plan.global_batch = batch;
    filled_in.push_back(
        fmt::format("global_batch: {}, by the accumulation that the notes say", batch));
    return true;
  }
  const std::int64_t microbatches = usual_microbatches(row, stack, plan);
  if (microbatches == 0) {
    reason = "the source does not say the global batch";
    return false;
  }
  if (!row.plan.micro_batch) filled_in.emplace_back("micro_batch: 1");
  plan.global_batch = plan.dp * plan.micro_batch * microbatches;
  filled_in.push_back(fmt::format("global_batch: {}", plan.global_batch));
  return true;
}

}  // namespace shardwright::sim
