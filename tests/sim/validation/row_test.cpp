// Reading of published measurements and what becomes of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/flops_convention.hpp"
#include "sim/validation/row_cluster.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/row_stack.hpp"
#include "sim/validation/row_words.hpp"
#include "sim/validation/training_row.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::sim {
namespace {

const std::string kShipped = SHARDWRIGHT_SOURCE_DIR "/tests/ground_truth/training.jsonl";

TrainingRow shipped_row(const std::string& id) {
  return find_training_row(kShipped, id);
}

class RowFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::filesystem::path path = scratch_path("rows.jsonl");
    std::ofstream(path) << text;
    return path.string();
  }
};

constexpr const char* kGoodRow =
    R"({"id":"a","source":{},"model":{"name":"m"},"cluster":{"gpu":"H100","gpus":8},"plan":{},"measured":{},"more":1})";

TEST_F(RowFile, ProblemsAreTheReasonOfTheirRowAlone) {
  const std::string bad =
      R"({"id":"b","source":{},"model":{"name":"m","layers":"32"},"cluster":{"gpu":"H100","gpus":0},"plan":{"tp":1.5},"measured":{"oom":1},"target":{"metric":"speed","value":2}})";
  const auto rows = read_training_rows(write(std::string(kGoodRow) + "\n\n" + bad + "\n[1]\n"));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].unreadable, "");
  for (const char* place : {"line 3/model/layers", "line 3/cluster/gpus", "line 3/plan/tp",
                            "line 3/measured/oom", "line 3/target/metric"})
    EXPECT_NE(rows[1].unreadable.find(place), std::string::npos) << place;
  EXPECT_NE(rows[2].unreadable.find("line 4: found an array of 1, expected an object"),
            std::string::npos);
  EXPECT_EQ(scenario_of(rows[1]).reason, rows[1].unreadable);
}

TEST_F(RowFile, TextThatIsNoJsonRefusesTheFile) {
  const std::string file = write(std::string(kGoodRow) + "\nnot json\n");
  try {
    read_training_rows(file);
    FAIL() << "read a broken file";
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), file);
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems().front().where, "line 2");
  }
}

TEST_F(RowFile, FileWithoutAnyReadableRowIsRefused) {
  EXPECT_THROW(read_training_rows(write("{\"id\": 3}\n{\"id\": 4}\n")), InputError);
  EXPECT_TRUE(read_training_rows(write("\n")).empty());
}

// Whatever part of a row is null, the rows around it are used and it says what is missing.
TEST_F(RowFile, NullPartsConcernTheirRowAlone) {
  std::ifstream shipped(kShipped);
  std::string line;
  std::getline(shipped, line);
  const std::vector<std::string> parts = {"/cluster/gpu", "/cluster/gpus", "/model/name",
                                          "/plan",        "/measured",     "/source",
                                          "/cluster",     "/model",        "/id"};
  std::string text;
  for (const std::string& part : parts) {
    auto row = nlohmann::json::parse(line);
    row["id"] = part;
    row["target"] = nullptr;
    row[nlohmann::json::json_pointer(part)] = nullptr;
    text += row.dump() + "\n";
  }
  const auto rows = read_training_rows(write(line + "\n" + text));
  ASSERT_EQ(rows.size(), parts.size() + 1);
  for (const TrainingRow& row : rows) {
    const RowScenario result = scenario_of(row);
    EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << row.id;
  }
  const auto reason = [&](std::size_t part) { return scenario_of(rows[part + 1]).reason; };
  EXPECT_NE(reason(0).find("accelerator"), std::string::npos);
  EXPECT_EQ(reason(1), "");  // the product of the degrees
  EXPECT_EQ(rows[2].cluster.gpus, rows[0].cluster.gpus);
  EXPECT_EQ(reason(2), "");
  EXPECT_NE(reason(3).find("global batch"), std::string::npos);
  EXPECT_EQ(reason(4), "");
  EXPECT_EQ(reason(5), "");
  EXPECT_NE(reason(6).find("accelerator"), std::string::npos);
  EXPECT_NE(reason(7).find("layers"), std::string::npos);
  EXPECT_EQ(rows.back().id, "line 10");
}

TEST_F(RowFile, AFileThatIsNamedTwiceIsReadOnce) {
  const std::string file = write(std::string(kGoodRow) + "\n");
  EXPECT_EQ(read_training_rows(std::vector<std::string>{file, file}).size(), 1U);
}

TEST_F(RowFile, RecomputationMayBeATruthValue) {
  const auto row_with = [&](const std::string& recompute) {
    return read_training_rows(
               write(R"({"id":"a","cluster":{"gpu":"H100","gpus":8},"plan":{"recompute":)" +
                     recompute + "}}"))
        .front()
        .plan.recompute;
  };
  EXPECT_EQ(row_with("true"), "full");
  EXPECT_EQ(row_with("false"), "none");
  EXPECT_EQ(row_with("null"), "");
}

TEST_F(RowFile, TargetComesFromTheFiguresWhereNoneIsNamed) {
  const auto row_with = [&](const std::string& measured) {
    const std::string row = R"({"id":"a","cluster":{"gpu":"H100","gpus":8},"measured":)";
    return read_training_rows(write(row + measured + "}")).front();
  };
  EXPECT_EQ(row_with(R"({"mfu":0.4,"iteration_s":2})").target, (TargetRow{"step_s", 2.0}));
  EXPECT_EQ(row_with(R"({"mfu":0.4})").target, (TargetRow{"mfu", 0.4}));
  EXPECT_EQ(row_with(R"({"oom":true,"mfu":0.4})").target, std::nullopt);
}

TEST_F(RowFile, EndlessLineIsRefusedBeforeItIsRead) {
  const std::string file = write(std::string(kGoodRow) + "\n" + std::string(3 << 20, 'x'));
  try {
    read_training_rows(file);
    FAIL() << "read an endless line";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().where, "line 2");
    EXPECT_EQ(error.problems().front().found, "more than 1048576 bytes");
  }
}

TEST_F(RowFile, GarbageEndsTheReadingAfterAHundredLines) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "garbage\n";
  try {
    read_training_rows(write(text));
    FAIL() << "read garbage";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 100U);
  }
}

// Products of such numbers do not fit in 64 bits; some wrap to zero.
TEST_F(RowFile, NumbersBeyondAnySizeAreProblems) {
  const std::string row =
      R"({"id":"a","source":{},"model":{"name":"m","hidden":1000000000000,"moe":{"experts":8,"top_k":2,"expert_ffn":1000000000000,"shared_experts":1000000000000}},"cluster":{"gpu":"H100","gpus":8},"plan":{"tp":4194304,"pp":2097152,"cp":2097152,"micro_batch":1000000000000},"measured":{}})";
  const std::string file = write(row + "\n");
  try {
    read_training_rows(file);
    FAIL() << "read sizes that no training has";
  } catch (const InputError& error) {
    const std::string found = error.problems().front().found;
    for (const char* place :
         {"line 1/model/hidden", "line 1/model/moe/expert_ffn", "line 1/model/moe/shared_experts",
          "line 1/plan/tp", "line 1/plan/pp", "line 1/plan/cp", "line 1/plan/micro_batch"})
      EXPECT_NE(found.find(place), std::string::npos) << place << " in " << found;
  }
}

TEST(TrainingRow, NullMeansNotSaid) {
  const TrainingRow row = shipped_row("sc21-t1-1.7b");
  EXPECT_FALSE(row.measured.iteration_s.has_value());
  EXPECT_EQ(row.plan.tp, 1);
  EXPECT_EQ(row.target->metric, "tflops_per_gpu");
  EXPECT_DOUBLE_EQ(row.target->value, 137.0);
}

TEST(TrainingRow, MissingIdSuggestsTheNearest) {
  try {
    shipped_row("sc21-t1-1.7c");
    FAIL() << "found a row that is not there";
  } catch (const InputError& error) {
    EXPECT_NE(error.problems().front().expected.find("sc21-t1-1.7b"), std::string::npos);
  }
}

TEST(RowScenario, EveryShippedRowIsSimulatedOrSaysWhyNot) {
  std::size_t simulated = 0;
  const auto rows = read_training_rows(kShipped);
  for (const TrainingRow& row : rows) {
    const RowScenario result = scenario_of(row);
    EXPECT_NE(result.scenario.has_value(), !result.reason.empty()) << row.id;
    if (!result.scenario) continue;
    ++simulated;
    const Scenario& scenario = *result.scenario;
    EXPECT_EQ(scenario.plan.world_size(), row.cluster.gpus) << row.id;
    EXPECT_TRUE(broken_rules(scenario.model, &scenario.cluster, scenario.plan).empty()) << row.id;
  }
  EXPECT_GE(simulated, rows.size() * 9 / 10);
}

TEST(RowScenario, TakesLatentAttentionFromTheShippedModel) {
  const auto result =
      scenario_of(shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef"));
  ASSERT_TRUE(result.scenario) << result.reason;
  const ModelSpec& model = result.scenario->model;
  EXPECT_EQ(model.attention.kind, AttentionKind::MultiHeadLatent);
  EXPECT_EQ(model.attention.kv_lora_rank, 512);
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.moe->first_dense_layers, 1);
  EXPECT_TRUE(model.moe->balanced_routing);
}

TEST(RowScenario, RefusesWhatItCannotExpress) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.precision = "mxfp4";
  EXPECT_NE(scenario_of(row).reason.find("mxfp4"), std::string::npos);
  row = shipped_row("sc21-t1-1.7b");
  row.cluster.gpu = "Abacus 3000";
  EXPECT_NE(scenario_of(row).reason.find("Abacus 3000"), std::string::npos);
  row = shipped_row("sc21-t1-1.7b");
  row.plan.dp = 31;
  EXPECT_FALSE(scenario_of(row).scenario.has_value());
}

TEST(RowScenario, SaysWhatItFilledIn) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.zero_stage.reset();
  row.plan.micro_batch.reset();
  row.plan.recompute.clear();
  const auto filled = scenario_of(row).filled_in;
  const auto says_of = [&](const std::string& key) {
    return std::any_of(filled.begin(), filled.end(), [&](const std::string& each) {
      return each.find(key) != std::string::npos;
    });
  };
  EXPECT_TRUE(says_of("zero_stage"));
  EXPECT_TRUE(says_of("micro_batch"));
  EXPECT_TRUE(says_of("recompute"));
}

bool any_says(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(RowScenario, ADegreeThatIsLeftOpenFollowsFromTheOthers) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  const std::int64_t tp = *row.plan.tp;
  row.plan.tp.reset();
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.tp, tp);
  EXPECT_TRUE(any_says(result.filled_in, "tp: 1, from the other degrees"));
}

TEST(RowScenario, StacksThatShardAreNotCutUnlessTheRowSaysSo) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.stack = "XTuner";
  row.plan.tp.reset();
  row.plan.pp.reset();
  row.plan.zero_stage.reset();
  row.plan.global_batch.reset();
  row.plan.micro_batch = 2;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  const Plan& plan = result.scenario->plan;
  EXPECT_EQ(plan.tp * plan.pp, 1);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.global_batch, 2 * plan.dp);
  EXPECT_EQ(result.scenario->stack.name, "generic-pytorch");
}

TEST(RowScenario, SaysWhichScheduleItTookForAnUnknownOne) {
  TrainingRow row = shipped_row("sc21-t1-145.6b");
  ASSERT_GT(*row.plan.pp, 1);
  row.plan.virtual_pp = 1;
  row.plan.schedule = "hanayo";
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_TRUE(any_says(result.filled_in, "schedule: 1f1b for \"hanayo\""));
  row.plan.schedule = "1F1B";
  EXPECT_FALSE(any_says(scenario_of(row).filled_in, "schedule"));
}

TEST(RowScenario, UnknownRecomputationIsLeftOpen) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.recompute = "some of it";
  EXPECT_TRUE(any_says(scenario_of(row).filled_in, "for \"some of it\": the fastest that fits"));
}

TEST(RowScenario, SizesMayComeFromTheModelsName) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model = ModelRow{};
  row.model.name = "Llama-3 8B";
  row.model.seq_len = 4096;
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->model.layers, 32);
  EXPECT_EQ(result.scenario->model.mlp.ffn_hidden, 14336);
  EXPECT_EQ(result.scenario->model.vocab, 128256);
  EXPECT_TRUE(any_says(result.filled_in, "as the shipped llama3-8b"));
}

TEST(RowScenario, ModelsAreKnownByTheNamesOfTheirWeights) {
  for (const auto& [name, layers, hidden] : {std::tuple{"meta-llama/Meta-Llama-3-8B", 32, 4096},
                                             {"Llama-2-7b-hf", 32, 4096},
                                             {"meta-llama/Llama-2-70b-chat-hf", 80, 8192}}) {
    TrainingRow row = shipped_row("sc21-t1-1.7b");
    row.model = ModelRow{};
    row.model.name = name;
    row.model.seq_len = 4096;
    const RowScenario result = scenario_of(row);
    ASSERT_TRUE(result.scenario) << name << ": " << result.reason;
    EXPECT_EQ(result.scenario->model.layers, layers) << name;
    EXPECT_EQ(result.scenario->model.hidden, hidden) << name;
  }
}

// 4 h for a GPT (arXiv 2005.14165, table 2.1), 11008 for LLaMA-7B (arXiv 2302.13971).
TEST(RowScenario, WidthsFollowFromTheHiddenSize) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.model.ffn_hidden.reset();
  EXPECT_EQ(scenario_of(row).scenario->model.mlp.ffn_hidden, 4 * *row.model.hidden);
  row.model.name = "a LLaMA";
  row.model.gated_mlp = true;
  row.model.hidden = 4096;
  row.model.heads = row.model.kv_heads = 32;
  row.model.head_dim = 128;
  EXPECT_EQ(scenario_of(row).scenario->model.mlp.ffn_hidden, 11008);
}

TEST(RowScenario, ReplicasThatTakeAllAcceleratorsLeaveNoCut) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.tp.reset();
  row.plan.pp.reset();
  ASSERT_EQ(row.plan.dp, row.cluster.gpus);
  const RowScenario result = scenario_of(row);
  ASSERT_TRUE(result.scenario) << result.reason;
  EXPECT_EQ(result.scenario->plan.tp * result.scenario->plan.pp, 1);
}

TEST(RowScenario, MixedPrecisionIsWhatTheAcceleratorHas) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.plan.precision = "amp";
  EXPECT_EQ(scenario_of(row).scenario->plan.precision, Precision::Bf16);
  row.cluster.gpu = "V100-SXM2-32GB";
  row.plan.precision = "mixed";
  EXPECT_EQ(scenario_of(row).scenario->plan.precision, Precision::Fp16);
}

// Dropout belongs to the trainer: the same shape drops in Megatron-LM and not in PyTorch's
// trainers. Llamas drop nowhere.
TEST(RowScenario, DropoutIsThatOfTheTrainer) {
  TrainingRow row = shipped_row("zerobubble-14p6B-g16-m48-1f1b");
  const RowScenario megatron = scenario_of(row);
  ASSERT_TRUE(megatron.scenario) << megatron.reason;
  EXPECT_DOUBLE_EQ(megatron.scenario->model.dropout, 0.1);
  EXPECT_TRUE(any_says(megatron.filled_in, "dropout: 0.1, the usual one of megatron-lm-2023"));
  row.model.gated_mlp = true;
  EXPECT_DOUBLE_EQ(scenario_of(row).scenario->model.dropout, 0.0);
  const RowScenario foundry =
      scenario_of(shipped_row("foundry-mpt7b-h10080gb-g8-s4096-mb16-bf16-ac-full"));
  ASSERT_TRUE(foundry.scenario) << foundry.reason;
  EXPECT_DOUBLE_EQ(foundry.scenario->model.dropout, 0.0);
}

// FSDP2 gathers once a step where a pipeline runs several microbatches.
TEST(RowScenario, FsdpKeepsParametersGatheredInAPipeline) {
  TrainingRow row = shipped_row("titan-70b-g256-2d");
  ASSERT_EQ(row.plan.pp, 1);
  EXPECT_EQ(scenario_of(row).scenario->plan.zero_stage, 3);
  row.plan.pp = 2;
  row.plan.dp = *row.plan.dp / 2;
  row.plan.micro_batch = 1;
  const RowScenario piped = scenario_of(row);
  ASSERT_TRUE(piped.scenario) << piped.reason;
  EXPECT_EQ(piped.scenario->plan.zero_stage, 1);
  EXPECT_TRUE(any_says(piped.filled_in, "zero_stage: 1"));
}

TEST(RowStack, LossAndOptimizerFollowYearModelAndDevice) {
  TrainingRow row = shipped_row("titan-8b-h200-g64");
  EXPECT_TRUE(scenario_of(row).scenario->stack.fused_loss);
  row.source_year = 2024;
  EXPECT_FALSE(scenario_of(row).scenario->stack.fused_loss);
  row = shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef");
  EXPECT_EQ(scenario_of(row).scenario->stack.optimizer_state_bytes, Bytes(8));
  row.stack = "nemo-te";
  EXPECT_EQ(scenario_of(row).scenario->stack.optimizer_state_bytes, Bytes(4));
  const auto weight_bytes = [](const char* id) {
    return scenario_of(shipped_row(id)).scenario->stack.fp8_weight_bytes;
  };
  EXPECT_EQ(weight_bytes("mlperf-v5.0-llama405b-gb200-cw-1024"), Bytes(1));
  EXPECT_EQ(weight_bytes("mlperf-v5.0-llama405b-h100-512"), Bytes(2));
}

TEST(RowStack, GraphsFollowNotesAndSubmissions) {
  TrainingRow row = shipped_row("mlperf-v5.0-llama405b-h100-512");
  EXPECT_TRUE(scenario_of(row).scenario->stack.cuda_graphs);
  row.source_title = "Some other source";
  const auto graphs = [&row](const std::string& notes) {
    row.notes = notes;
    const auto made = scenario_of(row);
    return std::pair(made.scenario->stack.cuda_graphs, made.scenario->stack.graphs_to_dispatch);
  };
  EXPECT_EQ(graphs(""), std::pair(false, false));
  EXPECT_EQ(graphs("CUDA graphs transformer_engine scope ['attn', 'moe_router']"),
            std::pair(false, true));
  EXPECT_EQ(graphs("CUDA graphs full_iteration scope []"), std::pair(true, false));
}

// Recipes that force balanced routing on Hopper exchange tokens once per node.
TEST(RowStack, TokenExchangeFollowsTheRecipesOfLatentAttention) {
  TrainingRow row = shipped_row("simumax-b200-deepseekv2-tp1-ep8-pp1-dp8-l4-mbc4-cef");
  row.stack = "nemo-te";
  row.cluster.gpu = "H100-SXM5-80GB";
  const auto once = [&row](const std::string& notes) {
    row.notes = notes;
    return scenario_of(row).scenario->stack.sends_tokens_once_per_node;
  };
  EXPECT_TRUE(once("token distribution force-balanced, dropless"));
  EXPECT_FALSE(once("learned router"));
  EXPECT_FALSE(once("MoE token-drop run"));
  row.cluster.gpu = "B200-SXM-180GB";
  EXPECT_FALSE(once("token distribution force-balanced, dropless"));
}

TEST(RowWords, PrecisionsInTheirSpellings) {
  for (const char* text : {"BF16", "bf16", "bfloat16", "bf16-mixed", "BF16 (fp32 master)"})
    EXPECT_EQ(precision_in(text), Precision::Bf16) << text;
  for (const char* text : {"fp8", "FP8-MX", "mxfp8", "fp8-mx", "float8", "fp8 (bf16 activations)"})
    EXPECT_EQ(precision_in(text), Precision::Fp8) << text;
  for (const char* text : {"nvfp4", "NVFP4", "fp4"})
    EXPECT_EQ(precision_in(text), Precision::Nvfp4) << text;
  for (const char* text : {"FP16", "fp16", "float16", "half", "fp16 with fp32 master"})
    EXPECT_EQ(precision_in(text), Precision::Fp16) << text;
  EXPECT_EQ(precision_in("FP32"), Precision::Fp32);
  EXPECT_EQ(precision_in("tf32"), Precision::Tf32);
  for (const char* text : {"mxfp4", "int8", "posit"})
    EXPECT_EQ(precision_in(text), std::nullopt) << text;
}

TEST(RowWords, RecomputationInItsSpellings) {
  using Words = RecomputeWords;
  for (const char* text : {"none", "None", "no", "off", "no recompute"})
    EXPECT_EQ(recompute_in(text), Words{}) << text;
  for (const char* text : {"selective", "Selective (core_attn)"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Selective})) << text;
  for (const char* text :
       {"full", "uniform", "uniform, 1 layer", "true", "activation checkpointing"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Full})) << text;
  for (const char* text : {"block 4", "block (4 layers)", "full on 4 layers"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Full, 4})) << text;
  EXPECT_EQ(recompute_in("block"), (Words{RecomputePolicy::Full}));
  for (const char* text : {"attention only", "SAC", "minimal"})
    EXPECT_EQ(recompute_in(text), (Words{RecomputePolicy::Selective})) << text;
  EXPECT_EQ(recompute_in("every 2 layers"), (Words{RecomputePolicy::Full, 0, 2}));
  EXPECT_EQ(recompute_in("recompute mlp"), std::nullopt);
  EXPECT_EQ(recompute_in("some of it"), std::nullopt);
}

TEST(RowWords, SchedulesInTheirSpellings) {
  EXPECT_EQ(schedule_in("1F1B", 1), ScheduleKind::OneFOneB);
  EXPECT_EQ(schedule_in("PipeDream-Flush", 1), ScheduleKind::OneFOneB);
  EXPECT_EQ(schedule_in("Interleaved 1F1B", 4), ScheduleKind::Interleaved);
  EXPECT_EQ(schedule_in("GPipe", 1), ScheduleKind::GPipe);
  EXPECT_EQ(schedule_in("zero-bubble zb-1p", 1), ScheduleKind::ZbH1);
  EXPECT_EQ(schedule_in("ZB-H2", 1), ScheduleKind::ZbH2);
  EXPECT_EQ(schedule_in("zero bubble (ZB-V)", 2), ScheduleKind::ZbV);
  EXPECT_EQ(schedule_in("DualPipe", 1), ScheduleKind::DualPipe);
  for (const char* text : {"", "none", "zero-bubble", "DualPipeV", "breadth-first"})
    EXPECT_EQ(schedule_in(text, 1), std::nullopt) << text;
}

// The families as the frameworks' own documentation describes them.
TEST(RowStack, UnknownFrameworksFallToTheirFamily) {
  const auto stack_for = [](const std::string& name) {
    TrainingRow row;
    row.stack = name;
    std::vector<std::string> filled_in;
    const std::string profile = stack_of_row(row, filled_in).name;
    EXPECT_TRUE(any_says(filled_in, "stack: " + profile)) << name;
    return profile;
  };
  for (const char* name : {"InternEvo", "internevo 0.5", "nanotron", "PaddleNLP", "Colossal-AI",
                           "MindSpeed", "ColossalAI 0.3.1", "GPT-NeoX"})
    EXPECT_EQ(stack_for(name), "generic-megatron") << name;
  for (const char* name :
       {"XTuner", "veScale", "Axolotl", "PyTorch DDP", "HF Accelerate", "NeMo AutoModel"})
    EXPECT_EQ(stack_for(name), "generic-pytorch") << name;
  for (const char* name : {"BMTrain", "LLaMA-Factory (ZeRO-3)", "ms-swift", "our ZeRO"})
    EXPECT_EQ(stack_for(name), "generic-deepspeed") << name;
  for (const char* name : {"MaxText", "Levanter", "alpa"})
    EXPECT_EQ(stack_for(name), "generic-jax") << name;
  for (const char* name : {"our own", "Benzeroid"}) EXPECT_EQ(stack_for(name), "generic") << name;
  EXPECT_EQ(stack_for(""), "generic");
  EXPECT_EQ(stack_for("NeMo 24.07"), "nemo-te");
  EXPECT_EQ(stack_for("torchtitan v0.1"), "fsdp2");
}

// Papers of the framework's authors: 1909.08053, 2104.04473, 2205.05198; Transformer Engine's
// layers on Hopper since 2024.
TEST(RowStack, NamesThatOutliveTheirSoftwareAreReadByTheYear) {
  const auto stack_of = [](const char* name, std::int64_t year, const char* gpu) {
    TrainingRow row;
    row.stack = name;
    row.source_year = year;
    row.cluster.gpu = gpu;
    row.plan.pp = 4;
    std::vector<std::string> filled_in;
    return stack_of_row(row, filled_in).name;
  };
  EXPECT_EQ(stack_of("Megatron-LM", 2021, "A100"), "megatron-lm-2021");
  EXPECT_EQ(stack_of("Megatron-LM", 2022, "A100"), "megatron-lm-2022");
  EXPECT_EQ(stack_of("Megatron-LM (internal)", 2024, "A100"), "megatron-lm-2023");
  EXPECT_EQ(stack_of("Megatron-LM", 2024, "H100 SXM"), "megatron-core");
  EXPECT_EQ(stack_of("Pai-Megatron-Patch", 2025, "A100"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM core_r0.8", 2024, "A100"), "megatron-core");
  EXPECT_EQ(stack_of("Megatron-LM 2021", 2025, "H100"), "megatron-lm-2021");
  EXPECT_EQ(stack_of("GPT-NeoX", 2022, "A100"), "megatron-deepspeed");
  EXPECT_EQ(stack_of("GPT-NeoX", 2024, "A100"), "generic-megatron");
  EXPECT_EQ(stack_of("Megatron-DeepSpeed (ours)", 2024, "A100"), "megatron-deepspeed-23");
}

TEST(RowStack, AttentionIsFusedSinceTheYearInWhichItCouldBe) {
  const auto fused = [](std::int64_t year, const char* notes) {
    TrainingRow row;
    row.stack = "our own";
    row.source_year = year;
    row.notes = notes;
    std::vector<std::string> filled_in;
    return stack_of_row(row, filled_in).flash_attention;
  };
  EXPECT_FALSE(fused(2022, ""));
  EXPECT_TRUE(fused(2023, ""));
  EXPECT_TRUE(fused(2022, "FlashAttention"));
  EXPECT_FALSE(fused(2024, "no FlashAttention"));
}

TEST(RowStack, ProfilesOfTheirOwnNeedNoWords) {
  TrainingRow row;
  for (const char* name : {"torchtitan", "NeMo", "Megatron Core", "nemo-te"}) {
    row.stack = name;
    std::vector<std::string> filled_in;
    EXPECT_FALSE(stack_of_row(row, filled_in).name.starts_with("generic"));
    EXPECT_TRUE(filled_in.empty()) << name;
  }
}

TEST(RowCluster, ReadsNetworksAsSourcesWriteThem) {
  const auto gigabytes_of = [](const std::string& text) {
    return read_network(text, 8).per_node / gigabytes_per_second(1.0);
  };
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400 Gb/s NDR InfiniBand"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("4x100 Gb/s Omni-Path per node"), 50.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("1600 Gb/s per node RoCE"), 200.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("400 Gb/s per GPU RDMA"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("8x400 GbE (RoCE, Cisco)"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("RoCE RDMA (speed not stated)"), 0.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("3.2 Tbps EFA"), 400.0);
  EXPECT_DOUBLE_EQ(gigabytes_of("400 Gb/s InfiniBand"), 0.0);  // of a node or of each GPU?
  EXPECT_EQ(read_network("8x400 Gb/s NDR InfiniBand", 8).protocol, FabricProtocol::InfiniBand);
}

// A single figure is one port's, or all that a server has where no port is so slow.
TEST(RowCluster, ReadsSingleFiguresAsPortsOrNodes) {
  const auto read = [](const std::string& text) {
    const NetworkText network = read_network(text, 8);
    return std::pair(network.per_node / gigabytes_per_second(1.0),
                     network.per_port / gigabytes_per_second(1.0));
  };
  EXPECT_EQ(read("10 GbE"), std::pair(1.25, 0.0));
  EXPECT_EQ(read("100 Gb/s Ethernet"), std::pair(12.5, 0.0));
  EXPECT_EQ(read("EFA 400 Gbps"), std::pair(50.0, 0.0));
  EXPECT_EQ(read("400 Gb/s InfiniBand"), std::pair(0.0, 50.0));
  EXPECT_EQ(read("25 GB/s"), std::pair(0.0, 25.0));
  EXPECT_EQ(read("4x HDR InfiniBand"), std::pair(100.0, 0.0));
}

ClusterSpec cluster_for(const std::string& gpu, const std::string& inside,
                        std::vector<std::string>& filled_in) {
  TrainingRow row;
  row.cluster.gpu = gpu;
  row.cluster.gpus = 16;
  row.cluster.gpus_per_node = 8;
  row.cluster.intra_node = inside;
  std::string reason;
  const auto cluster = cluster_of_row(row, filled_in, reason);
  EXPECT_TRUE(cluster) << reason;
  return cluster.value_or(ClusterSpec{});
}

TEST(RowCluster, LinksInsideOfANodeAreThoseOfTheRow) {
  std::vector<std::string> said;
  const ClusterSpec plain = cluster_for("A100-SXM4-80GB", "NVLink3 NVSwitch 600 GB/s", said);
  EXPECT_FALSE(any_says(said, "intra_node"));
  const ClusterSpec pcie = cluster_for("A100-SXM4-80GB", "PCIe Gen4, no NVLink", said);
  EXPECT_TRUE(any_says(said, "intra_node: PCIe 4 x16"));
  EXPECT_EQ(pcie.node.scale_up.kind, ScaleUpKind::Pcie);
  EXPECT_LT(pcie.node.scale_up.bandwidth, plain.node.scale_up.bandwidth * 0.2);
  const ClusterSpec half = cluster_for("A100-SXM4-80GB", "NVLink 200 GB/s", said);
  EXPECT_EQ(half.node.scale_up.bandwidth, gigabytes_per_second(100));
}

// Cards are no SXM modules.
TEST(RowCluster, CardsAreNotTakenForModulesWithoutAWord) {
  std::vector<std::string> said;
  EXPECT_EQ(cluster_for("A100-PCIE-40GB", "", said).accelerator.name, "a100-pcie-80gb");
  EXPECT_TRUE(any_says(said, "with the memory of \"A100-PCIE-40GB\""));
  EXPECT_EQ(cluster_for("H100 NVL", "", said).node.scale_up.kind, ScaleUpKind::Pcie);
  EXPECT_TRUE(any_says(said, "accelerator: h100-sxm for \"H100 NVL\""));
  EXPECT_EQ(cluster_for("A100-40G", "", said).accelerator.name, "a100-40gb");
}

TEST(RowCluster, EveryShippedAcceleratorHasACluster) {
  for (const std::string& name : shipped_accelerators()) {
    const auto& clusters = cluster_library();
    EXPECT_TRUE(std::any_of(clusters.begin(), clusters.end(), [&name](const ClusterSpec& cluster) {
      return cluster.accelerator.name == name;
    })) << name;
  }
}

TEST(RowCluster, WithoutAWordOfTheNetworkItIsTheUsualOne) {
  std::vector<std::string> said;
  EXPECT_EQ(cluster_for("H800", "", said).name, "h800-ib");
  EXPECT_EQ(cluster_for("A100-40GB", "", said).name, "hgx-a100-40gb");
  EXPECT_EQ(cluster_for("H100", "", said).name, "dgx-h100");
}

TEST(RowCluster, AcceleratorsAsSourcesWriteThem) {
  const auto profile_for = [](const std::string& text) {
    TrainingRow row;
    row.cluster.gpu = text;
    std::vector<std::string> filled_in;
    std::string reason;
    const auto cluster = cluster_of_row(row, filled_in, reason);
    EXPECT_NE(cluster.has_value(), !reason.empty()) << text;
    return cluster ? cluster->accelerator.name : "";
  };
  for (const char* text : {"H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", "8x H100 SXM5", "h100"})
    EXPECT_EQ(profile_for(text), "h100-sxm") << text;
  for (const char* text : {"A100 (source: NVIDIA Ampere)", "A100-80G", "A100-SXM4-80GB"})
    EXPECT_EQ(profile_for(text), "a100-80gb") << text;
  EXPECT_EQ(profile_for("A100-SXM4-40GB"), "a100-40gb");
  EXPECT_EQ(profile_for("AMD Instinct MI300X"), "mi300x");
  EXPECT_EQ(profile_for("Ascend 910B"), "");
  EXPECT_EQ(profile_for(""), "");
}

TEST(RowCluster, MemoryThatNoProfileHasIsThatOfTheRow) {
  TrainingRow row;
  row.cluster.gpu = "Tesla V100-SXM2-16GB";
  std::vector<std::string> filled_in;
  std::string reason;
  const auto cluster = cluster_of_row(row, filled_in, reason);
  ASSERT_TRUE(cluster) << reason;
  EXPECT_EQ(cluster->accelerator.name, "v100-sxm2-32gb");
  EXPECT_EQ(cluster->accelerator.memory, gigabytes(16));
  EXPECT_TRUE(any_says(filled_in, "accelerator: v100-sxm2-32gb with the memory of"));
}

TEST(RowCluster, KeepsTheBandwidthThatTheRowStates) {
  TrainingRow row = shipped_row("sc21-t1-1.7b");
  row.cluster.inter_node = "2x100 Gb/s InfiniBand";
  std::vector<std::string> filled_in;
  std::string reason;
  const auto cluster = cluster_of_row(row, filled_in, reason);
  ASSERT_TRUE(cluster) << reason;
  EXPECT_NEAR(cluster->node.nic.bandwidth.value() * static_cast<double>(cluster->node.nic.per_node),
              25e9, 1.0);
}

// What ran had a network that joins its nodes, whatever the profile knows of.
TEST(RowCluster, JoinsAllNodesThatTheRowRanOn) {
  for (const auto& [gpu, gpus] : {std::pair{"RTX 4090", 64}, std::pair{"A100", 200'000}}) {
    TrainingRow row;
    row.cluster.gpu = gpu;
    row.cluster.gpus = gpus;
    row.cluster.gpus_per_node = 8;
    std::vector<std::string> filled_in;
    std::string reason;
    const auto cluster = cluster_of_row(row, filled_in, reason);
    ASSERT_TRUE(cluster) << reason;
    EXPECT_GE(cluster->most_accelerators().value_or(0), gpus) << gpu;
    EXPECT_GT(cluster->node.nic.bandwidth, BytesPerSecond()) << gpu;
    EXPECT_TRUE(std::any_of(filled_in.begin(), filled_in.end(), [](const std::string& line) {
      return line.rfind("fabric: ", 0) == 0;
    })) << gpu;
  }
}

TEST(RowNotes, ReadsForcedBalance) {
  for (const char* notes :
       {"--moe-router-force-load-balancing", "forced balancing", "force-balanced"})
    EXPECT_TRUE(notes_say_balanced_routing(notes)) << notes;
  EXPECT_FALSE(notes_say_balanced_routing("load balancing loss"));
}

TEST(RowNotes, ReadsExpertTensorParallel) {
  EXPECT_EQ(expert_tensor_parallel_in("TP4 ETP4 PP1"), 4);
  EXPECT_EQ(expert_tensor_parallel_in("ETP=1 (folded)"), 1);
  EXPECT_EQ(expert_tensor_parallel_in("TP/PP/EP/CP/ETP=2/8/32/1/1"), 1);
  EXPECT_EQ(expert_tensor_parallel_in("no such thing"), std::nullopt);
}

// Equation 3 of arXiv 2104.04473 for the 1.7B model of its table 1:
// F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)).
TEST(FlopsConvention, CountsRecomputationAsMegatronDoes) {
  const TrainingRow row = shipped_row("sc21-t1-1.7b");
  const auto result = scenario_of(row);
  ASSERT_TRUE(result.scenario);
  const double batch = 512, s = 2048, l = 24, h = 2304, v = 51200;
  const double formula = 96 * batch * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  const Flop counted = counted_flop(result.scenario->model, result.scenario->plan,
                                    flops_convention_in(row.flops_convention));
  EXPECT_NEAR(counted.value() / formula, 1.0, 1e-3);
}

TEST(FlopsConvention, ReadsTheTexts) {
  EXPECT_EQ(flops_convention_in("FULL (non-causal) attention").attention_share, 1.0);
  EXPECT_EQ(flops_convention_in("causal or full attention not stated").attention_share, 1.0);
  EXPECT_EQ(flops_convention_in("attention counted CAUSAL (halved)").attention_share, 0.5);
  EXPECT_EQ(flops_convention_in("6*N*tokens only, NO attention-score FLOPs").attention_share, 0.0);
  EXPECT_TRUE(
      flops_convention_in("with activation recompute counted (4 passes)").counts_recomputation);
  EXPECT_FALSE(flops_convention_in("model FLOPs, no recompute").counts_recomputation);
}

}  // namespace
}  // namespace shardwright::sim
