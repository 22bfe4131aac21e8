// Plans of which a source leaves fields open, and what the search chooses for them.
#include "planner/open_fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "tests/sanitized.hpp"
#include "tests/thrown.hpp"
#include "tests/validation/shipped_measurements.hpp"
#include "validation/validation.hpp"

namespace shardwright::validation {
namespace {

using nlohmann::json;

json row_with(const std::vector<std::string>& open, const json& plan) {
  return {{"id", "a row"},
          {"source", {{"title", "A table"}}},
          {"scenario",
           {{"model", "llama3-8b"}, {"cluster", "dgx-h100"}, {"stack", "nemo-te"}, {"plan", plan}}},
          {"open", open},
          {"figure", {{"metric", "step_s"}, {"value", 4.0}}}};
}

json closed_plan() {
  return {{"dp", 4}, {"tp", 2}, {"pp", 1}, {"global_batch", 32}, {"seq_len", 8192}};
}

Measurement read_row(const json& row) {
  std::stringstream stream(row.dump());
  return read_measurements(stream, "rows.jsonl").front();
}

std::string refusal_of(const json& row) {
  return thrown_by([&] { compare_row(read_row(row)); });
}

// The user's own search, whose constraints fix what the row states, finds a step of the same
// length.
TEST(OpenFields, TheStepIsThatOfASearchWithTheOtherFieldsFixed) {
  const Measurement row = read_row(row_with({"micro_batch"}, closed_plan()));
  const Scenario& scenario = *row.scenario;
  planner::PlanRequest request;
  request.model = scenario.model;
  request.cluster = scenario.cluster;
  request.stack = scenario.stack;
  request.gpus = 8;
  request.global_batch = 32;
  request.seq_len = 8192;
  request.limits.base = scenario.plan;
  for (const char* fixed : {"tp=2", "pp=1", "cp=1", "zero=1", "shard_group=0", "recompute=none"})
    request.constraints.fixed.push_back(planner::parse_constraint(fixed, "--fix"));
  const planner::SearchResult found = planner::search(request);
  ASSERT_FALSE(found.plans.empty());
  EXPECT_EQ(compare_row(row).predicted, found.plans.front().result.step.value());
}

TEST(OpenFields, ARowWithoutThemIsNotSearched) {
  json plan = closed_plan();
  plan["micro_batch"] = 1;  // 2 would be faster
  const Measurement row = read_row(row_with({}, plan));
  EXPECT_EQ(resolved_scenario(row), row.scenario);
  EXPECT_EQ(json::parse(compare_row(row).chosen), json::object());
}

TEST(OpenFields, OfAllShippedRowsNothingElseIsChosen) {
  std::vector<Measurement> rows = read_measurements(shipped_measurements());
  std::erase_if(rows, [](const Measurement& row) { return row.open.empty() || !row.scenario; });
  EXPECT_GT(rows.size(), 200U);
  if (kSanitized) rows.resize(rows.size() / 10);  // each is a search
  tbb::parallel_for(std::size_t{0}, rows.size(), [&rows](std::size_t i) {
    const Measurement& row = rows[i];
    const Scenario scenario = resolved_scenario(row);
    json before = to_json(row.scenario->plan), after = to_json(scenario.plan);
    for (const std::string& field : planner::with_followers(row.open)) {
      before.erase(field);
      after.erase(field);
    }
    EXPECT_EQ(before, after) << row.id;
    EXPECT_FALSE(first_broken_rule(scenario.model, scenario.cluster, scenario.plan)) << row.id;
    if (row.gpus == 0) return;
    EXPECT_EQ(scenario.plan.world_size(), row.gpus) << row.id;
  });
}

TEST(OpenFields, RecomputationIsChosenOnlyWhereNothingFitsWithoutIt) {
  json plan = closed_plan();
  plan["seq_len"] = 4096;
  const auto chosen = [&](const char* model) {
    json row = row_with({"micro_batch", "recompute"}, plan);
    row["scenario"]["model"] = model;
    return resolved_scenario(read_row(row)).plan;
  };
  EXPECT_EQ(chosen("llama3-8b").recompute, RecomputePolicy::None);
  // Nothing fits at all: the plan that comes closest.
  const Plan large = chosen("llama3.1-405b");
  EXPECT_EQ(large.recompute, RecomputePolicy::Full);
  EXPECT_EQ(large.micro_batch, 1);
}

TEST(OpenFields, DegreesNeedTheNumberOfGpus) {
  json plan = closed_plan();
  plan["micro_batch"] = 1;
  plan.erase("dp");
  plan.erase("tp");
  json row = row_with({"dp", "tp"}, plan);
  EXPECT_THAT(refusal_of(row), ::testing::HasSubstr("/gpus"));
  row["gpus"] = 8;
  EXPECT_EQ(resolved_scenario(read_row(row)).plan.world_size(), 8);
}

TEST(OpenFields, WhatCannotBeChosenIsRefusedWithItsPlace) {
  json plan = closed_plan();
  plan["micro_batch"] = 1;
  EXPECT_THAT(refusal_of(row_with({"seq_len"}, plan)), ::testing::HasSubstr("/open/0"));
  EXPECT_THAT(refusal_of(row_with({"micro_batch"}, plan)),
              ::testing::HasSubstr("/scenario/plan/micro_batch"));
  plan["tp"] = 3;  // which divides no heads
  plan.erase("micro_batch");
  EXPECT_THAT(refusal_of(row_with({"micro_batch"}, plan)), ::testing::HasSubstr("a row/open"));
}

}  // namespace
}  // namespace shardwright::validation
