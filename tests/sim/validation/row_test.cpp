// Reading of published measurements and what becomes of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/validation/flops_convention.hpp"
#include "sim/validation/row_cluster.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_scenario.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {
namespace {

const std::string kShipped = SHARDWRIGHT_SOURCE_DIR "/tests/ground_truth/training.jsonl";

TrainingRow shipped_row(const std::string& id) {
  return find_training_row(kShipped, id);
}

class RowFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / "rows.jsonl";
    std::ofstream(path) << text;
    return path.string();
  }
};

TEST_F(RowFile, ProblemsNameLineAndPointer) {
  const std::string good =
      R"({"id":"a","source":{},"model":{"name":"m"},"cluster":{"gpu":"H100","gpus":8},"plan":{},"measured":{},"more":1})";
  const std::string bad =
      R"({"id":"a","source":{},"model":{"name":"m","layers":"32"},"cluster":{"gpu":"H100","gpus":0},"plan":{"tp":1.5},"measured":{"oom":1},"target":{"metric":"speed","value":2}})";
  const std::string file = write(good + "\n\n" + bad + "\nnot json\n");
  try {
    read_training_rows(file);
    FAIL() << "read broken rows";
  } catch (const InputError& error) {
    std::vector<std::string> places;
    for (const Problem& problem : error.problems()) places.push_back(problem.where);
    const std::vector<std::string> expected = {"line 3/model/layers",  "line 3/cluster/gpus",
                                               "line 3/plan/tp",       "line 3/measured/oom",
                                               "line 3/target/metric", "line 3/id"};
    ASSERT_EQ(places.size(), expected.size() + 1);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), places.begin()));
    EXPECT_EQ(places.back().substr(0, 6), "line 4");
    EXPECT_EQ(error.source(), file);
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
  row.plan.precision = "nvfp4";
  EXPECT_NE(scenario_of(row).reason.find("nvfp4"), std::string::npos);
  row = shipped_row("sc21-t1-1.7b");
  row.cluster.gpu = "Abacus 3000";
  EXPECT_NE(scenario_of(row).reason.find("Abacus 3000"), std::string::npos);
  row = shipped_row("sc21-t1-1.7b");
  row.plan.tp.reset();
  EXPECT_NE(scenario_of(row).reason.find("tensor"), std::string::npos);
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
    return std::any_of(filled.begin(), filled.end(),
                       [&](const std::string& each) { return each.find(key) == 0; });
  };
  EXPECT_TRUE(says_of("zero_stage"));
  EXPECT_TRUE(says_of("micro_batch"));
  EXPECT_TRUE(says_of("recompute"));
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
  EXPECT_EQ(read_network("8x400 Gb/s NDR InfiniBand", 8).protocol, FabricProtocol::InfiniBand);
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
  EXPECT_EQ(flops_convention_in("attention counted CAUSAL (halved)").attention_share, 0.5);
  EXPECT_EQ(flops_convention_in("6*N*tokens only, NO attention-score FLOPs").attention_share, 0.0);
  EXPECT_TRUE(
      flops_convention_in("with activation recompute counted (4 passes)").counts_recomputation);
  EXPECT_FALSE(flops_convention_in("model FLOPs, no recompute").counts_recomputation);
}

}  // namespace
}  // namespace shardwright::sim
