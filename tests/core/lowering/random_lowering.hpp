// Random small models, plans that they can run, and stacks, for the laws that hold for all of them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

#include "core/lowering/lowering.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {

// The inputs of a lowering.
struct LoweringCase {
  ModelSpec model;
  Plan plan;
  StackSpec stack;

  Program lower() const { return shardwright::lower(model, plan, stack); }
};

// A small dense model, as one microbatch of 64 tokens on one rank.
inline LoweringCase small_case(std::int64_t layers) {
  LoweringCase made;
  made.model.layers = layers;
  made.model.hidden = 64;
  made.model.vocab = 128;
  made.model.attention = {.heads = 8, .kv_heads = 4, .head_dim = 8};
  made.model.mlp.ffn_hidden = 128;
  made.plan.seq_len = 64;
  return made;
}

inline std::string shown(const LoweringCase& c) {
  const Plan& p = c.plan;
  return fmt::format(
      "dp {} tp {} pp {} cp {} ({}) ep {} expert_tp {} vpp {} sp {} zero {} shard_group {} {} "
      "recompute {} {}/{} micro_batch {} microbatches {} layers {} moe {} mla {} norms {} parallel "
      "{} "
      "dropout {} flash {} mtp {} offload {} pattern \"{}\"",
      p.dp, p.tp, p.pp, p.cp, name_of(p.context_parallel), p.ep, p.expert_tp, p.vpp,
      p.sequence_parallel, p.zero_stage, p.shard_group, name_of(p.schedule), name_of(p.recompute),
      names_of(p.recompute_modules), p.recompute_layers, p.micro_batch, p.microbatches(),
      c.model.layers, c.model.moe.has_value(),
      c.model.attention.kind == AttentionKind::MultiHeadLatent, c.model.norms_per_layer,
      c.model.parallel_block, c.model.dropout, c.stack.fusion.flash_attention,
      p.multi_token_prediction ? c.model.mtp_layers : 0, p.offload_activations,
      c.model.layer_pattern);
}

// Makes cases from a seed; the same seed makes the same cases on any machine.
class CaseGenerator {
 public:
  explicit CaseGenerator(std::uint64_t seed) : random_(seed) {}

  LoweringCase next() {
    LoweringCase made;
    made.model = model();
    made.stack = stack();
    do {
      made.plan = plan(made.model);
    } while (!broken_rules(made.model, nullptr, made.plan).empty());
    return made;
  }

  std::int64_t between(std::int64_t least, std::int64_t most) {
    const auto span = static_cast<std::uint64_t>(most - least + 1);
    return least + static_cast<std::int64_t>(random_() % span);
  }
  bool flag(int one_in = 2) { return between(1, one_in) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<std::int64_t>(values.size()) - 1)];
  }

 private:
  ModelSpec model() {
    ModelSpec model;
    model.name = "random";
    model.layers = between(1, 6);
    model.hidden = one_of<std::int64_t>({64, 96});
    model.vocab = one_of<std::int64_t>({100, 128});
    model.attention.heads = 8;
    model.attention.kv_heads = one_of<std::int64_t>({1, 2, 8});
    model.attention.head_dim = 16;
    model.mlp.ffn_hidden = one_of<std::int64_t>({128, 160});
    model.mlp.gated = flag();
    model.mlp.bias = flag(4);
    model.mlp.clamped = flag(4);
    model.parallel_block = flag(4);
    model.norms_per_layer =
        model.parallel_block ? one_of<std::int64_t>({1, 2, 4}) : one_of<std::int64_t>({2, 4});
    model.position = one_of({PositionKind::Learned, PositionKind::Rotary, PositionKind::Alibi});
    model.final_norm = !flag(8);
    model.embedding_norm = flag(8);
    model.tied_embeddings = flag();
    model.dropout = flag() ? 0.1 : 0.0;
    if (flag(4)) make_latent(model.attention);
    if (flag(4)) {
      model.attention.sliding_window = 16;
      model.attention.full_attention_interval = between(0, 3);
      model.attention.full_attention_first_layers = between(0, 2);
    }
    if (flag()) model.moe = experts(model.layers);
    if (flag(4)) model.mtp_layers = between(1, 2);
    if (flag(5)) make_hybrid(model);
    return model;
  }

  // Layers of any parts, at least one of them with linear attention.
  void make_hybrid(ModelSpec& model) {
    model.parallel_block = false;
    model.norms_per_layer = 2;
    model.attention.output_gate = model.attention.kind == AttentionKind::GroupedQuery && flag();
    model.linear_attention = LinearAttentionSpec{
        .kind = one_of({LinearAttentionKind::Mamba2, LinearAttentionKind::GatedDeltaNet}),
        .heads = 8,
        .head_dim = 8,
        .key_heads = one_of<std::int64_t>({4, 8}),
        .state_dim = 16,
        .conv_bias = flag(),
        .chunk = one_of<std::int64_t>({4, 8})};
    model.layer_pattern = one_of({'L', 'M'});
    while (static_cast<std::int64_t>(model.layer_pattern.size()) < model.layers)
      model.layer_pattern +=
          model.moe ? one_of({'A', 'L', '*', 'M', '-', 'E'}) : one_of({'A', 'L', '*', 'M', '-'});
    // A file cannot have experts that no layer uses (check_model).
    bool sparse = false;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      sparse = sparse || model.is_sparse(layer);
    if (!sparse) model.moe.reset();
  }

  void make_latent(AttentionSpec& attention) {
    attention.kind = AttentionKind::MultiHeadLatent;
    attention.kv_heads = attention.heads;
    attention.q_lora_rank = flag() ? 32 : 0;
    attention.kv_lora_rank = 24;
    attention.qk_nope_head_dim = 16;
    attention.qk_rope_head_dim = 8;
    attention.v_head_dim = 16;
    attention.head_dim = 24;
  }

  MoeSpec experts(std::int64_t layers) {
    MoeSpec moe;
    moe.experts = one_of<std::int64_t>({4, 8});
    moe.top_k = between(1, 3);
    moe.expert_ffn = 32;
    moe.shared_experts = between(0, 1);
    moe.shared_expert_ffn = 32 * moe.shared_experts;
    moe.shared_expert_gate = moe.shared_experts > 0 && flag();
    moe.first_dense_layers = between(0, layers - 1);
    moe.layer_interval = between(1, 2);
    return moe;
  }

  Plan plan(const ModelSpec& model) {
    Plan plan;
    plan.dp = one_of<std::int64_t>({1, 2, 3, 4});
    plan.tp = one_of<std::int64_t>({1, 1, 2, 4});
    plan.cp = one_of<std::int64_t>({1, 1, 2, 4});
    plan.pp = one_of<std::int64_t>({1, 2, 3, 4});
    plan.schedule = static_cast<ScheduleKind>(
        between(0, static_cast<std::int64_t>(kEnumCount<ScheduleKind>) - 1));
    plan.vpp = plan.schedule == ScheduleKind::ZbV           ? 2
               : plan.schedule == ScheduleKind::Interleaved ? between(1, 3)
                                                            : 1;
    if (model.moe) {
      plan.ep = one_of<std::int64_t>({1, 2, 4});
      plan.expert_tp = one_of<std::int64_t>({1, 1, 2});
    }
    plan.sequence_parallel = !flag(4);
    plan.zero_stage = static_cast<int>(between(0, 3));
    if (plan.zero_stage > 0 && flag(4)) plan.shard_group = between(1, plan.dp * plan.cp);
    plan.micro_batch = between(1, 2);
    plan.seq_len = one_of<std::int64_t>({32, 64});
    plan.global_batch = plan.dp * plan.micro_batch * between(1, 2 * plan.pp + 2);
    plan.context_parallel = one_of(
        {ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses});
    plan.recompute = one_of({RecomputePolicy::None, RecomputePolicy::Selective,
                             RecomputePolicy::Full, RecomputePolicy::PerOp});
    if (plan.recompute == RecomputePolicy::Selective) {
      for (const RecomputeModule module : recomputable_modules(model).members())
        if (flag(3)) plan.recompute_modules.insert(module);
    }
    if (plan.recompute == RecomputePolicy::Full && flag()) {
      std::int64_t& number =
          *one_of({&plan.recompute_layers, &plan.recompute_interval, &plan.recompute_group});
      number = between(1, model.layers);
    }
    const bool whole =
        plan.recompute_layers == 0 && plan.recompute_interval == 1 && plan.recompute_group == 1;
    if (plan.recompute == RecomputePolicy::Full && whole &&
        plan.schedule != ScheduleKind::DualPipe && flag()) {
      for (std::int64_t stage = 0; stage < plan.pp; ++stage)
        plan.stage_recompute_layers.push_back(between(0, model.layers));
    }
    plan.precision = one_of({Precision::Bf16, Precision::Fp32, Precision::Fp8, Precision::Nvfp4});
    for (bool* flipped :
         {&plan.overlap.grad_reduce, &plan.overlap.param_gather, &plan.overlap.tensor_parallel,
          &plan.overlap.p2p, &plan.embedding_counts_as_layer, &plan.head_counts_as_layer})
      *flipped = flag();
    plan.overlap.expert_parallel = has_shared_experts(model) && flag();
    plan.overlap.expert_microbatches = plan.ep > 1 && !plan.overlap.expert_parallel && flag();
    plan.multi_token_prediction = !flag(4);
    plan.offload_optimizer =
        flag(8) ? one_of({OptimizerOffload::Host, OptimizerOffload::Nvme}) : OptimizerOffload::None;
    if (!plan.offloads_optimizer() && plan.precision != Precision::Fp32 && flag(3)) {
      plan.optimizer_states = static_cast<OptimizerStates>(
          between(0, static_cast<std::int64_t>(kEnumCount<OptimizerStates>) - 1));
    }
    plan.offload_activations = !plan.reruns_layers() && flag(4);
    if (plan.offload_activations && flag()) {
      for (const OffloadModule module : offloadable_modules(model).members())
        if (flag()) plan.offload_modules.insert(module);
    }
    if (flag(3)) plan.stage_layers = uneven(model.layers, plan.chunks());
    return plan;
  }

  // Any split of the layers; those without layers in the middle are refused and made again.
  std::vector<std::int64_t> uneven(std::int64_t layers, std::int64_t chunks) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(chunks), 0);
    for (std::int64_t i = 0; i < layers; ++i)
      ++counts[static_cast<std::size_t>(between(0, chunks - 1))];
    return counts;
  }

  StackSpec stack() {
    StackSpec stack;
    stack.name = "random";
    for (bool* flipped : {&stack.fusion.flash_attention,
                          &stack.fusion.norm,
                          &stack.fusion.rope,
                          &stack.fusion.activation,
                          &stack.fusion.dropout_add,
                          &stack.fusion.loss,
                          &stack.fusion.softmax,
                          &stack.fusion.optimizer,
                          &stack.fusion.wgrad_accumulation,
                          &stack.overlap.grad_reduce,
                          &stack.overlap.param_gather,
                          &stack.overlap.tensor_parallel,
                          &stack.overlap.p2p,
                          &stack.overlap.expert_parallel,
                          &stack.host.cuda_graphs,
                          &stack.gradients.fp32_reduction,
                          &stack.gradients.fp32_accumulation,
                          &stack.memory.dropout_mask_saved,
                          &stack.host.waits_for_messages,
                          &stack.host.reads_token_counts,
                          &stack.fusion.grouped_gemm,
                          &stack.fusion.expert_bias})
      *flipped = flag();
    if (flag()) stack.host.graph_modules.insert(GraphModule::Attention);
    if (flag()) stack.host.graph_modules.insert(GraphModule::Router);
    stack.host.router_launches = between(0, 9);
    stack.host.prefetch_layers = between(0, 2);
    stack.gradients.buckets =
        one_of({GradientBuckets::Single, GradientBuckets::FixedSize, GradientBuckets::PerLayer});
    stack.gradients.bucket_elements = one_of({250.0, 25e3, 250e6});
    return stack;
  }

  std::mt19937_64 random_;
};

}  // namespace shardwright
