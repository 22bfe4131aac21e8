// Configurations of NeMo and Megatron-Bridge: their plans are those of scripts with the same
// arguments.
#include "planner/import/nemo_arguments.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/profile_library.hpp"
#include "planner/import/megatron_plan.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

using testing::HasSubstr;

Scenario scenario_of_launch(const std::optional<LaunchArguments>& launch) {
  EXPECT_TRUE(launch);
  return imported_plan(*launch, load_cluster("dgx-h100"), load_stack("megatron-core"), std::nullopt)
      .scenario;
}

Scenario scenario_of_script(const std::string& arguments) {
  return scenario_of_launch(find_launch_arguments(arguments, "run"));
}

Scenario scenario_of_yaml(const std::string& text) {
  return scenario_of_launch(find_nemo_arguments(text, "run"));
}

constexpr const char* kLlama = R"(
name: megatron_llama
trainer:
  devices: 8
  num_nodes: 4
  precision: bf16-mixed
model:
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 4
  context_parallel_size: 1
  encoder_seq_length: 8192
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  num_query_groups: 8
  kv_channels: null
  hidden_dropout: 0.0
  normalization: rmsnorm
  layernorm_epsilon: 1e-5
  bias: False
  activation: fast-swiglu
  position_embedding_type: rope
  rotary_base: 500000
  share_embeddings_and_output_weights: False
  sequence_parallel: True
  activations_checkpoint_granularity: full
  activations_checkpoint_method: block
  activations_checkpoint_num_layers: 2
  overlap_p2p_comm: True
  cpu_offloading: False
  cpu_offloading_num_layers: ${sum:${.num_layers},-1}
  ub_tp_comm_overlap: True
  data:
    seq_length: ${model.encoder_seq_length}
    data_prefix: ???
  optim:
    name: distributed_fused_adam
    overlap_grad_sync: True
    overlap_param_sync: True
)";

constexpr const char* kLlamaScript =
    "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
    "--hidden-dropout 0.0 --normalization RMSNorm --norm-epsilon 1e-5 --disable-bias-linear "
    "--swiglu "
    "--position-embedding-type rope --rotary-base 500000 --untie-embeddings-and-output-weights "
    "--sequence-parallel --recompute-granularity full --recompute-method block "
    "--recompute-num-layers 2 "
    "--tp-comm-overlap --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
    "--bf16 "
    "--micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 4 "
    "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 4 --seq-length 8192 "
    "--max-position-embeddings 8192";

TEST(NemoArguments, NemoIsAScriptOfTheSameArguments) {
  const Scenario scenario = scenario_of_yaml(kLlama);
  EXPECT_EQ(scenario, scenario_of_script(kLlamaScript));
  EXPECT_EQ(scenario.model.name, "llama3-8b");
  // hparams.yaml has the same below "cfg".
  std::string indented = "cfg:";
  for (const char c : std::string(kLlama)) indented += c == '\n' ? "\n  " : std::string(1, c);
  std::string saved = indented;
  saved.replace(saved.find("${model.encoder"), std::string("${model.encoder_seq_length}").size(),
                "8192");
  EXPECT_EQ(scenario_of_yaml(saved), scenario);
}

// Fields as Megatron-Bridge's ConfigContainer writes them.
TEST(NemoArguments, RunConfigsAreAScriptOfTheSameArguments) {
  const std::string config = R"(
_target_: megatron.bridge.training.config.ConfigContainer
model:
  _target_: megatron.bridge.models.mixtral.MixtralModelProvider
  activation_func: {_call_: false, _target_: torch.nn.functional.silu}
  gated_linear_unit: true
  add_bias_linear: false
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  num_query_groups: 8
  kv_channels: 128
  hidden_dropout: 0.0
  normalization: RMSNorm
  layernorm_epsilon: 1.0e-05
  position_embedding_type: rope
  rotary_base: 1000000.0
  seq_length: 4096
  max_position_embeddings: 32768
  share_embeddings_and_output_weights: false
  vocab_size: 32000
  num_moe_experts: 8
  moe_router_topk: 2
  moe_ffn_hidden_size: null
  mamba_num_groups: 8
  hybrid_override_pattern: null
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  expert_model_parallel_size: 8
  expert_tensor_parallel_size: 1
  sequence_parallel: true
  recompute_granularity: selective
  recompute_modules: [core_attn]
  overlap_p2p_comm: false
  params_dtype: {_call_: false, _target_: torch.bfloat16}
  bf16: true
train: {micro_batch_size: 1, global_batch_size: 64}
dataset: {_target_: GPTDatasetConfig, seq_length: 4096}
ddp: {use_distributed_optimizer: true, overlap_grad_reduce: false, overlap_param_gather: true}
comm_overlap: {overlap_grad_reduce: true, overlap_param_gather: null}
mixed_precision: {_target_: MixedPrecisionConfig, bf16: true, fp8: hybrid}
)";
  std::optional<LaunchArguments> launch = find_nemo_arguments(config, "run");
  ASSERT_TRUE(launch);
  EXPECT_FALSE(launch->ranks);
  launch->ranks = 64;
  const Scenario scenario = scenario_of_launch(launch);
  EXPECT_EQ(
      scenario,
      scenario_of_script(
          "torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size "
          "4096 "
          "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
          "--num-query-groups 8 --hidden-dropout 0.0 --normalization RMSNorm --norm-epsilon 1e-5 "
          "--disable-bias-linear --swiglu --position-embedding-type rope --rotary-base 1000000 "
          "--untie-embeddings-and-output-weights --vocab-size 32000 --num-experts 8 "
          "--moe-router-topk 2 "
          "--sequence-parallel --recompute-granularity selective --recompute-modules core_attn "
          "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --bf16 "
          "--fp8-format hybrid --micro-batch-size 1 --global-batch-size 64 "
          "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
          "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --seq-length 4096 "
          "--max-position-embeddings 32768 --no-overlap-p2p-communication"));
  EXPECT_EQ(scenario.model.name, "mixtral-8x7b");
}

TEST(NemoArguments, TextsWithoutAModelAreNoConfigurations) {
  for (const char* text : {"", "num_layers: 3", "[1, 2]", "a: {num_layers: 3, hidden_size: 4}",
                           "[NeMo I 2025] num_layers: 3\n  hidden_size: 4\n\t: ]\nEpoch 0: 1/5",
                           "model: &a {num_layers: 3, hidden_size: 4, x: *a"})
    EXPECT_FALSE(find_nemo_arguments(text, "run.log")) << text;
}

TEST(NemoArguments, DamageIsToldWithItsLine) {
  const std::string text = "model:\n  num_layers: 3\n  hidden_size: [4\n";
  EXPECT_THAT(thrown_by([&] { find_nemo_arguments(text, "run.yaml"); }), HasSubstr("line"));
  const std::string deep =
      "model: {num_layers: 3, hidden_size: 4, x: " + std::string(100'000, '[') + "}";
  EXPECT_THAT(thrown_by([&] { find_nemo_arguments(deep, "run.yaml"); }), HasSubstr("line"));
  EXPECT_THAT(
      thrown_by([] {
        find_nemo_arguments(
            "model: {num_layers: 3, hidden_size: 4, activations_checkpoint_recurrent: true}",
            "run.yaml");
      }),
      HasSubstr("model.activations_checkpoint_recurrent"));
}

// Jobs that no argument of Megatron-LM describes are refused at the field that asks for them.
TEST(NemoArguments, RefusesOtherJobs) {
  const std::string model = "model: {num_layers: 3, hidden_size: 4";
  for (const auto& [text, place] :
       {std::pair(model + ", mm_cfg: {vision_encoder: {from_hf: true}}}",
                  "model.mm_cfg.vision_encoder"),
        {model + ", vision_config: {depth: 32}}", "model.vision_config"},
        {model + "}\npeft: {_target_: megatron.bridge.peft.lora.LoRA, dim: 32}", "peft._target_"},
        {model + ", peft: {peft_scheme: lora}}", "model.peft.peft_scheme"},
        {model + ", fsdp: true, fsdp_sharding_strategy: hybrid}", "model.fsdp_sharding_strategy"}})
    EXPECT_THAT(thrown_by([&] { find_nemo_arguments(text, "run.yaml"); }), HasSubstr(place));
  EXPECT_TRUE(find_nemo_arguments(model + ", peft: {peft_scheme: null}}\npeft: null", "run.yaml"));
}

// NeMo 1 saves a model's configuration without that of the trainer.
TEST(NemoArguments, ASavedModelStatesItsPrecisionAndItsSharding) {
  const auto saved = find_nemo_arguments(
      "cfg: {num_layers: 3, hidden_size: 4, precision: bf16-mixed, fsdp: true, "
      "fsdp_sharding_strategy: full}",
      "hparams.yaml");
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->values.at("bf16"), "True");
  EXPECT_EQ(saved->values.at("use_megatron_fsdp"), "True");
  EXPECT_EQ(saved->values.at("data_parallel_sharding_strategy"), "optim_grads_params");
  // A trainer's own counts first.
  const auto with_trainer = find_nemo_arguments(
      "model: {num_layers: 3, hidden_size: 4, precision: bf16}\ntrainer: {precision: 32}",
      "a.yaml");
  EXPECT_FALSE(with_trainer->values.contains("bf16"));
}

// References in a circle end, and have no value.
TEST(NemoArguments, CirclesHaveNoValue) {
  const auto launch = find_nemo_arguments(
      "model: {num_layers: 3, hidden_size: 4, seq_length: '${model.kv_channels}', kv_channels: "
      "'${.seq_length}'}",
      "run.yaml");
  ASSERT_TRUE(launch);
  EXPECT_FALSE(launch->values.contains("seq_length"));
}

// Whatever the degrees are, the two forms agree.
RC_GTEST_PROP(NemoArguments, DegreesComeBack, ()) {
  const auto degree = [](int most) { return std::int64_t{1} << *rc::gen::inRange(0, most); };
  const std::int64_t tp = degree(4), pp = degree(3), cp = degree(2), dp = degree(4);
  const std::string yaml = fmt::format(
      "trainer: {{devices: 8, num_nodes: {}}}\nmodel: {{num_layers: 16, hidden_size: 2048, "
      "num_attention_heads: 16, "
      "encoder_seq_length: 4096, micro_batch_size: 1, global_batch_size: 128, "
      "tensor_model_parallel_size: {}, "
      "pipeline_model_parallel_size: {}, context_parallel_size: {}}}",
      dp, tp, pp, cp);
  const auto launch = find_nemo_arguments(yaml, "run");
  const std::int64_t ranks = 8 * dp;
  RC_ASSERT(launch->ranks == ranks);
  RC_PRE(ranks % (tp * pp * cp) == 0);
  const Plan plan = scenario_of_launch(launch).plan;
  RC_ASSERT(plan.tp == tp);
  RC_ASSERT(plan.pp == pp);
  RC_ASSERT(plan.cp == cp);
  RC_ASSERT(plan.world_size() == ranks);
}

}  // namespace
}  // namespace shardwright::planner
