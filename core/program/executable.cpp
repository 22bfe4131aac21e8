#include "core/program/executable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// Collects the conditions that do not hold.
struct Requirements : ProblemList {
  using ProblemList::ProblemList;

  void require(bool holds, const char* where, std::string found, std::string expected) {
    if (!holds) add(where, std::move(found), std::move(expected));
  }
};

void check_attention(Requirements& needs, const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  needs.require(!attention.sinks, "/model/attention/sinks", "true", "no attention sinks");
  needs.require(!attention.output_gate, "/model/attention/output_gate", "true",
                "no gate on the output of attention");
  needs.require(!attention.qk_norm_whole, "/model/attention/qk_norm_whole", "true",
                "norms of each head of queries and keys, or none");
  needs.require(attention.sliding_window == 0, "/model/attention/sliding_window",
                std::to_string(attention.sliding_window), "0: attention to all earlier tokens");
}

void check_positions(Requirements& needs, const ModelSpec& model) {
  const bool rotary = model.position == PositionKind::Rotary;
  needs.require(rotary || model.position == PositionKind::Learned, "/model/position",
                name_of(model.position), "learned or rotary positions");
  if (model.attention.kind == AttentionKind::MultiHeadLatent) {
    needs.require(rotary, "/model/position", name_of(model.position),
                  "rotary positions, a part of multi-head latent attention");
    needs.require(model.rotary_share == 1.0, "/model/rotary_share",
                  fmt::format("{}", model.rotary_share),
                  "1: qk_rope_head_dim is what multi-head latent attention turns");
    return;
  }
  needs.require(!model.rope_scaling || model.rope_scaling->kind != RopeScalingKind::Yarn,
                "/model/rope_scaling/kind", name_of(RopeScalingKind::Yarn), "linear or llama3");
  const auto width = static_cast<double>(model.attention.head_dim);
  const auto rotated = static_cast<std::int64_t>(model.rotary_share * width);
  needs.require(!rotary || rotated % 2 == 0, "/model/rotary_share",
                fmt::format("{}, {} elements of a head", model.rotary_share, rotated),
                "an even number of elements: rotary positions turn pairs");
}

void check_norms(Requirements& needs, const ModelSpec& model) {
  needs.require(model.norms_per_layer == 2, "/model/norms_per_layer",
                std::to_string(model.norms_per_layer), "2");
  needs.require(!model.post_norm, "/model/post_norm", "true",
                "norms before attention and feed-forward");
  needs.require(model.final_norm, "/model/final_norm", "false", "a norm before the head");
  needs.require(!model.embedding_norm, "/model/embedding_norm", "true",
                "no norm between the embedding and the first layer");
}

void check_experts(Requirements& needs, const ModelSpec& model, const MoeSpec& moe) {
  const auto is_false = [&](bool found, const char* where, const char* expected) {
    needs.require(!found, where, "true", expected);
  };
  is_false(model.mlp.bias, "/model/mlp/bias", "no biases beside experts");
  is_false(moe.router_bias, "/model/moe/router_bias", "no correction of the router's scores");
  is_false(moe.router_linear_bias, "/model/moe/router_linear_bias", "a router without bias");
  is_false(moe.balanced_routing, "/model/moe/balanced_routing", "a router that chooses");
  is_false(moe.pads_to_capacity, "/model/moe/pads_to_capacity",
           "experts that work on the rows that they got");
  needs.require(moe.token_nodes == 0, "/model/moe/token_nodes", std::to_string(moe.token_nodes),
                "0: a choice among all experts");
}

// Everything that is not checked here is computed: ModelFields in every_field_test.cpp covers all
// fields.
void check_model(Requirements& needs, const ModelSpec& model) {
  check_attention(needs, model);
  check_positions(needs, model);
  check_norms(needs, model);
  needs.require(!model.mlp.clamped, "/model/mlp/clamped", "true", "an activation without clamping");
  needs.require(model.layer_pattern.empty(), "/model/layer_pattern", model.layer_pattern,
                "layers of attention and a feed-forward block");
  if (model.moe) check_experts(needs, model, *model.moe);
  needs.require(model.mtp_layers == 0, "/model/mtp_layers", std::to_string(model.mtp_layers), "0");
  needs.require(!model.parallel_block, "/model/parallel_block", "true",
                "attention before feed-forward");
  needs.require(!model.head_bias, "/model/head_bias", "true", "a head without bias");
  needs.require(model.embedding_row() == model.hidden, "/model/embedding_width",
                std::to_string(model.embedding_width), "embeddings of the hidden width");
  needs.require(model.dropout == 0.0, "/model/dropout", fmt::format("{}", model.dropout),
                "0: the executor has no dropout yet");
}

void check_on_gpu(Requirements& needs, const ModelSpec& model) {
  const AttentionSpec& attention = model.attention;
  needs.require(attention.kind == AttentionKind::GroupedQuery, "/model/attention/kind",
                name_of(attention.kind),
                "grouped-query: multi-head latent attention runs on CPUs alone");
  needs.require(!attention.qk_norm, "/model/attention/qk_norm", "true",
                "false: norms of queries and keys run on CPUs alone");
  const bool whole = attention.head_dim % 8 == 0 && attention.value_head_dim() % 8 == 0;
  needs.require(whole, "/model/attention/head_dim", std::to_string(attention.head_dim),
                "a multiple of 8, which cuDNN's attention requires");
  constexpr std::int64_t kWidest = 256;
  const std::int64_t widest = std::max(attention.head_dim, attention.value_head_dim());
  needs.require(widest <= kWidest, "/model/attention/head_dim", std::to_string(widest),
                "at most 256, the widest heads of cuDNN's fused attention");
  const bool packed = model.hidden % 8 == 0;
  needs.require(
      model.hidden <= longest_norm_row(packed), "/model/hidden", std::to_string(model.hidden),
      fmt::format("at most {}{}, the longest rows of the norm kernels on a GPU",
                  longest_norm_row(packed),
                  packed ? "" : fmt::format(" (multiples of 8: {})", longest_norm_row(true))));
}

void check_device(Requirements& needs, const ModelSpec& model, const Plan& plan, bool on_gpu) {
  needs.require(plan.precision == Precision::Bf16 || (!on_gpu && plan.precision == Precision::Fp32),
                "/plan/precision", name_of(plan.precision),
                on_gpu ? "bf16, the format of the executor on GPUs" : "fp32 or bf16");
  if (!on_gpu) return;
  check_on_gpu(needs, model);
  needs.require(plan.cp == 1, "/plan/cp", std::to_string(plan.cp),
                "1: context parallelism runs on CPUs alone");
  needs.require(!model.moe, "/model/moe", "experts", "a dense model: experts run on CPUs alone");
  needs.require(!plan.offload_activations, "/plan/offload_activations", "true",
                "false: activations are offloaded on CPUs alone");
}

void check_replicas(Requirements& needs, const ModelSpec& model, const Plan& plan, bool on_gpu) {
  const ReplicaAgreement& replicas = plan.replicas;
  if (replicas == ReplicaAgreement()) return;
  needs.require(!on_gpu, "/plan/data_parallel", replicas_text(plan),
                "nothing: replicas make local steps and compress on CPUs alone");
  const bool splits = plan.tp > 1 || plan.pp > 1 || plan.cp > 1 || model.moe;
  needs.require(!replicas.has_servers() || !splits, "/plan/data_parallel/sync",
                name_of(replicas.sync) + std::string(" with tp, pp, cp or experts"),
                "data parallelism alone with parameter servers, or all-reduce or local-steps");
  needs.require(replicas.compression != ReplicaCompression::Fp16, "/plan/data_parallel/compression",
                "fp16", "none, bf16, int8, fp8, 1bit, topk or powersgd");
  needs.require(!model.moe || !replicas.local(), "/plan/data_parallel/sync", name_of(replicas.sync),
                "all-reduce: experts agree in each step");
}

void check_plan_kind(Requirements& needs, const ModelSpec& model, const Plan& plan) {
  // Else each of the tensor-parallel ranks would send all of their tokens.
  needs.require(!model.moe || plan.tp == 1 || plan.sequence_parallel, "/plan/sequence_parallel",
                "false", "true: tensor-parallel ranks that send tokens to experts share these out");
  const bool exchanges = plan.context_parallel == ContextParallelKind::Ulysses;
  needs.require(plan.cp == 1 || !exchanges || model.attention.kv_heads % (plan.tp * plan.cp) == 0,
                "/plan/cp", fmt::format("tp {} x cp {}", plan.tp, plan.cp),
                fmt::format("a divisor of the {} key/value heads, which ulysses shares out",
                            model.attention.kv_heads));
  needs.require(!shards_parameters(model, plan) || !model.tied_embeddings, "/plan/zero_stage",
                std::to_string(plan.zero_stage),
                "at most 2: the head applies the embedding, of which FSDP gathers one copy");
  // It keeps the projection of queries and keys, which the encoding of positions changes in place.
  needs.require(plan.recompute != RecomputePolicy::PerOp, "/plan/recompute",
                name_of(plan.recompute), "none, selective or full");
  needs.require(!plan.offloads_optimizer(), "/plan/offload_optimizer",
                name_of(plan.offload_optimizer), "none: states on the device");
  needs.require(!is_narrow(plan.optimizer_states), "/plan/optimizer_states",
                name_of(plan.optimizer_states), "of-stack or fp32: moments in fp32");
  needs.require(!plan.lora, "/plan/lora", lora_text(plan), "no adapters: it trains all parameters");
}

// The executor's kernels are fused; a stack without that fusion has other ops.
void check_fusion(Requirements& needs, const StackSpec& stack) {
  const auto is_fused = [&](bool fused, const char* where) {
    needs.require(fused, where, fmt::format("false of the stack \"{}\"", stack.name),
                  "true, as of the stack \"shardwright\"");
  };
  is_fused(stack.fusion.flash_attention, "/stack/fusion/flash_attention");
  is_fused(stack.fusion.norm, "/stack/fusion/norm");
  is_fused(stack.fusion.loss, "/stack/fusion/loss");
  is_fused(stack.fusion.parallel_loss, "/stack/fusion/parallel_loss");
  is_fused(stack.fusion.wgrad_accumulation, "/stack/fusion/wgrad_accumulation");
  needs.require(stack.fusion.loss_chunks == 1, "/stack/fusion/loss_chunks",
                fmt::format("{} of the stack \"{}\"", stack.fusion.loss_chunks, stack.name),
                "1: the loss of all tokens at once");
}

// Gradients and states are fp32.
void check_formats(Requirements& needs, const Plan& plan, const StackSpec& stack) {
  const auto bytes = [&](Bytes found, const char* where, Bytes expected) {
    needs.require(found == expected, where,
                  fmt::format("{} of the stack \"{}\"", found.value(), stack.name),
                  fmt::format("{}: states in fp32", expected.value()));
  };
  bytes(stack.memory.optimizer_state_bytes, "/stack/memory/optimizer_state_bytes", Bytes(8));
  if (plan.precision != Precision::Bf16) return;
  bytes(stack.memory.master_weight_bytes, "/stack/memory/master_weight_bytes", Bytes(4));
  const auto in_fp32 = [&](bool holds, const char* where) {
    needs.require(holds, where, fmt::format("false of the stack \"{}\"", stack.name),
                  "true: gradients in fp32");
  };
  in_fp32(stack.gradients.fp32_reduction, "/stack/gradients/fp32_reduction");
  in_fp32(stack.gradients.fp32_accumulation, "/stack/gradients/fp32_accumulation");
}

void check_stack(Requirements& needs, const Plan& plan, const StackSpec& stack) {
  check_fusion(needs, stack);
  check_formats(needs, plan, stack);
  const RecomputeModuleSet modules = recomputed_modules(stack.capabilities, plan);
  // The executor keeps other ranks' keys and values, or all tokens of some heads, where the
  // projections up would write theirs again.
  needs.require(
      !modules.contains(RecomputeModule::MlaUpProjection) || plan.cp == 1,
      "/plan/recompute_modules", fmt::format("{} with cp {}", names_of(modules), plan.cp),
      fmt::format("no {} with context parallelism", name_of(RecomputeModule::MlaUpProjection)));
  const bool scatters = stack.communication.scatters_messages && plan.pp > 1 && plan.tp > 1 &&
                        !plan.sequence_parallel;
  needs.require(!scatters, "/stack/communication/scatters_messages",
                fmt::format("true of the stack \"{}\"", stack.name),
                "false, or a plan with sequence parallelism: unsplit transfers between stages");
}

}  // namespace

void check_executable(const ModelSpec& model, const Plan& plan, const StackSpec& stack, bool on_gpu,
                      const std::string& source) {
  Requirements needs(source);
  check_model(needs, model);
  check_plan_kind(needs, model, plan);
  check_replicas(needs, model, plan, on_gpu);
  check_device(needs, model, plan, on_gpu);
  check_stack(needs, plan, stack);
  needs.throw_if_any();
}

}  // namespace shardwright
