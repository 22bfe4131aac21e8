// One whole document of each format, and what each refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/planner/export/export_cases.hpp"

namespace shardwright::planner {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

Plan tensor_and_pipeline() {
  Plan plan;
  plan.dp = 4;
  plan.tp = plan.pp = plan.vpp = 2;
  plan.global_batch = 32;
  plan.seq_len = 8192;
  plan.schedule = ScheduleKind::Interleaved;
  plan.recompute = RecomputePolicy::Full;
  plan.recompute_layers = 3;
  return plan;
}

TEST(MegatronArguments, Golden) {
  const PlanExport result =
      megatron_arguments(scenario_of("llama3-8b", "megatron-core", tensor_and_pipeline()));
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.notes, IsEmpty());
  EXPECT_EQ(result.text, R"(# llama3-8b on 16 x h100-sxm (dgx-h100), planned for megatron-core
# dp 4 follows from the other degrees and the 16 ranks
# data, tokenizer, learning rate and length of the run: add them as RUN_ARGS
# CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 pretrain_gpt.py "${MEGATRON_ARGS[@]}" "${RUN_ARGS[@]}"
# in a Slurm job: CUDA_DEVICE_MAX_CONNECTIONS=1 srun --nodes 2 --ntasks-per-node 1 torchrun --nnodes 2 --rdzv-backend c10d --rdzv-id $SLURM_JOB_ID --rdzv-endpoint $(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1):29500 --nproc-per-node 8 pretrain_gpt.py "${MEGATRON_ARGS[@]}" "${RUN_ARGS[@]}"
MEGATRON_ARGS=(
  --tensor-model-parallel-size 2
  --sequence-parallel
  --pipeline-model-parallel-size 2
  --num-layers-per-virtual-pipeline-stage 8
  --micro-batch-size 1
  --global-batch-size 32
  --seq-length 8192
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  --recompute-granularity full
  --recompute-method block
  --recompute-num-layers 3
  --bf16
  --cross-entropy-loss-fusion
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 14336
  --max-position-embeddings 8192
  --untie-embeddings-and-output-weights
  --num-attention-heads 32
  --kv-channels 128
  --group-query-attention
  --num-query-groups 8
  --position-embedding-type rope
  --rotary-base 500000
  --disable-bias-linear
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --swiglu
  --attention-dropout 0
  --hidden-dropout 0
)
)");
}

TEST(MegatronArguments, RefusesWhatItCannotRun) {
  Plan plan = tensor_and_pipeline();
  plan.schedule = ScheduleKind::ZbV;
  plan.zero_stage = 3;
  plan.rank_order = {Axis::Data, Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline};
  EXPECT_THAT(megatron_arguments(scenario_of("llama3-8b", "megatron-core", plan)).problems,
              ElementsAre(Field(&Problem::where, "/plan/schedule"),
                          Field(&Problem::where, "/plan/rank_order"),
                          Field(&Problem::where, "/plan/zero_stage")));
}

// DeepSeek-V3 has 3 dense layers before 58 sparse ones (arXiv 2412.19437, section 4.2).
TEST(MegatronArguments, SparseLayersAreAPattern) {
  const auto arguments =
      arguments_of(megatron_arguments(scenario_of("deepseek-v3", "megatron-core", Plan())).text);
  EXPECT_EQ(arguments.at("--moe-layer-freq"), "([0]*3+[1]*58)");
  EXPECT_EQ(arguments.at("--num-experts"), "256");
  EXPECT_EQ(arguments.at("--mtp-num-layers"), "1");
}

TEST(MegatronArguments, ACapacityOfExpertsIsNamed) {
  Scenario scenario = scenario_of("mixtral-8x7b", "megatron-core", Plan());
  EXPECT_FALSE(
      arguments_of(megatron_arguments(scenario).text).contains("--moe-expert-capacity-factor"));
  scenario.model.moe->capacity_factor = 1.25;
  scenario.model.moe->pads_to_capacity = true;
  const auto arguments = arguments_of(megatron_arguments(scenario).text);
  EXPECT_EQ(arguments.at("--moe-expert-capacity-factor"), "1.25");
  EXPECT_TRUE(arguments.contains("--moe-pad-expert-input-to-capacity"));
}

// Both are off where the arguments are left out.
TEST(MegatronArguments, ExpertsAreGroupedAndBalanced) {
  Scenario scenario = scenario_of("mixtral-8x7b", "megatron-core", Plan());
  const PlanExport mixtral = megatron_arguments(scenario);
  auto arguments = arguments_of(mixtral.text);
  EXPECT_TRUE(arguments.contains("--moe-grouped-gemm"));
  EXPECT_EQ(arguments.at("--moe-router-load-balancing-type"), "aux_loss");
  EXPECT_EQ(arguments.at("--moe-aux-loss-coeff"), "1e-2");
  EXPECT_THAT(mixtral.notes, testing::Contains(HasSubstr("coefficient of the auxiliary loss")));
  scenario.model.moe->balanced_routing = true;
  arguments = arguments_of(megatron_arguments(scenario).text);
  EXPECT_EQ(arguments.at("--moe-router-load-balancing-type"), "none");
  EXPECT_FALSE(arguments.contains("--moe-aux-loss-coeff"));
  scenario.plan.precision = Precision::Fp16;
  const PlanExport half = megatron_arguments(scenario);
  EXPECT_FALSE(arguments_of(half.text).contains("--moe-grouped-gemm"));
  EXPECT_THAT(half.notes, testing::Contains(HasSubstr("bf16 only")));
}

// arXiv 2412.19437, section 4.2: a loss of 0.0001 on each sequence, biases that move by 0.001.
TEST(MegatronArguments, BiasesOfExpertsBalanceThem) {
  const auto arguments =
      arguments_of(megatron_arguments(scenario_of("deepseek-v3", "megatron-core", Plan())).text);
  EXPECT_EQ(arguments.at("--moe-router-load-balancing-type"), "seq_aux_loss");
  EXPECT_EQ(arguments.at("--moe-aux-loss-coeff"), "1e-4");
  EXPECT_EQ(arguments.at("--moe-router-score-function"), "sigmoid");
  EXPECT_TRUE(arguments.contains("--moe-router-enable-expert-bias"));
  EXPECT_EQ(arguments.at("--moe-router-bias-update-rate"), "1e-3");
}

// MoEFlexTokenDispatcher requires ranks to send to and no padding, and float32 probabilities;
// shared experts overlap with the alltoall dispatcher alone.
TEST(MegatronArguments, TokensGoByTheDispatcherOfTheStack) {
  Plan plan;
  plan.dp = plan.ep = 8;
  plan.global_batch = 8;
  plan.overlap.expert_parallel = true;
  Scenario scenario = scenario_of("deepseek-v3", "megatron-core-2025", plan);
  scenario.stack.overlap.expert_parallel = true;
  const PlanExport deepep = megatron_arguments(scenario);
  auto arguments = arguments_of(deepep.text);
  EXPECT_EQ(arguments.at("--moe-token-dispatcher-type"), "flex");
  EXPECT_EQ(arguments.at("--moe-flex-dispatcher-backend"), "deepep");
  EXPECT_EQ(arguments.at("--moe-router-dtype"), "fp32");
  EXPECT_FALSE(arguments.contains("--moe-shared-expert-overlap"));
  EXPECT_THAT(deepep.notes, testing::Contains(HasSubstr("overlap.expert_parallel")));

  // DeepEP's kernels know NVLink domains of eight GPUs.
  Scenario rack = scenario;
  rack.cluster = load_cluster("gb200-nvl72");
  arguments = arguments_of(megatron_arguments(rack).text);
  EXPECT_EQ(arguments.at("--moe-flex-dispatcher-backend"), "hybridep");

  Scenario alone = scenario, padded = scenario, older = scenario;
  alone.plan.ep = 1;
  padded.model.moe->pads_to_capacity = true;
  older.stack.communication.sends_tokens_once_per_node = false;
  for (const Scenario& each : {alone, padded, older}) {
    arguments = arguments_of(megatron_arguments(each).text);
    EXPECT_EQ(arguments.at("--moe-token-dispatcher-type"), "alltoall");
    EXPECT_FALSE(arguments.contains("--moe-flex-dispatcher-backend"));
    EXPECT_TRUE(arguments.contains("--moe-shared-expert-overlap"));
  }
}

TEST(MegatronArguments, SelectiveRecomputationNamesItsModules) {
  Plan plan;
  plan.recompute = RecomputePolicy::Selective;
  Scenario scenario = scenario_of("deepseek-v3", "megatron-core", plan);
  const auto modules = [&] {
    return arguments_of(megatron_arguments(scenario).text).at("--recompute-modules");
  };
  EXPECT_EQ(modules(), "core_attn");
  scenario.plan.recompute_modules = {RecomputeModule::MlaUpProjection,
                                     RecomputeModule::MoeActivation};
  EXPECT_EQ(modules(), "moe_act mla_up_proj");
  scenario.plan.recompute_modules = {};
  scenario.stack = load_stack("hai-llm");
  EXPECT_EQ(modules(), "moe_act layernorm mla_up_proj");
}

// No framework has an argument for adapters, so that a note says what to write.
TEST(Adapters, AreNotedAsEachFrameworkNamesThem) {
  Plan plan;
  plan.lora = Lora{.targets = {LoraTarget::Q, LoraTarget::K, LoraTarget::V}, .joint = true};
  Scenario scenario = scenario_of("llama3-8b", "nemo-te", plan);
  EXPECT_THAT(
      megatron_arguments(scenario).notes,
      testing::Contains(HasSubstr("LoRA(target_modules=[\"linear_qkv\"], dim=16, alpha=32)")));
  EXPECT_FALSE(torchtitan_flags(scenario).problems.empty()) << "it has no joint adapters";
  scenario.plan.lora->joint = false;
  EXPECT_THAT(megatron_arguments(scenario).notes,
              testing::Contains(HasSubstr(
                  "CanonicalLoRA(target_modules=[\"linear_q\", \"linear_k\", \"linear_v\"]")));
  EXPECT_THAT(torchtitan_flags(scenario).notes,
              testing::Contains(HasSubstr("LoRAConverter.Config(rank=16, alpha=32, "
                                          "target_modules=[\"wq\", \"wkv\"])")));
  EXPECT_THAT(deepspeed_json(scenario).notes,
              testing::Contains(HasSubstr("peft.LoraConfig(r=16, lora_alpha=32, "
                                          "target_modules=[\"q_proj\", \"k_proj\", \"v_proj\"])")));
  scenario.plan.lora->base = FrozenFormat::Nf4;
  EXPECT_THAT(deepspeed_json(scenario).notes, testing::Contains(HasSubstr("load_in_4bit=True")));
  EXPECT_FALSE(megatron_arguments(scenario).problems.empty());
  EXPECT_FALSE(torchtitan_flags(scenario).problems.empty());
}

TEST(MegatronArguments, CudaGraphsHoldWhatTheFrameworkCanCapture) {
  const auto modules = [](const Scenario& scenario) -> std::string {
    const auto arguments = arguments_of(megatron_arguments(scenario).text);
    if (!arguments.contains("--cuda-graph-impl")) return "none";
    EXPECT_EQ(arguments.at("--cuda-graph-impl"), "transformer_engine");
    const auto found = arguments.find("--cuda-graph-modules");
    return found == arguments.end() ? "whole layers" : found->second;
  };
  EXPECT_EQ(modules(scenario_of("llama3-8b", "nemo-te", Plan())), "none");
  Scenario dense = scenario_of("llama3-8b", "nemo-te-cuda-graphs", Plan());
  EXPECT_EQ(modules(dense), "whole layers");
  dense.plan.recompute = RecomputePolicy::Full;
  EXPECT_EQ(modules(dense), "none");
  EXPECT_THAT(megatron_arguments(dense).notes, testing::Contains(HasSubstr("CUDA graphs")));

  for (const char* stack : {"megatron-bridge-cuda-graphs", "megatron-bridge-part-graphs"}) {
    const Scenario sparse = scenario_of("deepseek-v3", stack, Plan());
    EXPECT_EQ(modules(sparse), "attn moe_router moe_preprocess") << stack;
    // Quotes would make the words one.
    EXPECT_THAT(megatron_arguments(sparse).text,
                HasSubstr("--cuda-graph-modules attn moe_router moe_preprocess\n"));
  }
  Scenario router = scenario_of("deepseek-v3", "megatron-bridge-part-graphs", Plan());
  router.stack.host.graph_modules = {GraphModule::Router};
  EXPECT_EQ(modules(router), "moe_router moe_preprocess");
  router.model = load_model("llama3-8b");
  EXPECT_EQ(modules(router), "none");
  Scenario padded = scenario_of("mixtral-8x7b", "megatron-bridge-cuda-graphs", Plan());
  padded.model.moe->capacity_factor = 1.0;
  padded.model.moe->pads_to_capacity = true;
  EXPECT_EQ(modules(padded), "whole layers");
}

// The recipes of TransformerConfig.fp8_recipe. Blocks of e4m3 need no e5m2 for gradients.
TEST(MegatronArguments, Fp8HasTheRecipeOfTheStack) {
  Plan plan;
  plan.precision = Precision::Fp8;
  Scenario scenario = scenario_of("llama3-8b", "nemo-te", plan);
  scenario.stack.fusion.fp8_recipe = Fp8Recipe::Tensorwise;
  auto arguments = arguments_of(megatron_arguments(scenario).text);
  EXPECT_EQ(arguments.at("--fp8-recipe"), "tensorwise");
  EXPECT_EQ(arguments.at("--fp8-format"), "hybrid");
  scenario.stack.fusion.fp8_recipe = Fp8Recipe::Mxfp8;
  arguments = arguments_of(megatron_arguments(scenario).text);
  EXPECT_EQ(arguments.at("--fp8-recipe"), "mxfp8");
  EXPECT_EQ(arguments.at("--fp8-format"), "e4m3");
  scenario.plan.precision = Precision::Bf16;
  EXPECT_FALSE(arguments_of(megatron_arguments(scenario).text).contains("--fp8-recipe"));
}

// The defaults that arguments cannot change are those of TransformerConfig and
// MLATransformerConfig.
TEST(MegatronArguments, RotaryAnglesAreScaledAsTheModelSays) {
  const auto exported = [](const std::string& model) {
    return megatron_arguments(scenario_of(model, "megatron-core", Plan()));
  };
  auto arguments = arguments_of(exported("llama3.2-1b").text);
  EXPECT_TRUE(arguments.contains("--use-rope-scaling"));
  EXPECT_EQ(arguments.at("--rope-scaling-factor"), "32");
  EXPECT_FALSE(arguments_of(exported("llama3-8b").text).contains("--use-rope-scaling"));

  const PlanExport deepseek = exported("deepseek-v2");
  arguments = arguments_of(deepseek.text);
  EXPECT_EQ(arguments.at("--rotary-scaling-factor"), "40");
  EXPECT_EQ(arguments.at("--mscale-all-dim"), "0.707");
  EXPECT_THAT(deepseek.notes, testing::Not(testing::Contains(HasSubstr("YaRN"))));
  EXPECT_THAT(exported("kimi-k2").notes, testing::Contains(HasSubstr("beta_fast 1 ")));
  EXPECT_THAT(exported("gpt-oss-20b").notes, testing::Contains(HasSubstr("factor of YaRN, 32")));
}

TEST(DeepSpeedJson, Golden) {
  Plan plan;
  plan.dp = 8;
  plan.tp = 2;
  plan.sequence_parallel = false;
  plan.zero_stage = 2;
  plan.micro_batch = 2;
  plan.global_batch = 64;
  plan.offload_optimizer = OptimizerOffload::Host;
  const PlanExport result = deepspeed_json(scenario_of("llama3-8b", "deepspeed-zero", plan));
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_EQ(result.text, R"({
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true,
    "contiguous_gradients": true,
    "reduce_scatter": true,
    "reduce_bucket_size": 500000000,
    "allgather_bucket_size": 500000000,
    "offload_optimizer": {
      "device": "cpu",
      "pin_memory": true
    }
  },
  "bf16": {
    "enabled": true
  },
  "communication_data_type": "bf16",
  "data_types": {
    "grad_accum_dtype": "bf16"
  },
  "tensor_parallel": {
    "autotp_size": 2
  }
}
)");
}

TEST(DeepSpeedJson, RefusesWhatItCannotRun) {
  Plan plan = tensor_and_pipeline();
  plan.zero_stage = 3;
  plan.cp = 2;
  EXPECT_THAT(deepspeed_json(scenario_of("llama3-8b", "deepspeed-zero", plan)).problems,
              ElementsAre(Field(&Problem::where, "/plan/zero_stage"),
                          Field(&Problem::where, "/plan/pp"), Field(&Problem::where, "/plan/cp"),
                          Field(&Problem::where, "/plan/sequence_parallel"),
                          Field(&Problem::where, "/plan/context_parallel"),
                          Field(&Problem::where, "/plan/schedule")));
}

TEST(DeepSpeedJson, ExpertsAreAutoEPs) {
  Plan plan;
  plan.dp = plan.ep = 8;
  plan.global_batch = 8;
  plan.zero_stage = 3;
  const auto experts = [&](const char* model) {
    const PlanExport result = deepspeed_json(scenario_of(model, "deepspeed-zero", plan));
    EXPECT_THAT(result.problems, IsEmpty());
    return nlohmann::json::parse(result.text)["expert_parallel"];
  };
  const auto mixtral = experts("mixtral-8x7b");
  EXPECT_EQ(mixtral["autoep_size"], 8);
  EXPECT_EQ(mixtral["preset_model"], "mixtral");
  EXPECT_FALSE(experts("gpt-oss-120b").contains("preset_model"));
}

TEST(TorchtitanFlags, Golden) {
  Plan plan = tensor_and_pipeline();
  plan.zero_stage = 3;
  plan.shard_group = 2;
  plan.recompute_layers = 0;
  plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  const PlanExport result = torchtitan_flags(scenario_of("llama3-8b", "fsdp2", plan));
  EXPECT_THAT(result.problems, IsEmpty());
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("overlap.p2p")));
  EXPECT_EQ(result.text, R"(# llama3-8b on 16 x h100-sxm (dgx-h100), planned for fsdp2
# torchrun --nnodes 2 --nproc-per-node 8 --node-rank $NODE_RANK --master-addr $MASTER_ADDR --master-port 29500 -m torchtitan.train --module llama3 --config llama3_8b "${TORCHTITAN_FLAGS[@]}"
# in a Slurm job: srun --nodes 2 --ntasks-per-node 1 torchrun --nnodes 2 --rdzv-backend c10d --rdzv-id $SLURM_JOB_ID --rdzv-endpoint $(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1):29500 --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b "${TORCHTITAN_FLAGS[@]}"
TORCHTITAN_FLAGS=(
  --parallelism.data_parallel_replicate_degree=2
  --parallelism.data_parallel_shard_degree=2
  --parallelism.fsdp_reshard_after_forward=always
  --parallelism.tensor_parallel_degree=2
  --parallelism.pipeline_parallel_degree=2
  --parallelism.pipeline_parallel_schedule=Interleaved1F1B
  --parallelism.pipeline_parallel_microbatch_size=1
  --parallelism.pipeline_parallel_first_stage_less_layers=1
  --parallelism.pipeline_parallel_last_stage_less_layers=1
  --training.local_batch_size=8
  --training.global_batch_size=32
  --training.seq_len=8192
  --training.mixed_precision_param=bfloat16
  --training.mixed_precision_reduce=float32
  --training.disable_cuda_graphs
  --compile.no-enable
  activation-checkpoint:full
)
)");
}

TEST(TorchtitanFlags, CompilesAndNamesTheConfigurationThatExists) {
  Plan plan;
  plan.tp = 2;
  plan.zero_stage = 0;
  const Scenario ours = scenario_of("mixtral-8x7b", "fsdp2-compile", plan);
  PlanExport result = torchtitan_flags(ours);
  EXPECT_THAT(result.launch, HasSubstr("--module MODULE --config CONFIG"));
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("does not ship it")));
  Scenario flavor = scenario_of("llama3.2-1b", "fsdp2-compile", plan);
  flavor.plan.overlap.tensor_parallel = true;
  result = torchtitan_flags(flavor);
  EXPECT_THAT(result.launch, HasSubstr("--module llama3 --config CONFIG"));
  EXPECT_THAT(result.notes, testing::Contains(HasSubstr("model_registry(\"1B\")")));
  const auto flags = arguments_of(result.text);
  EXPECT_TRUE(flags.contains("--compile.enable"));
  EXPECT_EQ(flags.at("--compile.components"), "model");
  EXPECT_TRUE(flags.contains("--compile.enable-async-tensor-parallel"));
  EXPECT_THAT(result.text, HasSubstr("\n  activation-checkpoint:none\n)"));
  Scenario fp8 = scenario_of("deepseek-v3", "fsdp2-compile", plan);
  fp8.plan.precision = Precision::Fp8;
  EXPECT_THAT(torchtitan_flags(fp8).launch, HasSubstr("--config deepseek_v3_671b_float8"));
}

TEST(TorchtitanFlags, RefusesWhatItCannotRun) {
  Plan plan = tensor_and_pipeline();  // ZeRO-1, recomputation of some layers
  plan.schedule = ScheduleKind::ZbH2;
  plan.vpp = 1;
  plan.stage_layers = {2, 30};
  EXPECT_THAT(torchtitan_flags(scenario_of("llama3-8b", "fsdp2", plan)).problems,
              ElementsAre(Field(&Problem::where, "/plan/zero_stage"),
                          Field(&Problem::where, "/plan/schedule"),
                          Field(&Problem::where, "/plan/stage_layers"),
                          Field(&Problem::where, "/plan/recompute_layers")));
}

TEST(LaunchLine, NodesShareTheRanksEvenly) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  Plan plan;
  for (const auto& [dp, shape] :
       {std::pair{1, LaunchShape{1, 1}}, std::pair{8, LaunchShape{1, 8}},
        std::pair{12, LaunchShape{2, 6}}, std::pair{64, LaunchShape{8, 8}},
        std::pair{13, LaunchShape{13, 1}}}) {
    plan.dp = dp;
    EXPECT_EQ(launch_shape(cluster, plan), shape) << dp;
  }
}

}  // namespace
}  // namespace shardwright::planner
