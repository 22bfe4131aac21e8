// Launch scripts and logs of Megatron-LM as plans: exports come back, and what scripts of others
// write is followed.
#include "planner/import/megatron_plan.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/program/shard_shape.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/import/megatron_settings.hpp"
#include "tests/planner/export/export_cases.hpp"
#include "tests/planner/import/imported_text.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan plan_from(const char* fields, const ModelSpec& model, const StackSpec& stack) {
  const nlohmann::json document = nlohmann::json::parse(fields);
  ProblemList problems("plan");
  ObjectReader reader(document, "", problems);
  const Plan plan = read_plan_of(reader, model, stack);
  problems.throw_if_any();
  return plan;
}

struct RoundTrip {
  const char *model, *plan;
};

constexpr RoundTrip kRoundTrips[] = {
    {"llama3-8b",
     R"({"dp": 8, "tp": 1, "pp": 1, "micro_batch": 2, "global_batch": 64, "seq_len": 8192})"},
    {"llama3-70b",
     R"({"dp": 4, "tp": 4, "pp": 4, "cp": 2, "vpp": 10, "schedule": "interleaved", "micro_batch": 1,
         "global_batch": 128, "seq_len": 8192, "context_parallel": "all-gather",
         "overlap": {"tensor_parallel": true}})"},
    {"llama3.1-405b",
     R"({"dp": 4, "tp": 8, "pp": 16, "micro_batch": 1, "global_batch": 256, "seq_len": 8192,
         "embedding_counts_as_layer": true, "head_counts_as_layer": true, "recompute": "full",
         "recompute_layers": 3, "precision": "fp8"})"},
    {"gpt3-175b",
     R"({"dp": 2, "tp": 8, "pp": 8, "micro_batch": 1, "global_batch": 64, "seq_len": 2048,
         "recompute": "selective", "zero_stage": 0, "sequence_parallel": false,
         "overlap": {"tensor_parallel": false}, "stage_layers": [13, 12, 12, 12, 12, 12, 12, 11]})"},
    {"llama2-7b",
     R"({"dp": 16, "tp": 1, "pp": 1, "micro_batch": 1, "global_batch": 64, "seq_len": 4096, "zero_stage": 3,
         "shard_group": 8, "optimizer_states": "bf16"})"},
    {"mixtral-8x7b",
     R"({"dp": 8, "tp": 2, "pp": 2, "ep": 8, "expert_tp": 1, "micro_batch": 1, "global_batch": 64,
         "seq_len": 4096, "rank_order": ["tp", "cp", "ep", "pp", "dp"]})"},
    {"deepseek-v3",
     R"({"dp": 32, "tp": 2, "pp": 8, "ep": 32, "micro_batch": 1, "global_batch": 512, "seq_len": 4096,
         "recompute": "selective", "recompute_modules": ["mla_up_proj", "mlp"],
         "overlap": {"expert_parallel": true}})"},
    {"deepseek-v3",
     R"({"dp": 32, "tp": 1, "pp": 4, "ep": 8, "micro_batch": 1, "global_batch": 512, "seq_len": 4096,
         "multi_token_prediction": false, "overlap": {"grad_reduce": false, "param_gather": false}})"},
    {"qwen3-30b-a3b",
     R"({"dp": 8, "tp": 1, "pp": 1, "ep": 8, "micro_batch": 1, "global_batch": 64, "seq_len": 4096,
         "offload_optimizer": "host"})"},
    {"nemotron-h-8b",
     R"({"dp": 4, "tp": 2, "pp": 4, "micro_batch": 1, "global_batch": 64, "seq_len": 8192})"},
    {"nemotron-3-nano-30b-a3b",
     R"({"dp": 16, "tp": 1, "pp": 2, "vpp": 2, "schedule": "interleaved", "ep": 16, "micro_batch": 1,
         "global_batch": 64, "seq_len": 8192})"},
    {"qwen3-next-80b-a3b",
     R"({"dp": 16, "tp": 2, "pp": 2, "ep": 16, "micro_batch": 1, "global_batch": 64, "seq_len": 4096})"},
};

// The law of both ways: the plan and the model are those that were exported, with their names and
// vocabularies, which the arguments do not have.
TEST(MegatronPlan, ExportsComeBack) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const StackSpec stack = load_stack("megatron-core");
  for (const RoundTrip& each : kRoundTrips) {
    SCOPED_TRACE(each.model + std::string(" ") + each.plan);
    const ModelSpec model = load_model(each.model);
    const Scenario scenario{model, cluster, stack, plan_from(each.plan, model, stack)};
    const PlanExport exported = megatron_arguments(scenario);
    ASSERT_THAT(exported.problems, IsEmpty());
    const ImportedPlan imported = import_text(exported.text);
    EXPECT_EQ(to_json(imported.scenario.plan).dump(), to_json(scenario.plan).dump());
    EXPECT_EQ(imported.scenario, scenario);
    EXPECT_THAT(imported.assumed, IsEmpty());
    const auto launch = find_launch_arguments(exported.text, "launch.sh");
    EXPECT_EQ(exported_names(*launch).model, model.name);
    EXPECT_EQ(exported_names(*launch).cluster, cluster.name);
    EXPECT_EQ(exported_names(*launch).stack, stack.name);
  }
}

// Without the name in the comment too, but for models that differ in their vocabulary alone.
TEST(MegatronPlan, ShippedModelsAreKnownByTheirArguments) {
  const ClusterSpec cluster = load_cluster("dgx-h100");
  const StackSpec stack = load_stack("megatron-core");
  std::size_t known = 0;
  for (const ModelSpec& model : shipped_model_specs()) {
    Scenario scenario{model, cluster, stack, {}};
    scenario.plan.seq_len = 512;
    scenario.plan.overlap = usual_overlap(stack, model);
    const PlanExport exported = megatron_arguments(scenario);
    if (!exported.problems.empty()) continue;
    EXPECT_EQ(import_text(exported.text).scenario, scenario) << model.name;
    const ImportedPlan nameless = import_text(exported.text.substr(exported.text.find('\n') + 1));
    if (nameless.assumed.empty()) {
      EXPECT_EQ(nameless.scenario, scenario) << model.name;
      ++known;
    }
  }
  EXPECT_GT(known, shipped_model_specs().size() * 3 / 5);
}

// Models that nobody ships: what is imported has the same arguments again.
TEST(MegatronPlan, ImportedPlansExportTheSameArguments) {
  std::mt19937 random(2026);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    const Scenario scenario = random_scenario(random);
    const PlanExport exported = megatron_arguments(scenario);
    if (!exported.problems.empty()) continue;
    SCOPED_TRACE(exported.text);
    const auto launch = find_launch_arguments(exported.text, "launch.sh");
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->ranks, scenario.plan.world_size());
    const ImportedPlan imported =
        imported_plan(*launch, scenario.cluster, scenario.stack, std::nullopt);
    EXPECT_EQ(arguments_of(megatron_arguments(imported.scenario).text),
              arguments_of(exported.text));
    if (testing::Test::HasFailure()) return;
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

TEST(MegatronPlan, FollowsAScript) {
  // As the scripts of Megatron-LM's examples are written; also a seed of the fuzz target.
  const ImportedPlan imported =
      import_text(content_of(SHARDWRIGHT_SOURCE_DIR "/tests/fuzz/seeds/launch/script.sh"));
  const Scenario& scenario = imported.scenario;
  EXPECT_EQ(scenario.plan.world_size(), 32);
  EXPECT_EQ(scenario.plan.tp, 2);
  EXPECT_EQ(scenario.plan.pp, 2);
  EXPECT_EQ(scenario.plan.dp, 8);
  EXPECT_EQ(scenario.plan.global_batch, 128);
  EXPECT_EQ(scenario.plan.seq_len, 4096);
  EXPECT_EQ(scenario.plan.zero_stage, 1);
  EXPECT_EQ(scenario.plan.precision, Precision::Bf16);
  EXPECT_FALSE(scenario.plan.sequence_parallel);
  EXPECT_FALSE(scenario.plan.overlap.grad_reduce);
  // Megatron-LM's own values of what is not stated.
  EXPECT_EQ(scenario.model.mlp.ffn_hidden, 16'384);
  EXPECT_EQ(scenario.model.attention.kv_heads, 8);
  EXPECT_EQ(scenario.model.attention.head_dim, 128);
  EXPECT_TRUE(scenario.model.tied_embeddings);
  EXPECT_TRUE(scenario.model.mlp.bias);
  EXPECT_EQ(scenario.model.norm, NormKind::LayerNorm);
  EXPECT_EQ(scenario.model.position, PositionKind::Learned);
  EXPECT_EQ(scenario.model.dropout, 0.1);
  EXPECT_EQ(scenario.model.name, "launch");
  EXPECT_THAT(imported.unread, ElementsAre("--clip-grad", "--lr", "--save"));
  EXPECT_THAT(imported.assumed,
              ElementsAre(HasSubstr("NUM_NODES has its default 4"), HasSubstr("vocabulary")));
}

TEST(MegatronPlan, SaysWhatOfTheOptimizerIsNotSimulated) {
  const auto assumed = [](const std::string& rest) {
    return import_text(
               "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size "
               "256 --num-attention-heads 4 --seq-length 128 --use-distributed-optimizer "
               "--optimizer-cpu-offload " +
               rest)
        .assumed;
  };
  EXPECT_THAT(assumed("--optimizer adam"), ElementsAre(HasSubstr("vocabulary")));
  EXPECT_THAT(assumed("--optimizer muon"), Contains(HasSubstr("muon")));
  EXPECT_THAT(assumed("--optimizer-offload-fraction 0.5"), Contains(HasSubstr("all of the optim")));
}

TEST(MegatronPlan, SaysWhatAScriptTakesFromItsEnvironment) {
  const ImportedPlan imported = import_text(
      "GPUS=${GPUS_PER_NODE:-8}\n"
      "torchrun --nproc_per_node $GPUS --nnodes ${NODES:-2} pretrain_gpt.py --num-layers 32 "
      "--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "
      "--global-batch-size 128 --save runs/$(date +%F) --bf16\n");
  EXPECT_EQ(imported.scenario.plan.world_size(), 16);
  EXPECT_THAT(imported.assumed,
              Contains(HasSubstr("GPUS_PER_NODE has its default 8, NODES has its default 2, the "
                                 "output of $(date +%F) is left out")));
}

// Nobody knows whether a condition holds: what it decides about is said, with the other value.
TEST(MegatronPlan, SaysWhatAConditionOfAScriptDecides) {
  const std::string program =
      "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
      "--num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 128 "
      "--pipeline-model-parallel-size $PP $EXTRA --bf16\n";
  const auto said = [&](const std::string& script, int pp) {
    const ImportedPlan imported = import_text(script + program);
    EXPECT_EQ(imported.scenario.plan.pp, pp) << script;
    return imported.assumed;
  };
  EXPECT_THAT(said("PP=4\nif [ \"$1\" = \"big\" ]; then PP=8; fi\n", 8),
              Contains(HasSubstr(
                  "\"PP=8\" in line 2 counts as if its condition held (without it PP is 4)")));
  EXPECT_THAT(said("if [ $1 = big ]\nthen\n  PP=8\nelse\n  PP=4\nfi\n", 4),
              Contains(HasSubstr(
                  "\"PP=4\" in line 5 counts as if its condition held (without it PP is 8)")));
  EXPECT_THAT(said("PP=4\n[ -n \"$BIG\" ] && PP=8\nSURE=1\n", 8), Contains(HasSubstr("in line 2")));
  EXPECT_THAT(said("PP=4; case $1 in big) PP=8;; esac\n", 8), Contains(HasSubstr("\"PP=8\"")));
  EXPECT_THAT(said("PP=4\nif unknown; then EXTRA+=\" --swiglu\"; fi\n", 4),
              Contains(HasSubstr("(without it EXTRA has no value)")));
  // What does not change, is set again, or stands behind the condition, is sure.
  for (const char* script :
       {"PP=4\nif unknown; then PP=4; fi\n", "if unknown; then PP=8; fi\nPP=4\n",
        "if unknown; then UNUSED=8; elif unknown; then UNUSED=9; fi\nPP=4\n",
        "for i in 1 2; do echo $i; done && echo\nPP=4\n"})
    EXPECT_THAT(said(script, 4), testing::Not(Contains(HasSubstr("condition")))) << script;
}

// A script that leaves Megatron-LM's dropout on trains no Llama 3, but with its tokenizer.
TEST(MegatronPlan, TakesTheVocabularyOfTheModelMostAlike) {
  const ModelSpec llama = load_model("llama3-8b");
  Scenario scenario{llama, load_cluster("dgx-h100"), load_stack("megatron-core"), {}};
  scenario.model.dropout = 0.1;
  scenario.model.name = "mine";
  const ImportedPlan imported = import_text(megatron_arguments(scenario).text);
  EXPECT_EQ(imported.scenario.model.vocab, llama.vocab);
  EXPECT_EQ(imported.scenario.model.dropout, 0.1);
  EXPECT_EQ(imported.scenario.model.name, "launch");
  EXPECT_THAT(imported.assumed, ElementsAre(HasSubstr("as that of llama3-8b")));
}

// Shapes are shared by models of different vocabularies: the tokenizer tells which one it is.
TEST(MegatronPlan, TakesTheVocabularyOfTheTokenizer) {
  Scenario scenario{
      load_model("llama3.1-8b"), load_cluster("dgx-h100"), load_stack("megatron-core"), {}};
  scenario.model.dropout = 0.1;
  scenario.model.rope_theta = 7e5;
  const std::string script = megatron_arguments(scenario).text;
  const auto with_tokenizer = [&](const std::string& argument) {
    std::string text = script.substr(script.find('\n') + 1);
    text.insert(text.rfind(')'), argument + "\n");
    return import_text(text);
  };
  for (const char* tokenizer :
       {"--tokenizer-model meta-llama/Llama-3.1-8B", "--tokenizer-model Qwen/Qwen3-8B",
        "--tokenizer-name-or-path /data/models/Llama-2-7b-hf/tokenizer.model"}) {
    const ImportedPlan imported = with_tokenizer(tokenizer);
    const std::string id = std::string(tokenizer).substr(std::string(tokenizer).find(' ') + 1);
    const ModelSpec named = load_model(id.starts_with("/") ? "meta-llama/Llama-2-7b-hf" : id);
    EXPECT_EQ(imported.scenario.model.vocab, named.vocab) << tokenizer;
    EXPECT_THAT(imported.assumed, ElementsAre(HasSubstr("as that of " + named.name +
                                                        ", whose tokenizer the arguments name")));
  }
  EXPECT_EQ(with_tokenizer("--tokenizer-model Qwen/Qwen3-8B --vocab-size 777").scenario.model.vocab,
            777);
}

// Megatron-LM pads the vocabulary to a multiple of the argument for each tensor-parallel rank.
TEST(MegatronPlan, PadsTheVocabulary) {
  const auto vocabulary = [](const std::string& arguments) {
    return import_text(
               "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 256 "
               "--num-attention-heads 4 --seq-length 128 --micro-batch-size 1 " +
               arguments)
        .scenario.model.vocab;
  };
  EXPECT_EQ(vocabulary("--vocab-size 100000"), 100'000);
  EXPECT_EQ(vocabulary("--vocab-size 100000 --make-vocab-size-divisible-by 512"), 100'352);
  EXPECT_EQ(vocabulary("--vocab-size 50257 --make-vocab-size-divisible-by 128 "
                       "--tensor-model-parallel-size 4"),
            50'688);
  EXPECT_EQ(vocabulary("--padded-vocab-size 50304 --make-vocab-size-divisible-by 1000"), 50'304);
}

// The gradients of bf16 are added up and reduced in fp32, unless an argument says otherwise.
TEST(MegatronPlan, ReducesGradientsInTheFormatOfTheArguments) {
  const auto reduces_in_fp32 = [](const std::string& arguments) {
    const StackSpec stack =
        import_text(
            "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 256 "
            "--num-attention-heads 4 --seq-length 128 --micro-batch-size 1 --bf16 " +
            arguments)
            .scenario.stack;
    EXPECT_EQ(stack.gradients.fp32_reduction, stack.gradients.fp32_accumulation) << arguments;
    return stack.gradients.fp32_reduction;
  };
  EXPECT_TRUE(reduces_in_fp32(""));
  EXPECT_TRUE(reduces_in_fp32("--main-grads-dtype fp32 --accumulate-allreduce-grads-in-fp32"));
  EXPECT_FALSE(reduces_in_fp32("--grad-reduce-in-bf16"));
  EXPECT_FALSE(reduces_in_fp32("--use-precision-aware-optimizer --main-grads-dtype bf16"));
}

// The layout of DeepSeek-V3's recipe: two layers in each of 30 chunks.
TEST(MegatronPlan, ReadsRepeatedChunksOfALayout) {
  const auto imported = [](const std::string& layout) {
    return import_text(
               "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 61 --hidden-size 256 "
               "--num-attention-heads 4 --seq-length 128 --micro-batch-size 1 "
               "--global-batch-size 8 --pipeline-model-parallel-size 8 "
               "--pipeline-model-parallel-layout '" +
               layout + "'")
        .scenario;
  };
  const Scenario scenario = imported("Et|(tt|)*30L");
  EXPECT_EQ(scenario.plan.vpp, 4);
  std::vector<std::int64_t> layers(32, 2);
  layers.front() = 1;
  layers.back() = 0;
  std::vector<std::int64_t> split;
  for (const LayerRange& range : split_layers(scenario.model, scenario.plan))
    split.push_back(range.count);
  EXPECT_EQ(split, layers);
  for (const char* wrong :
       {"Et|(tt|*30L", "Et|(tt|)30L", "Et|(tt|)*99999999999L", "Et|()*30L", "Et|*999999t*61L"})
    EXPECT_THAT(problems_of([&] { imported(wrong); }),
                ElementsAre("--pipeline-model-parallel-layout"))
        << wrong;
}

// Other ways to start processes give the same number of them.
TEST(MegatronPlan, CountsTheProcessesOfLaunchers) {
  const std::string program =
      " pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 "
      "--micro-batch-size 1\n";
  const auto ranks = [&](const std::string& launcher) {
    return find_launch_arguments(launcher + program, "launch.sh")->ranks;
  };
  EXPECT_EQ(ranks("torchrun --standalone --nproc-per-node=4"), 4);
  EXPECT_EQ(ranks("python -u -m torch.distributed.run --nnodes 3 --nproc_per_node 4"), 12);
  EXPECT_EQ(ranks("N=2; torchrun --nnodes=$N:4 --nproc-per-node $((N*2))"), 8);
  EXPECT_EQ(ranks("srun -N 2 --ntasks-per-node 8 python"), 16);
  EXPECT_EQ(ranks("mpirun -np 6 python"), 6);
  EXPECT_EQ(ranks("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nsrun python"), 8);
  EXPECT_EQ(ranks("#SBATCH --nodes=2\nsrun --ntasks-per-node 1 torchrun --nproc-per-node 4"), 8);
  EXPECT_EQ(ranks("torchrun --nproc-per-node gpu"), std::nullopt);
  EXPECT_THAT(
      find_launch_arguments("torchrun --nnodes=2:4 --nproc-per-node 8" + program, "run")->unknown,
      ElementsAre("of 2:4 nodes the first number counts"));
  EXPECT_EQ(ranks("python"), std::nullopt);
  const std::string inner = "torchrun --nnodes 2 --nproc-per-node 8" + program;
  EXPECT_EQ(find_launch_arguments("srun bash -c \"" + inner + "\"", "launch.sh")->ranks, 16);
}

// As the scripts of BigScience: the inner shell expands what the outer one exports, and the script
// prints the command before it runs it.
TEST(MegatronPlan, FollowsTheCommandsOfAnInnerShell) {
  const std::string head =
      "#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:v100:4\n"
      "export LAUNCHER=\"python -u -m torch.distributed.run --nproc_per_node 4 --nnodes 3\"\n"
      "export CMD=\"`pwd`/pretrain_gpt.py --num-layers 4 --hidden-size 256 "
      "--num-attention-heads 4 --seq-length 128\"\n";
  const std::string printed = head + "echo $CMD\n";
  for (const char* run :
       {"clear; srun --jobid $ID bash -c '$LAUNCHER --node_rank $RANK $CMD' | tee l",
        "srun bash -lc \"$LAUNCHER --node_rank \\$RANK $CMD\"",
        "srun /bin/sh -c 'echo $CMD; bash -c \"$LAUNCHER $CMD\"'"}) {
    SCOPED_TRACE(run);
    const auto launch = find_launch_arguments(printed + run, "launch.sh");
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->ranks, 12);
    EXPECT_THAT(launch->unknown, testing::Not(Contains(HasSubstr("GPUs"))));
  }
  const auto one_task = find_launch_arguments(printed + "srun bash -c 'python $CMD'", "launch.sh");
  ASSERT_TRUE(one_task);
  EXPECT_EQ(one_task->ranks, 3);
  EXPECT_THAT(one_task->unknown,
              Contains("whether a node's 1 task use more than one each of its 4 GPUs"));
  EXPECT_FALSE(find_launch_arguments(printed, "launch.sh"));
  // Shells that call themselves end.
  const std::string endless =
      head + "A='bash -c \"$A\"; bash -c \"$A\"; $LAUNCHER $CMD'\nbash -c \"$A\"";
  EXPECT_EQ(find_launch_arguments(endless, "launch.sh")->ranks, 12);
}

// Megatron-LM 2, Megatron-DeepSpeed and the example of gpt-oss name these in their own way.
TEST(MegatronPlan, ReadsArgumentsOfOtherVersions) {
  const auto imported = [](const std::string& arguments) {
    return import_text(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 256 "
        "--num-attention-heads 4 --seq-length 128 --micro-batch-size 1 " +
        arguments);
  };
  const ImportedPlan chunks = imported(
      "--checkpoint-activations --checkpoint-num-layers 2 --deepspeed --zero-stage 2 "
      "--deepspeed-activation-checkpointing --fp16");
  EXPECT_EQ(chunks.scenario.plan.recompute, RecomputePolicy::Full);
  EXPECT_EQ(chunks.scenario.plan.recompute_group, 2);
  EXPECT_EQ(chunks.scenario.plan.zero_stage, 2);
  EXPECT_THAT(chunks.unread, IsEmpty());
  const Plan block = imported(
                         "--activations-checkpoint-method block "
                         "--activations-checkpoint-num-layers 3 --deepspeed --zero-stage 0 --bf16")
                         .scenario.plan;
  EXPECT_EQ(block.recompute, RecomputePolicy::Full);
  EXPECT_EQ(block.recompute_layers, 3);
  EXPECT_EQ(block.zero_stage, 1);
  const Scenario bloom = imported(
                             "--embed-layernorm --pipeline-model-parallel-size 2 "
                             "--pp-partition-method 'type:transformer|embedding'")
                             .scenario;
  EXPECT_TRUE(bloom.model.embedding_norm);
  EXPECT_TRUE(bloom.plan.embedding_counts_as_layer && bloom.plan.head_counts_as_layer);
  EXPECT_EQ(imported("--recompute-method uniform").scenario.plan.recompute, RecomputePolicy::None);
  const ModelSpec model =
      imported("--quick-geglu --softmax-type learnable --position-embedding-type alibi")
          .scenario.model;
  EXPECT_TRUE(model.mlp.gated);
  EXPECT_FALSE(model.embedding_norm);
  EXPECT_EQ(model.mlp.activation, Activation::Gelu);
  EXPECT_EQ(model.mlp.ffn_hidden, 1024);
  EXPECT_TRUE(model.attention.sinks);
  EXPECT_EQ(model.position, PositionKind::Alibi);
  EXPECT_THAT(problems_of([&] { imported("--softmax-type none"); }), ElementsAre("--softmax-type"));
}

constexpr const char* kLog = R"(using world size: 16, data-parallel size: 4
[default0]:------------------------ arguments ------------------------
[default0]:  add_bias_linear ................................. False
[default0]:  bf16 ............................................ True
[default0]:  context_parallel_size ........................... 1
[default0]:  expert_model_parallel_size ...................... 1
[default0]:  expert_tensor_parallel_size ..................... None
[default0]:  ffn_hidden_size ................................. 14336
[default0]:  global_batch_size ............................... 128
[default0]:  group_query_attention ........................... True
[default0]:  hidden_dropout .................................. 0.0
[default0]:  hidden_size ..................................... 4096
[default0]:  kv_channels ..................................... 128
[default0]:  max_position_embeddings ......................... 8192
[default0]:  micro_batch_size ................................ 1
[default0]:  norm_epsilon .................................... 1e-05
[default0]:  normalization ................................... RMSNorm
[default0]:  num_attention_heads ............................. 32
[default0]:  num_layers ...................................... 32
[default0]:  num_query_groups ................................ 8
[default0]:  overlap_grad_reduce ............................. True
[default0]:  pipeline_model_parallel_size .................... 2
[default0]:  position_embedding_type ......................... rope
[default0]:  recompute_granularity ........................... selective
[default0]:  recompute_modules ............................... ['core_attn']
[default0]:  rotary_base ..................................... 500000
[default0]:  seq_length ...................................... 8192
[default0]:  sequence_parallel ............................... True
[default0]:  swiglu .......................................... True
[default0]:  tensor_model_parallel_size ...................... 2
[default0]:  untie_embeddings_and_output_weights ............. True
[default0]:  use_distributed_optimizer ....................... True
[default0]:  virtual_pipeline_model_parallel_size ............ None
[default0]:  world_size ...................................... 16
[default0]:-------------------- end of arguments ---------------------
 [2024-07-01 10:00:00] iteration 1/ 10 | elapsed time per iteration (ms): 900.0 |
)";

TEST(MegatronPlan, ReadsTheArgumentsOfALog) {
  const ImportedPlan imported = import_text(kLog);
  const ModelSpec& model = imported.scenario.model;
  EXPECT_EQ(model, load_model("llama3-8b"));
  const Plan& plan = imported.scenario.plan;
  EXPECT_EQ(plan.dp, 4);
  EXPECT_EQ(plan.recompute, RecomputePolicy::Selective);
  EXPECT_TRUE(plan.overlap.grad_reduce);
  EXPECT_FALSE(plan.overlap.param_gather);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_THAT(imported.unread, IsEmpty());
}

TEST(MegatronPlan, NamesWhatIsWrong) {
  const std::string head = "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 ";
  const auto places = [&](const std::string& rest) {
    return problems_of([&] { import_text(head + rest); });
  };
  EXPECT_THAT(places("--hidden-size big --seq-length 128"),
              ElementsAre("--hidden-size", "--num-attention-heads"));
  EXPECT_THAT(places("--hidden-size 256 --num-attention-heads 4"), ElementsAre("--seq-length"));
  EXPECT_THAT(places("--hidden-size 256 --num-attention-heads 4 --seq-length 128 "
                     "--tensor-model-parallel-size 3"),
              Contains("the number of processes"));
  // Rules of plans: 4 heads on 8 ranks.
  EXPECT_THAT(places("--hidden-size 256 --num-attention-heads 4 --seq-length 128 "
                     "--tensor-model-parallel-size 8"),
              Contains(HasSubstr("tp")));
  const auto refusal = [](const std::string& text) {
    return thrown_by([&] { find_launch_arguments(text + " --num-layers 3", "launch.sh"); });
  };
  EXPECT_THAT(refusal("A='x\nB=2"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("A=1\nB=(1 2"), HasSubstr("')'"));
  std::string doubling = "A=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  EXPECT_THAT(refusal(doubling), HasSubstr("MiB"));
}

TEST(MegatronPlan, OtherTextsLaunchNothing) {
  for (const char* text : {"", "echo --num-layers", "python train.py --num-layers 3",
                           "step 1 loss 2.0\nstep 2 loss 1.9\n"})
    EXPECT_FALSE(find_launch_arguments(text, "text")) << text;
}

// Against Python's own evaluation.
TEST(MegatronPlan, LayerExpressionsAreThoseOfPython) {
  const auto shown = [](const std::string& text, std::int64_t layers) {
    const auto flags = layer_flags(text, layers);
    std::string digits;
    if (!flags) return std::string("none");
    for (const bool flag : *flags) digits += flag ? '1' : '0';
    return digits;
  };
  EXPECT_EQ(shown("([0]*3+[1]*5)", 8), "00011111");
  EXPECT_EQ(shown("[0, 1]*2 + [1]", 5), "01011");
  EXPECT_EQ(shown("([0]+[1]*2)*2", 6), "011011");
  EXPECT_EQ(shown("0 1 1", 3), "011");
  EXPECT_EQ(shown("[1]*3", 4), "none");
  for (const char* wrong : {"[1]*", "([1]", "[a]", "1+[1]", "[1]*99999999999", "[]*3"})
    EXPECT_EQ(shown(wrong, 3), "none") << wrong;
}

}  // namespace
}  // namespace shardwright::planner
