// The kinds of layers in launches of Megatron-LM: hybrid models come back as what they are, and
// models that are not simulated are refused.
#include "planner/import/megatron_layers.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/spec/model_library.hpp"
#include "planner/import/nemo_arguments.hpp"
#include "tests/planner/import/imported_text.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string launch_of(const std::string& arguments,
                      const std::string& program = "pretrain_mamba.py") {
  return fmt::format(
      "torchrun --nproc_per_node 8 --nnodes 4 {} --hidden-size 4096 --num-attention-heads 32 "
      "--seq-length 4096 --position-embedding-type none --micro-batch-size 1 --global-batch-size "
      "256 --vocab-size 131072 --bf16 {}",
      program, arguments);
}

constexpr const char* kNemotron = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-";

// Nemotron-H 8B's published sizes (arXiv 2504.03624, table 1) as arguments.
TEST(MegatronLayers, AHybridIsTheModelOfItsPattern) {
  const std::string arguments = fmt::format(
      "--is-hybrid-model --hybrid-override-pattern {} --spec megatron.core.models.mamba."
      "mamba_layer_specs mamba_stack_spec --mamba-num-heads 128 --mamba-head-dim 64 "
      "--mamba-num-groups 8 --mamba-state-dim 128 --num-layers 52 --ffn-hidden-size 21504 "
      "--group-query-attention --num-query-groups 8 --kv-channels 128 --squared-relu "
      "--normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights "
      "--hidden-dropout 0 --max-position-embeddings 8192",
      kNemotron);
  const ImportedPlan imported = import_text(launch_of(arguments));
  EXPECT_EQ(imported.scenario.model, load_model("nemotron-h-8b"));
  EXPECT_THAT(imported.unread, IsEmpty());
}

// The number of layers follows from the pattern, and its chunks are the pipeline's.
TEST(MegatronLayers, APatternStatesLayersAndChunks) {
  const Scenario scenario =
      import_text(launch_of("--hybrid-layer-pattern 'M-M-|M*-|M-M*|-M-' --pipeline-model-parallel-"
                            "size 2"))
          .scenario;
  EXPECT_EQ(scenario.model.layers, 14);
  EXPECT_EQ(scenario.model.layer_pattern, "M-M-M*-M-M*-M-");
  EXPECT_EQ(scenario.plan.vpp, 2);
  EXPECT_THAT(scenario.plan.stage_layers, ElementsAre(4, 3, 4, 3));
  const Scenario predicting =
      import_text(launch_of("--hybrid-layer-pattern 'ME*E/*E' --num-experts 8")).scenario;
  EXPECT_EQ(predicting.model.mtp_layers, 1);
  EXPECT_EQ(predicting.model.layers, 4);
}

// Against Megatron-LM's own function; the last one is the published hybrid of 8B parameters
// (arXiv 2406.07887).
TEST(MegatronLayers, RatiosSpreadLayersAsMegatronDoes) {
  const auto pattern = [](const std::string& arguments) {
    const ModelSpec model = import_text(launch_of(arguments)).scenario.model;
    std::string letters;
    while (static_cast<std::int64_t>(letters.size()) < model.layers) letters += model.layer_pattern;
    return letters;
  };
  EXPECT_EQ(pattern("--num-layers 8"), "MMMMMMMM");
  EXPECT_EQ(pattern("--num-layers 10 --hybrid-attention-ratio 0.2"), "MMM*MM*MMM");
  EXPECT_EQ(pattern("--num-layers 56 --hybrid-attention-ratio 0.08 --hybrid-mlp-ratio 0.5"),
            "M-M-M--M-M*-M-M-M-M--M*-M-M-M-M-M*--M-M-M-M-M*-M--M-M-M-");
}

TEST(MegatronLayers, LinearAttentionTakesThePlaceOfAttention) {
  const auto model = [](const std::string& arguments) {
    return import_text(launch_of("--num-layers 8 --experimental-attention-variant "
                                 "gated_delta_net --linear-num-value-heads 64 " +
                                     arguments,
                                 "pretrain_gpt.py"))
        .scenario.model;
  };
  const ModelSpec next = model("--linear-attention-freq 4 --attention-output-gate");
  EXPECT_EQ(next.layer_pattern, "LLLA");
  EXPECT_TRUE(next.attention.output_gate);
  ASSERT_TRUE(next.linear_attention);
  EXPECT_EQ(next.linear_attention->kind, LinearAttentionKind::GatedDeltaNet);
  EXPECT_EQ(next.linear_attention->heads, 64);
  EXPECT_EQ(next.linear_attention->key_heads, 16);
  EXPECT_EQ(model("--linear-attention-freq '([1]*7+[0]*1)'").layer_pattern, "LLLLLLLA");
  EXPECT_EQ(model("--linear-attention-freq '[0]*8'").layer_pattern, "");
}

// As DeepSeek-V3's recipes state it: the norms of queries and keys are those of the bottlenecks.
TEST(MegatronLayers, LatentAttentionHasNormsInItsBottlenecks) {
  const AttentionSpec attention =
      import_text(launch_of("--num-layers 4 --multi-latent-attention --qk-layernorm --q-lora-rank "
                            "1536 --kv-lora-rank 512 --qk-head-dim 96",
                            "pretrain_gpt.py"))
          .scenario.model.attention;
  EXPECT_EQ(attention.kind, AttentionKind::MultiHeadLatent);
  EXPECT_EQ(attention.head_dim, 96 + 64);
  EXPECT_FALSE(attention.qk_norm);
}

// A configuration is a script of the same arguments.
TEST(MegatronLayers, YamlOfAHybridIsItsScript) {
  std::optional<LaunchArguments> launch = find_nemo_arguments(
      "model: {num_layers: 4, hidden_size: 4096, num_attention_heads: 32, seq_length: 4096, "
      "ffn_hidden_size: 16384, hybrid_override_pattern: 'M-M*', mamba_num_heads: 64, "
      "position_embedding_type: none, hidden_dropout: 0.0}",
      "run");
  ASSERT_TRUE(launch);
  launch->ranks = 8;
  const ModelSpec model =
      imported_plan(*launch, load_cluster("dgx-h100"), load_stack("megatron-core"), std::nullopt)
          .scenario.model;
  EXPECT_EQ(model.layer_pattern, "M-M*");
  EXPECT_EQ(model.linear_attention->heads, 64);
}

struct Refused {
  const char *program, *arguments, *place;
};

constexpr Refused kRefused[] = {
    {"pretrain_mamba.py", "--num-layers 32 --hybrid-override-pattern M-M*M-",
     "--hybrid-override-pattern"},
    {"pretrain_mamba.py", "--num-layers 4 --hybrid-override-pattern M-X*",
     "--hybrid-override-pattern"},
    {"pretrain_mamba.py", "--num-layers 4 --hybrid-override-pattern M-G*",
     "--hybrid-override-pattern"},
    {"pretrain_mamba.py", "--num-layers 4 --hybrid-override-pattern MEM*",
     "--hybrid-override-pattern"},
    {"pretrain_mamba.py", "--num-layers 4 --hybrid-override-pattern M-M* --num-experts 8",
     "--hybrid-override-pattern"},
    {"pretrain_mamba.py", "--num-layers 4 --hybrid-override-pattern M-M+",
     "--hybrid-override-pattern"},
    {"pretrain_mamba.py", "--hybrid-layer-pattern M-M*/MM", "--hybrid-layer-pattern"},
    {"pretrain_mamba.py", "--hybrid-layer-pattern M-M* --mtp-num-layers 1", "--mtp-num-layers"},
    {"pretrain_mamba.py", "--hybrid-layer-pattern 'M-M|M|*' --pipeline-model-parallel-size 2",
     "--hybrid-layer-pattern"},
    {"pretrain_mamba.py", "--num-layers 4 --hybrid-attention-ratio 0.7 --hybrid-mlp-ratio 0.6",
     "--hybrid-attention-ratio"},
    {"pretrain_t5.py", "--num-layers 4", "the program"},
    {"pretrain_bert.py", "--num-layers 4", "the program"},
    {"tools/pretrain_vision_dino.py", "--num-layers 4", "the program"},
    {"examples/detxoify_lm/generate_samples_gpt.py", "--num-layers 4", "the program"},
    {"tools/run_text_generation_server.py", "--num-layers 4", "the program"},
    {"tasks/main.py", "--num-layers 4 --task LAMBADA", "--task"},
    {"run.py", "--num-layers 4 --disable-vision-class-token", "--disable-vision-class-token"},
    {"run.py", "--num-layers 6 --pipeline-model-parallel-size 4", "--pipeline-model-parallel-size"},
    {"run.py", "--encoder-num-layers 4 --decoder-num-layers 4", "--decoder-num-layers"},
    {"run.py", "--num-layers 4 --encoder-num-layers 6", "--encoder-num-layers"},
    {"run.py", "--num-layers 4 --tokenizer-type BertWordPieceLowerCase", "--tokenizer-type"},
    {"run.py", "--num-layers 4 --heterogeneous-layers-config-path layers.json",
     "--heterogeneous-layers-config-path"},
    {"run.py", "--num-layers 4 --retro-add-retriever", "--retro-add-retriever"},
    {"run.py", "--num-layers 4 --num-experts 8 --moe-latent-size 512", "--moe-latent-size"},
    {"run.py", "--num-layers 4 --experimental-attention-variant dsa",
     "--experimental-attention-variant"},
    {"run.py", "--num-layers 4 --linear-attention-freq 2", "--linear-attention-freq"},
    {"run.py",
     "--num-layers 4 --experimental-attention-variant gdn --linear-attention-freq '[1]*3'",
     "--linear-attention-freq"},
};

TEST(MegatronLayers, RefusesModelsThatAreNotSimulated) {
  for (const Refused& each : kRefused)
    EXPECT_THAT(problems_of([&] { import_text(launch_of(each.arguments, each.program)); }),
                ElementsAre(each.place))
        << each.program << ' ' << each.arguments;
}

// What the logs of a GPT have of other models says nothing.
TEST(MegatronLayers, LogsOfOtherModelsMayNameTheArguments) {
  const std::string log =
      "--------------- arguments ---------------\n"
      "  hidden_size ............. 1024\n  num_attention_heads ..... 16\n"
      "  num_layers .............. 24\n  encoder_num_layers ...... 24\n"
      "  decoder_num_layers ...... None\n  seq_length .............. 1024\n"
      "  is_hybrid_model ......... False\n  hybrid_attention_ratio .. 0.0\n"
      "  hybrid_mlp_ratio ........ 0.0\n  retro_add_retriever ..... False\n"
      "  mamba_state_dim ......... 128\n  linear_num_key_heads .... 16\n"
      "  world_size .............. 8\n------------ end of arguments ------------\n";
  EXPECT_EQ(import_text(log).scenario.model.layer_pattern, "");
  std::string hybrid = log;
  hybrid.replace(hybrid.find("model ......... False"), 21, "model ......... True");
  EXPECT_EQ(import_text(hybrid).scenario.model.layer_pattern, "M");
}

// Megatron-DeepSpeed has words and defaults of its own for experts, norms, grouped queries and
// sequences over ranks.
TEST(MegatronLayers, ReadsArgumentsOfMegatronDeepSpeed) {
  const auto imported = [](const std::string& arguments) {
    return import_text(
        launch_of("--num-layers 24 --deepspeed --zero-stage 1 " + arguments, "pretrain_gpt.py"));
  };
  const ImportedPlan experts =
      imported("--num-experts 128 --moe-expert-parallel-size 16 --mlp-type standard");
  ASSERT_TRUE(experts.scenario.model.moe);
  EXPECT_EQ(experts.scenario.plan.ep, 16);
  EXPECT_EQ(experts.scenario.model.moe->top_k, 1);
  EXPECT_EQ(experts.scenario.model.moe->capacity_factor, 1.0);
  EXPECT_FALSE(experts.scenario.model.is_sparse(0));
  EXPECT_TRUE(experts.scenario.model.is_sparse(1));
  EXPECT_THAT(experts.unread, IsEmpty());
  EXPECT_FALSE(imported("--num-experts 1 --topk 2").scenario.model.moe);
  EXPECT_THAT(problems_of([&] { imported("--num-experts 8 --mlp-type residual"); }),
              ElementsAre("--mlp-type"));
  const ImportedPlan llama = imported(
      "--normalization rmsnorm --swiglu --num-key-value-heads 8 --ds-sequence-parallel-size 4");
  EXPECT_EQ(llama.scenario.model.norm, NormKind::RmsNorm);
  EXPECT_EQ(llama.scenario.model.attention.kv_heads, 8);
  EXPECT_EQ(llama.scenario.plan.cp, 4);
  EXPECT_EQ(llama.scenario.plan.dp, 8);
  EXPECT_EQ(llama.scenario.plan.context_parallel, ContextParallelKind::Ulysses);
  EXPECT_THAT(llama.unread, IsEmpty());
}

// Each stage divides its layers among its chunks.
TEST(MegatronLayers, StagesOfUnequalLayersHaveChunksOfUnequalLayers) {
  const auto imported = [](const std::string& arguments) {
    return import_text(launch_of("--num-layers 32 --pipeline-model-parallel-size 4 "
                                 "--decoder-first-pipeline-num-layers 4 " +
                                     arguments,
                                 "pretrain_gpt.py"))
        .scenario.plan;
  };
  const Plan plan =
      imported("--num-virtual-stages-per-pipeline-rank 2 --decoder-last-pipeline-num-layers 4");
  EXPECT_EQ(plan.vpp, 2);
  EXPECT_THAT(plan.stage_layers, ElementsAre(2, 6, 6, 2, 2, 6, 6, 2));
  EXPECT_THAT(problems_of([&] {
                imported(
                    "--num-virtual-stages-per-pipeline-rank 3 "
                    "--decoder-last-pipeline-num-layers 4");
              }),
              ElementsAre("--decoder-first-pipeline-num-layers"));
  EXPECT_THAT(problems_of([] {
                import_text(
                    launch_of("--num-layers 32 --pipeline-model-parallel-size 4 "
                              "--num-layers-per-virtual-pipeline-stage 3",
                              "pretrain_gpt.py"));
              }),
              ElementsAre("--num-layers-per-virtual-pipeline-stage"));
}

}  // namespace
}  // namespace shardwright::planner
