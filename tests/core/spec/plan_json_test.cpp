#include "core/spec/plan_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "tests/core/spec/random_plan.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

Plan parse_plan(const std::string& text) {
  const nlohmann::json document = parse_json(text, "plan.json");
  ProblemList problems("plan.json");
  ObjectReader reader(document, "", problems);
  const Plan plan = read_plan(reader);
  problems.throw_if_any();
  return plan;
}

const char* const kSmallest =
    R"({"dp": 4, "tp": 2, "pp": 2, "micro_batch": 1, "global_batch": 16, "seq_len": 4096})";

// The smallest plan with one member added or replaced.
std::string with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json document = nlohmann::json::parse(kSmallest);
  document[key] = value;
  return document.dump();
}

TEST(PlanJson, WhatIsLeftOutHasTheDefaultOfPlan) {
  Plan expected;
  expected.dp = 4;
  expected.tp = 2;
  expected.pp = 2;
  expected.global_batch = 16;
  expected.seq_len = 4096;
  EXPECT_EQ(parse_plan(kSmallest), expected);
}

TEST(PlanJson, WhatIsLeftOutIsAsModelAndStackUsuallyHaveIt) {
  ModelSpec model;
  model.layers = 8;
  model.moe.emplace().shared_experts = 1;
  StackSpec stack;
  stack.overlap.tensor_parallel = stack.overlap.expert_parallel = true;
  const auto read = [&](const std::string& text) {
    const nlohmann::json document = parse_json(text, "plan.json");
    ProblemList problems("plan.json");
    ObjectReader reader(document, "", problems);
    return read_plan_of(reader, model, stack);
  };
  const Plan usual = read(kSmallest);
  EXPECT_TRUE(usual.overlap.tensor_parallel && usual.overlap.expert_parallel);
  EXPECT_FALSE(usual.head_counts_as_layer);
  EXPECT_FALSE(read(with("overlap", {{"tensor_parallel", false}})).overlap.tensor_parallel);
  // One or the other hides the exchange of tokens.
  EXPECT_FALSE(read(with("overlap", {{"expert_microbatches", true}})).overlap.expert_parallel);
  // Ten chunks for eight layers have one even split, unless the file states another.
  const std::string more = with("vpp", 5);
  EXPECT_TRUE(read(more).embedding_counts_as_layer && read(more).head_counts_as_layer);
  nlohmann::json stated = nlohmann::json::parse(more);
  stated["head_counts_as_layer"] = false;
  EXPECT_FALSE(read(stated.dump()).embedding_counts_as_layer);
}

TEST(PlanJson, ReadsWhereTheOptimizerLies) {
  using enum OptimizerOffload;
  const std::string key = "offload_optimizer";
  EXPECT_EQ(parse_plan(with(key, "nvme")).offload_optimizer, Nvme);
  EXPECT_EQ(parse_plan(with(key, "none")).offload_optimizer, None);
  EXPECT_EQ(parse_plan(with(key, true)).offload_optimizer, Host);
  EXPECT_EQ(parse_plan(with(key, false)).offload_optimizer, None);
}

TEST(PlanJson, ReadsTheNamesThatPeopleWrite) {
  const Plan plan = parse_plan(R"({"dp": 1, "tp": 8, "pp": 4, "vpp": 5, "cp": 2, "micro_batch": 1,
      "global_batch": 8, "seq_len": 8192, "schedule": "interleaved", "recompute": "full",
      "precision": "fp8", "context_parallel": "ulysses", "overlap": {"tensor_parallel": true},
      "rank_order": ["tp", "pp", "cp", "ep", "dp"]})");
  EXPECT_EQ(plan.schedule, ScheduleKind::Interleaved);
  EXPECT_EQ(plan.recompute, RecomputePolicy::Full);
  EXPECT_EQ(plan.precision, Precision::Fp8);
  EXPECT_EQ(plan.context_parallel, ContextParallelKind::Ulysses);
  EXPECT_TRUE(plan.overlap.tensor_parallel);
  EXPECT_TRUE(plan.overlap.grad_reduce);
  EXPECT_EQ(plan.rank_order[1], Axis::Pipeline);
  EXPECT_EQ(plan.chunks(), 20);
}

RC_GTEST_PROP(PlanJson, WhatIsWrittenReadsBackEqual, ()) {
  const Plan plan = any_plan();
  RC_ASSERT(parse_plan(to_json(plan).dump()) == plan);
}

struct BadPlan {
  const char* name;
  std::string text;
  // The place of the problem.
  const char* pointer;
};

std::vector<BadPlan> bad_plans() {
  return {
      {"AnArray", "[1, 2]", ""},
      {"ANumber", "7", ""},
      {"NoDp", R"({"tp": 1, "pp": 1, "micro_batch": 1, "global_batch": 1, "seq_len": 8})", "/dp"},
      {"NoSeqLen", R"({"dp": 1, "tp": 1, "pp": 1, "micro_batch": 1, "global_batch": 1})",
       "/seq_len"},
      {"ZeroDegree", with("tp", 0), "/tp"},
      {"NegativeDegree", with("pp", -2), "/pp"},
      {"BrokenDegree", with("tp", 2.5), "/tp"},
      {"DegreeAsText", with("dp", "4"), "/dp"},
      {"DegreeTooLarge", with("cp", 1e7), "/cp"},
      {"DegreeBeyond64Bits", with("ep", 1e19), "/ep"},
      {"WorldTooLarge", with("cp", 1'000'000), ""},
      {"NullBatch", with("global_batch", nullptr), "/global_batch"},
      {"NegativeBatch", with("micro_batch", -1), "/micro_batch"},
      {"SeqLenTooLarge", with("seq_len", 1e12), "/seq_len"},
      {"ZeroStageFour", with("zero_stage", 4), "/zero_stage"},
      {"NegativeShardGroup", with("shard_group", -8), "/shard_group"},
      {"UnknownSchedule", with("schedule", "1f2b"), "/schedule"},
      {"ScheduleAsNumber", with("schedule", 1), "/schedule"},
      {"UnknownRecompute", with("recompute", "some"), "/recompute"},
      {"NegativeRecomputeLayers", with("recompute_layers", -1), "/recompute_layers"},
      {"UnknownPrecision", with("precision", "bf15"), "/precision"},
      {"UnknownContextParallel", with("context_parallel", "star"), "/context_parallel"},
      {"SwitchAsNumber", with("sequence_parallel", 1), "/sequence_parallel"},
      {"OverlapAsSwitch", with("overlap", true), "/overlap"},
      {"UnknownOverlap", with("overlap", {{"grad_reduc", true}}), "/overlap/grad_reduc"},
      {"OverlapAsText", with("overlap", {{"p2p", "yes"}}), "/overlap/p2p"},
      {"UnknownAxis", with("rank_order", {"tp", "zp"}), "/rank_order/1"},
      {"AxisAsNumber", with("rank_order", {"tp", 1}), "/rank_order/1"},
      {"RankOrderAsText", with("rank_order", "tp,dp"), "/rank_order"},
      {"StageLayersAsNumber", with("stage_layers", 16), "/stage_layers"},
      {"NegativeStageLayers", with("stage_layers", {8, -8}), "/stage_layers/1"},
      {"UnknownKey", with("micro_bach", 1), "/micro_bach"},
      {"OffloadAsText", with("offload_optimizer", "hots"), "/offload_optimizer"},
  };
}

TEST(PlanJson, ReportsEachBadMemberAtItsPlace) {
  for (const BadPlan& bad : bad_plans()) {
    SCOPED_TRACE(bad.name);
    EXPECT_THAT(problems_of([&bad] { parse_plan(bad.text); }), testing::Contains(bad.pointer));
  }
}

TEST(PlanJson, ReportsAllProblemsAtOnce) {
  EXPECT_THAT(
      problems_of([] {
        parse_plan(
            R"({"dp": 0, "tp": "x", "pp": 1, "micro_batch": 1, "global_batch": 1, "sede": 1})");
      }),
      testing::UnorderedElementsAre("/dp", "/tp", "/seq_len", "/sede"));
}

TEST(PlanJson, SuggestsTheNearestName) {
  EXPECT_THAT(thrown_by([] { parse_plan(with("micro_bach", 1)); }),
              testing::HasSubstr("did you mean \"micro_batch\""));
}

}  // namespace
}  // namespace shardwright
