#include "executor/runtime/executable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "executor/kernels/cuda/norm_rows.hpp"

namespace shardwright::executor {
namespace {

// Adds a problem where a wanted condition does not hold.
class Requirements {
 public:
  explicit Requirements(const std::string& source) : problems_(source) {}

  void need(bool holds, const char* where, std::string found, std::string expected) {
    if (!holds) problems_.add(where, std::move(found), std::move(expected));
  }
  void throw_if_any() const { problems_.throw_if_any(); }

 private:
  ProblemList problems_;
};

void check_attention(Requirements& needs, const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  needs.need(attention.kind == AttentionKind::GroupedQuery, "/model/attention/kind",
             name_of(attention.kind), "grouped-query attention");
  needs.need(!attention.sinks, "/model/attention/sinks", "true", "no sinks of heads");
  needs.need(!attention.qk_norm, "/model/attention/qk_norm", "true", "no norm of queries and keys");
  needs.need(attention.sliding_window == 0, "/model/attention/sliding_window",
             std::to_string(attention.sliding_window), "0: attention to all tokens before");
  needs.need(model.position != PositionKind::Alibi, "/model/position", name_of(model.position),
             "learned or rotary positions");
}

void check_model(Requirements& needs, const ModelSpec& model) {
  check_attention(needs, model);
  needs.need(!model.moe, "/model/moe", "experts", "a dense model");
  needs.need(model.mtp_layers == 0, "/model/mtp_layers", std::to_string(model.mtp_layers), "0");
  needs.need(model.norms_per_layer == 2 && model.final_norm && !model.embedding_norm,
             "/model/norms_per_layer", std::to_string(model.norms_per_layer),
             "two norms per layer and one before the head");
  needs.need(!model.parallel_block, "/model/parallel_block", "true",
             "attention before feed-forward");
  needs.need(!model.head_bias, "/model/head_bias", "true", "a head without bias");
  needs.need(model.embedding_row() == model.hidden, "/model/embedding_width",
             std::to_string(model.embedding_width), "embeddings of the hidden width");
  needs.need(model.dropout == 0.0, "/model/dropout", fmt::format("{}", model.dropout),
             "0: the executor has no dropout yet");
}

void check_on_gpu(Requirements& needs, const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  const bool whole = attention.head_dim % 8 == 0 && attention.value_head_dim() % 8 == 0;
  needs.need(whole, "/model/attention/head_dim", std::to_string(attention.head_dim),
             "a multiple of 8, as cuDNN's attention needs it");
  constexpr std::int64_t kWidest = 256;
  const std::int64_t widest = std::max(attention.head_dim, attention.value_head_dim());
  needs.need(widest <= kWidest, "/model/attention/head_dim", std::to_string(widest),
             "at most 256, as wide as cuDNN's fused attention takes heads");
  const bool packed = model.hidden % 8 == 0;
  needs.need(
      model.hidden <= longest_norm_row(packed), "/model/hidden", std::to_string(model.hidden),
      fmt::format("at most {}{}, as long as the norms' kernels on a GPU take rows",
                  longest_norm_row(packed),
                  packed ? "" : fmt::format(" (multiples of 8: {})", longest_norm_row(true))));
}

void check_device(Requirements& needs, const ModelSpec& model, const Plan& plan, bool on_gpu) {
  const Precision wanted = on_gpu ? Precision::Bf16 : Precision::Fp32;
  needs.need(plan.precision == wanted, "/plan/precision", name_of(plan.precision),
             on_gpu ? "bf16, which GPUs compute in"
                    : "fp32, which the CPU computes in, or a GPU: --device cuda");
  if (on_gpu) check_on_gpu(needs, model);
}

void check_plan_kind(Requirements& needs, const ModelSpec& model, const Plan& plan) {
  const auto is_one = [&](std::int64_t degree, const char* where) {
    needs.need(degree == 1, where, std::to_string(degree), "1");
  };
  is_one(plan.cp, "/plan/cp");
  is_one(plan.ep, "/plan/ep");
  is_one(plan.expert_tp, "/plan/expert_tp");
  needs.need(plan.tp <= model.attention.kv_heads, "/plan/tp", std::to_string(plan.tp),
             "at most the key/value heads");
  needs.need(plan.zero_stage <= 1, "/plan/zero_stage", std::to_string(plan.zero_stage), "0 or 1");
  needs.need(plan.shard_group == 0, "/plan/shard_group", std::to_string(plan.shard_group),
             "0: states split over all data-parallel ranks");
  const bool known = plan.schedule == ScheduleKind::GPipe ||
                     plan.schedule == ScheduleKind::OneFOneB ||
                     plan.schedule == ScheduleKind::Interleaved;
  needs.need(known, "/plan/schedule", name_of(plan.schedule), "gpipe, 1f1b or interleaved");
  needs.need(!plan.offloads_optimizer(), "/plan/offload_optimizer", name_of(plan.offload_optimizer),
             "none: states on the device");
  needs.need(!plan.offload_activations, "/plan/offload_activations", "true",
             "false: activations on the device");
}

// The kernels that the executor has are fused; a stack without that fusion writes other ops.
void check_stack(Requirements& needs, const StackSpec& stack) {
  const bool fused = stack.flash_attention && stack.fused_norm && stack.fused_loss &&
                     stack.parallel_loss && stack.fused_wgrad_accumulation;
  needs.need(fused, "/stack", fmt::format("\"{}\", which does not fuse its kernels", stack.name),
             "a stack with fused attention, norms, loss and weight gradients: \"shardwright\"");
}

}  // namespace

void check_executable(const ModelSpec& model, const Plan& plan, const StackSpec& stack, bool on_gpu,
                      const std::string& source) {
  Requirements needs(source);
  check_model(needs, model);
  check_plan_kind(needs, model, plan);
  check_device(needs, model, plan, on_gpu);
  check_stack(needs, stack);
  needs.throw_if_any();
}

}  // namespace shardwright::executor
