#include "tests/executor/runtime/training_fixture.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "core/program/executable.hpp"
#include "executor/checkpoint/parameter_files.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/comm/gloo_communicator.hpp"
#include "executor/kernels/cpu/bf16_kernels.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/parameter_server.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

// Words from a small set, which can be learnt.
std::string made_up_text() {
  const std::vector<std::string> words = {"the ", "rank ",  "sends ", "its ",   "shard ", "to ",
                                          "a ",   "stage ", "and ",   "waits ", "for ",   "it. "};
  std::string text;
  std::uint64_t state = 7;
  while (text.size() < 20'000) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    text += words[(state >> 33U) % words.size()];
  }
  return text;
}

}  // namespace

const TokenFile& corpus() {
  static const TokenFile file = [] {
    const std::string name = scratch_path("corpus.txt");
    std::ofstream(name) << made_up_text();
    return TokenFile(name);
  }();
  return file;
}

ModelSpec small_llama() {
  ModelSpec model;
  model.name = "small-llama";
  model.layers = 4;
  model.hidden = 32;
  model.vocab = 256;
  model.attention.heads = 4;
  model.attention.kv_heads = 2;
  model.attention.head_dim = 8;
  model.mlp.ffn_hidden = 48;
  return model;
}

ModelSpec small_gpt2() {
  ModelSpec model;
  model.name = "small-gpt2";
  model.layers = 4;
  model.hidden = 32;
  model.vocab = 257;
  model.attention.heads = model.attention.kv_heads = 4;
  model.attention.head_dim = 8;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.mlp = {.ffn_hidden = 64, .activation = Activation::Gelu, .gated = false, .bias = true};
  model.norm = NormKind::LayerNorm;
  model.norm_bias = true;
  model.position = PositionKind::Learned;
  model.max_seq_len = model.position_embeddings = 64;
  model.tied_embeddings = true;
  return model;
}

ModelSpec small_qwen3() {
  ModelSpec model = small_llama();
  model.name = "small-qwen3";
  model.attention.head_dim = 12;
  model.attention.qk_norm = true;
  return model;
}

ModelSpec small_qwen2() {
  ModelSpec model = small_llama();
  model.name = "small-qwen2";
  model.attention.kv_heads = 1;
  model.attention.qkv_bias = true;
  return model;
}

ModelSpec small_mixtral() {
  ModelSpec model = small_llama();
  model.name = "small-mixtral";
  model.layers = 2;
  model.moe.emplace();
  model.moe->experts = 4;
  model.moe->top_k = 2;
  model.moe->expert_ffn = 24;
  return model;
}

ModelSpec small_qwen2_moe() {
  ModelSpec model = small_mixtral();
  model.name = "small-qwen2-moe";
  model.moe->shared_experts = 1;
  model.moe->shared_expert_ffn = 16;
  model.moe->shared_expert_gate = true;
  model.moe->renormalised = false;
  return model;
}

ModelSpec small_deepseek_v3() {
  ModelSpec model = small_llama();
  model.name = "small-deepseek-v3";
  AttentionSpec& attention = model.attention;
  attention.kind = AttentionKind::MultiHeadLatent;
  attention.kv_heads = attention.heads;
  attention.q_lora_rank = 20;
  attention.kv_lora_rank = 12;
  attention.qk_nope_head_dim = 6;
  attention.qk_rope_head_dim = 4;
  attention.v_head_dim = 5;
  attention.head_dim = 10;
  attention.qkv_bias = attention.output_bias = true;
  return model;
}

ModelSpec small_deepseek_v2() {
  ModelSpec model = small_deepseek_v3();
  model.name = "small-deepseek-v2";
  model.attention.q_lora_rank = 0;
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.layers = 2;
  model.moe = small_qwen2_moe().moe;
  model.moe->shared_experts = 2;
  model.moe->shared_expert_ffn = 48;
  model.moe->shared_expert_gate = false;
  model.moe->first_dense_layers = 1;
  RopeScalingSpec& scaling = model.rope_scaling.emplace();
  scaling.kind = RopeScalingKind::Yarn;
  scaling.factor = 8.0;
  scaling.original_max_seq_len = 16;
  scaling.beta_fast = 4.0;
  scaling.mscale = 0.707;
  scaling.mscale_all_dim = 0.5;
  return model;
}

Plan one_rank_plan() {
  Plan plan;
  plan.zero_stage = 0;
  plan.micro_batch = 1;
  plan.global_batch = 8;
  plan.seq_len = 32;
  plan.precision = Precision::Fp32;
  return plan;
}

Plan two_replicas() {
  Plan plan = one_rank_plan();
  plan.dp = 2;
  return plan;
}

void on_ranks(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
              const std::function<void(RankTrainer&, const BatchLoader&)>& work,
              const StackSpec& stack, const WrapCommunicator& wrap) {
  const Program program = lower(model, plan, stack);
  LocalStore store;
  const auto run = [&](std::int64_t rank) {
    const auto kernels =
        plan.precision == Precision::Bf16 ? make_bf16_cpu_kernels() : make_cpu_kernels();
    GlooDevice device("127.0.0.1");
    const OpenCommunicator open = [&](const std::string& key, int member, int size) {
      auto made = device.connect(store, key, member, size);
      return wrap ? wrap(std::move(made)) : std::move(made);
    };
    RankTrainer trainer(model, program, rank, *kernels, open, options);
    trainer.set_initial_parameters();
    work(trainer, BatchLoader(corpus(), plan, model.vocab, options.seed));
  };
  std::vector<std::future<void>> ranks;
  for (std::int64_t rank = 0; rank < plan.world_size(); ++rank)
    ranks.push_back(std::async(std::launch::async, run, rank));
  const auto serve = [&](std::int64_t server) {
    const auto kernels = make_cpu_kernels();
    GlooDevice device("127.0.0.1");
    ParameterServer(model, program, server, *kernels,
                    [&](const std::string& key, int member, int size) {
                      return device.connect(store, key, member, size);
                    })
        .serve();
  };
  for (std::int64_t server = 0; server < plan.replicas.servers; ++server)
    ranks.push_back(std::async(std::launch::async, serve, server));
  for (auto& rank : ranks) rank.get();
}

std::vector<double> run_steps(RankTrainer& trainer, const BatchLoader& loader, std::int64_t first,
                              std::int64_t last) {
  std::vector<double> losses;
  for (std::int64_t step = first; step < last; ++step) {
    const auto sample = static_cast<std::uint64_t>(step * one_rank_plan().global_batch);
    const Batch batch =
        loader.load(sample, trainer.place()[Axis::Data], trainer.place()[Axis::Context]);
    losses.push_back(trainer.step(step, batch).loss);
  }
  return losses;
}

std::vector<double> train(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                          const StackSpec& stack) {
  std::vector<double> losses;
  const auto work = [&](RankTrainer& trainer, const BatchLoader& loader) {
    std::vector<double> own = run_steps(trainer, loader, 0, options.steps);
    if (trainer.rank() == 0) losses = std::move(own);
  };
  on_ranks(model, plan, options, work, stack);
  return losses;
}

double first_loss(const ModelSpec& model, const Plan& plan, const std::filesystem::path& from) {
  double loss = 0.0;
  const WeightFiles files(from);
  files.check(model);
  on_ranks(model, plan, {}, [&](RankTrainer& trainer, const BatchLoader& loader) {
    read_weights(files, model, trainer.parameters());
    const double own = run_steps(trainer, loader, 0, 1).front();
    if (trainer.rank() == 0) loss = own;
  });
  return loss;
}

void PrintTo(const PlanCase& plan, std::ostream* out) {
  *out << plan.name;
}

bool runs_on_gpus(const PlanCase& with) {
  Plan plan = one_rank_plan();
  with.change(plan);
  plan.precision = Precision::Bf16;
  try {
    check_executable(with.model(), plan, load_stack("shardwright"), true, with.name);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

const std::vector<PlanCase>& plan_cases() {
  static const std::vector<PlanCase> cases = {
      {"dp2", small_llama, [](Plan& p) { p.dp = 2; }},
      {"dp4_zero1", small_llama, [](Plan& p) { p.dp = 4, p.zero_stage = 1; }},
      {"dp2_zero1_gathers_after", small_gpt2,
       [](Plan& p) { p.dp = 2, p.zero_stage = 1, p.overlap.param_gather = false; }},
      {"tp2", small_gpt2, [](Plan& p) { p.tp = 2, p.micro_batch = 2; }},
      {"tp2_without_sp", small_llama,
       [](Plan& p) { p.tp = p.micro_batch = 2, p.sequence_parallel = false; }},
      {"tp4_recompute", small_gpt2,
       [](Plan& p) { p.tp = p.micro_batch = 4, p.recompute = RecomputePolicy::Full; }},
      {"pp4_gpipe", small_llama, [](Plan& p) { p.pp = 4, p.schedule = ScheduleKind::GPipe; }},
      {"pp4_1f1b", small_gpt2, [](Plan& p) { p.pp = 4; }},
      {"pp2_interleaved", small_llama,
       [](Plan& p) { p.pp = 2, p.vpp = 2, p.schedule = ScheduleKind::Interleaved; }},
      {"pp2_interleaved_ends_without_layers", small_gpt2,
       [](Plan& p) {
         p.pp = 2, p.vpp = 3, p.schedule = ScheduleKind::Interleaved;
         p.embedding_counts_as_layer = p.head_counts_as_layer = true;
       }},
      {"dp2_tp2_pp2_zero1", small_gpt2,
       [](Plan& p) { p.dp = p.tp = p.pp = p.micro_batch = 2, p.zero_stage = 1; }},
      {"dp2_tp2_pp2", small_llama,
       [](Plan& p) { p.dp = p.tp = p.pp = 2, p.recompute = RecomputePolicy::Full; }},
      {"tp2_pp2_interleaved_dp2_zero1", small_llama,
       [](Plan& p) {
         p.dp = p.tp = p.pp = p.vpp = 2, p.zero_stage = 1;
         p.schedule = ScheduleKind::Interleaved;
         p.rank_order = {Axis::Data, Axis::Pipeline, Axis::Tensor, Axis::Context, Axis::Expert};
       }},
      {"pp2_dp2_zero1_on_two_pools", small_gpt2,
       [](Plan& p) {
         p.dp = p.pp = 2, p.zero_stage = 1;
         p.stage_layers = {3, 1}, p.stage_pools = {"fast", "slow"};
       }},
      {"pp3_tp2_on_two_pools", small_llama,
       [](Plan& p) {
         p.pp = 3, p.tp = p.micro_batch = 2;
         p.stage_layers = {1, 1, 2}, p.stage_pools = {"slow", "slow", "fast"};
       }},
      {"pp2_interleaved_on_two_pools", small_llama,
       [](Plan& p) {
         p.pp = p.vpp = 2, p.schedule = ScheduleKind::Interleaved;
         p.stage_layers = {1, 1, 2, 0}, p.stage_pools = {"fast", "slow"};
       }},
      {"pp2_dp2_zero1_recomputes_by_stage", small_gpt2,
       [](Plan& p) {
         p.pp = p.dp = 2, p.zero_stage = 1, p.recompute = RecomputePolicy::Full;
         p.stage_layers = {3, 1}, p.stage_recompute_layers = {2, 0};
       }},
      {"dp3_zero1_replicas_on_two_pools", small_llama,
       [](Plan& p) {
         p.dp = 3, p.zero_stage = 1;
         p.replica_pools = {{"fast", 1, 4}, {"slow", 2, 2}};
       }},
      {"dp2_pp2_tp2_replicas_on_two_pools", small_gpt2,
       [](Plan& p) {
         p.dp = p.pp = p.tp = 2, p.zero_stage = 0;
         p.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data};
         p.replica_pools = {{"slow", 1, 3}, {"fast", 1, 5}};
       }},
      {"dp2_pp2_stages_and_replicas_on_two_pools", small_llama,
       [](Plan& p) {
         p.dp = p.pp = 2, p.zero_stage = 1, p.stage_layers = {1, 3};
         p.replica_pools = {{"fast", 1, 5}, {"", 1, 3, {"fast", "slow"}}};
       }},
      {"dp2_zero2", small_gpt2, [](Plan& p) { p.dp = 2, p.zero_stage = 2; }},
      {"dp4_zero2_hybrid_shards", small_llama,
       [](Plan& p) { p.dp = 4, p.zero_stage = 2, p.shard_group = 2; }},
      {"dp4_ep2_zero2_hybrid_shards_in_one_bucket", small_mixtral,
       [](Plan& p) {
         p.dp = 4, p.ep = 2, p.zero_stage = 2, p.shard_group = 1;
         p.overlap.grad_reduce = false;
       }},
      {"dp4_fsdp", small_llama,
       [](Plan& p) { p.dp = 4, p.zero_stage = 3, p.recompute = RecomputePolicy::Full; }},
      {"dp4_hybrid_shards", small_llama,
       [](Plan& p) { p.dp = 4, p.zero_stage = 3, p.shard_group = 2; }},
      {"dp2_pp2_fsdp", small_llama, [](Plan& p) { p.dp = p.pp = 2, p.zero_stage = 3; }},
      {"pp4_zb_h1", small_gpt2, [](Plan& p) { p.pp = 4, p.schedule = ScheduleKind::ZbH1; }},
      {"pp2_zb_h2_dp2_zero1", small_llama,
       [](Plan& p) { p.pp = p.dp = 2, p.zero_stage = 1, p.schedule = ScheduleKind::ZbH2; }},
      {"pp2_zb_v_tp2", small_gpt2,
       [](Plan& p) { p.pp = p.vpp = p.tp = 2, p.schedule = ScheduleKind::ZbV; }},
      {"pp2_zb_v_dp2_fsdp", small_llama,
       [](Plan& p) { p.pp = p.vpp = p.dp = 2, p.zero_stage = 3, p.schedule = ScheduleKind::ZbV; }},
      {"cp2", small_llama,
       [](Plan& p) { p.cp = 2, p.context_parallel = ContextParallelKind::AllGather; }},
      {"cp4_gpt2", small_gpt2,
       [](Plan& p) { p.cp = 4, p.context_parallel = ContextParallelKind::AllGather; }},
      {"cp2_tp2_fsdp", small_llama,
       [](Plan& p) {
         p.cp = p.tp = p.micro_batch = 2, p.zero_stage = 3;
         p.context_parallel = ContextParallelKind::AllGather;
       }},
      {"cp2_ring_dp2_zero1", small_llama,
       [](Plan& p) {
         p.cp = p.dp = p.micro_batch = 2, p.zero_stage = 1;
         p.context_parallel = ContextParallelKind::Ring;
       }},
      {"cp3_ring_gpt2", small_gpt2,
       [](Plan& p) { p.cp = 3, p.seq_len = 48, p.context_parallel = ContextParallelKind::Ring; }},
      {"cp4_ring_recompute", small_llama,
       [](Plan& p) {
         p.cp = 4, p.context_parallel = ContextParallelKind::Ring;
         p.recompute = RecomputePolicy::Full;
       }},
      {"cp2_ring_tp2_recomputes_core", small_llama,
       [](Plan& p) {
         p.cp = p.tp = p.micro_batch = 2, p.context_parallel = ContextParallelKind::Ring;
         p.recompute = RecomputePolicy::Selective;
         p.recompute_modules = {RecomputeModule::CoreAttention};
       }},
      {"cp2_ring_pp2_zb_h1_fsdp", small_llama,
       [](Plan& p) {
         p.cp = p.pp = p.dp = 2, p.zero_stage = 3, p.schedule = ScheduleKind::ZbH1;
         p.context_parallel = ContextParallelKind::Ring;
       }},
      {"tp2_head_norms_without_sp", small_qwen3,
       [](Plan& p) { p.tp = p.micro_batch = 2, p.sequence_parallel = false; }},
      {"dp2_tp2_head_norms_zero1", small_qwen3,
       [](Plan& p) { p.dp = p.tp = p.micro_batch = 2, p.zero_stage = 1; }},
      {"dp2_pp2_head_norms_fsdp", small_qwen3,
       [](Plan& p) { p.dp = p.pp = 2, p.zero_stage = 3, p.recompute = RecomputePolicy::Full; }},
      {"cp2_ring_tp2_head_norms_fsdp", small_qwen3,
       [](Plan& p) {
         p.cp = p.tp = p.micro_batch = 2, p.zero_stage = 3;
         p.context_parallel = ContextParallelKind::Ring;
       }},
      {"cp2_ulysses", small_llama,
       [](Plan& p) {
         p.cp = p.micro_batch = 2, p.context_parallel = ContextParallelKind::Ulysses;
       }},
      {"cp4_ulysses_recompute", small_gpt2,
       [](Plan& p) {
         p.cp = 4, p.context_parallel = ContextParallelKind::Ulysses;
         p.recompute = RecomputePolicy::Full;
       }},
      {"cp2_ulysses_tp2_recomputes_core", small_gpt2,
       [](Plan& p) {
         p.cp = p.tp = p.micro_batch = 2, p.context_parallel = ContextParallelKind::Ulysses;
         p.recompute = RecomputePolicy::Selective;
       }},
      {"cp2_ulysses_pp2_zb_h1_fsdp", small_llama,
       [](Plan& p) {
         p.cp = p.pp = p.dp = 2, p.zero_stage = 3, p.schedule = ScheduleKind::ZbH1;
         p.context_parallel = ContextParallelKind::Ulysses;
       }},
      {"tp2_recomputes_modules", small_llama,
       [](Plan& p) {
         p.tp = p.micro_batch = 2, p.recompute = RecomputePolicy::Selective;
         p.recompute_modules = {RecomputeModule::LayerNorm, RecomputeModule::Mlp};
       }},
      {"tp4_shares_2_kv_heads", small_llama, [](Plan& p) { p.tp = p.micro_batch = 4; }},
      {"tp2_shares_a_kv_head_without_sp", small_qwen2,
       [](Plan& p) { p.tp = p.micro_batch = 2, p.sequence_parallel = false; }},
      {"dp2_tp4_shares_a_kv_head_zero1", small_qwen2,
       [](Plan& p) { p.dp = 2, p.tp = p.micro_batch = 4, p.zero_stage = 1; }},
      {"pp2_tp4_shares_2_kv_heads_recompute", small_llama,
       [](Plan& p) { p.pp = 2, p.tp = p.micro_batch = 4, p.recompute = RecomputePolicy::Full; }},
      {"dp2_tp4_shares_2_head_norms_fsdp", small_qwen3,
       [](Plan& p) { p.dp = 2, p.tp = p.micro_batch = 4, p.zero_stage = 3; }},
      {"cp2_ring_tp4_shares_2_kv_heads", small_llama,
       [](Plan& p) {
         p.cp = 2, p.tp = p.micro_batch = 4, p.context_parallel = ContextParallelKind::Ring;
       }},
      {"cp2_tp2_shares_a_kv_head_zero2", small_qwen2,
       [](Plan& p) {
         p.cp = p.tp = p.micro_batch = 2, p.zero_stage = 2;
         p.context_parallel = ContextParallelKind::AllGather;
       }},
      {"tp4_ep2_shares_2_kv_heads", small_mixtral,
       [](Plan& p) { p.tp = p.micro_batch = 4, p.ep = 2; }},
      {"dp2_zero1_experts", small_mixtral, [](Plan& p) { p.dp = 2, p.zero_stage = 1; }},
      {"ep2", small_mixtral, [](Plan& p) { p.dp = p.ep = 2; }},
      {"dp4_ep2_zero1", small_mixtral, [](Plan& p) { p.dp = 4, p.ep = 2, p.zero_stage = 1; }},
      {"ep4_recompute", small_mixtral,
       [](Plan& p) { p.dp = p.ep = 4, p.recompute = RecomputePolicy::Full; }},
      {"tp2_ep2_pp2", small_qwen2_moe, [](Plan& p) { p.tp = p.ep = p.pp = p.micro_batch = 2; }},
      {"dp4_ep2_expert_tp2_zero1", small_qwen2_moe,
       [](Plan& p) { p.dp = 4, p.ep = p.expert_tp = 2, p.zero_stage = 1; }},
      {"dp2_ep2_fsdp", small_mixtral, [](Plan& p) { p.dp = p.ep = 2, p.zero_stage = 3; }},
      {"ep2_with_3_and_1_experts", small_mixtral,
       [](Plan& p) {
         p.dp = p.ep = 2;
         p.replica_pools = {{"fast", 1, 4, {}, 3}, {"slow", 1, 4, {}, 1}};
       }},
      {"dp4_ep2_zero1_with_1_and_3_experts", small_qwen2_moe,
       [](Plan& p) {
         p.dp = 4, p.ep = 2, p.zero_stage = 1;
         p.rank_order = {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data, Axis::Expert};
         p.replica_pools = {{"slow", 2, 2, {}, 1}, {"fast", 2, 2, {}, 3}};
       }},
      {"pp2_ep2_fsdp_with_1_and_3_experts", small_mixtral,
       [](Plan& p) {
         p.dp = p.pp = p.ep = 2, p.zero_stage = 3, p.recompute = RecomputePolicy::Full;
         p.rank_order = {Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data, Axis::Expert};
         p.replica_pools = {{"slow", 1, 4, {}, 1}, {"fast", 1, 4, {}, 3}};
       }},
      {"tp2_latent_without_sp", small_deepseek_v3,
       [](Plan& p) { p.tp = p.micro_batch = 2, p.sequence_parallel = false; }},
      {"cp2_ring_tp2_latent_fsdp", small_deepseek_v3,
       [](Plan& p) {
         p.cp = p.tp = p.micro_batch = 2, p.zero_stage = 3;
         p.context_parallel = ContextParallelKind::Ring;
       }},
      {"cp2_ulysses_pp2_zb_h1_latent_recompute", small_deepseek_v3,
       [](Plan& p) {
         p.cp = p.pp = 2, p.schedule = ScheduleKind::ZbH1, p.recompute = RecomputePolicy::Full;
         p.context_parallel = ContextParallelKind::Ulysses;
       }},
      {"dp2_pp2_dual_pipe_zero1", small_gpt2,
       [](Plan& p) { p.dp = p.pp = 2, p.zero_stage = 1, p.schedule = ScheduleKind::DualPipe; }},
      {"pp4_dual_pipe", small_llama,
       [](Plan& p) { p.pp = 4, p.schedule = ScheduleKind::DualPipe; }},
      {"dp2_pp2_dual_pipe_fsdp", small_qwen3,
       [](Plan& p) { p.dp = p.pp = 2, p.zero_stage = 3, p.schedule = ScheduleKind::DualPipe; }},
      {"ep2_pp2_dual_pipe", small_mixtral,
       [](Plan& p) { p.dp = p.ep = p.pp = 2, p.schedule = ScheduleKind::DualPipe; }},
      {"dp2_pp2_zb_h1_offloads_activations", small_gpt2,
       [](Plan& p) {
         p.dp = p.pp = 2, p.schedule = ScheduleKind::ZbH1, p.offload_activations = true;
       }},
      {"ep2_offloads_half", small_mixtral,
       [](Plan& p) { p.dp = p.ep = 2, p.offload_activations = true, p.offload_ratio = 0.5; }},
      {"tp4_latent_recomputes_up_projections", small_deepseek_v3,
       [](Plan& p) {
         p.tp = p.micro_batch = 4;
         p.recompute = RecomputePolicy::Selective;
         p.recompute_modules = {RecomputeModule::MlaUpProjection, RecomputeModule::MlpActivation};
       }},
      {"tp2_pp2_ep2_latent", small_deepseek_v2,
       [](Plan& p) { p.tp = p.ep = p.pp = p.micro_batch = 2; }},
  };
  return cases;
}

}  // namespace shardwright::executor
