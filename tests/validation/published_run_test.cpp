// Published runs: their format, and forecasts held against them.
#include "validation/published_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/spec/profile_library.hpp"
#include "sim/run/profile_model.hpp"
#include "sim/run/run_simulation.hpp"
#include "tests/thrown.hpp"
#include "validation/run_validation.hpp"

namespace shardwright::validation {
namespace {

using nlohmann::json;

json example_run() {
  return json::parse(R"({
    "id": "example", "source": {"title": "An example"}, "grade": "A",
    "scenario": {"model": "llama3-8b", "cluster": "dgx-h100", "stack": "megatron-core",
                 "plan": {"dp": 8, "tp": 2, "pp": 1, "micro_batch": 1, "global_batch": 64,
                          "seq_len": 8192}},
    "tokens": 1e11,
    "stages": [{"name": "ramp-up", "tokens": 1e10, "global_batch": 32, "dp": 4}],
    "run": {"base": "settled-fleet", "checkpoint": {"interval_s": 900}},
    "measured": {"wall_days": 20, "tokens_per_s_per_gpu": 9000, "interruptions": 3, "unexpected_interruptions": 2,
                 "interruption_days": 10},
    "also_published": [{"gpu_hours": 9000, "where": "a table"}]})");
}

PublishedRun read_one(const json& line) {
  std::stringstream stream(line.dump());
  return read_published_runs(stream, "runs.jsonl").front();
}

TEST(PublishedRun, IsReadWithAllItsFields) {
  const PublishedRun run = read_one(example_run());
  EXPECT_EQ(run.tokens, 1e11);
  EXPECT_EQ(run.run.checkpoint.interval, Seconds(900));
  ASSERT_EQ(run.run.stages.size(), 1u);
  EXPECT_EQ(run.run.stages[0].global_batch, 32);
  EXPECT_EQ(run.gpu_hours(), 20 * 24 * 16) << "of its days on all GPUs";
  EXPECT_EQ(run.others.front().where, "a table");
  json named = example_run();
  named.erase("run");
  EXPECT_EQ(read_one(named).run.name, "settled-fleet");
}

TEST(PublishedRun, AllProblemsAreToldAtOnce) {
  json row = example_run();
  row["tokns"] = 1;
  row.erase("tokens");
  row["measured"] = {{"goodput_ratio", 1.5}, {"interruptions", 3}};
  row["run"] = {{"base", "settled-flet"}};
  row["scenario"]["plan"]["tp"] = 0;
  row["stages"][0]["global_batch"] = -1;
  const std::string problems = thrown_by([&] { read_one(row); });
  for (const char* problem : {"line 1/tokns", "line 1/tokens", "line 1/measured/goodput_ratio",
                              "line 1/measured/interruption_days", "did you mean \"settled-fleet\"",
                              "line 1/scenario/plan/tp", "line 1/stages/0/global_batch",
                              "neither gpu_hours nor wall_days"})
    EXPECT_THAT(problems, testing::HasSubstr(problem));
}

TEST(RunValidation, TheErrorIsThatOfTheStepTimesThatOfTheRest) {
  const RunRow row = compare_run(read_one(example_run()));
  ASSERT_EQ(row.skipped, "");
  EXPECT_NEAR((1.0 + *row.step_error) * (1.0 + *row.run_error), 1.0 + row.error(), 1e-12);
  EXPECT_TRUE(row.plan_known);
  // The stage of half the replicas takes half the GPUs for about a tenth of the time.
  const double all = row.predicted_days.p50 * 24.0 * 16.0;
  EXPECT_LT(row.predicted_gpu_hours, 0.97 * all);
  EXPECT_GT(row.predicted_gpu_hours, 0.80 * all);
  ASSERT_EQ(row.interruptions.size(), 2u);
  EXPECT_LE(row.interruptions[0].predicted.p10, row.interruptions[0].predicted.p90);
  EXPECT_LE(row.interruptions[1].predicted.p50, row.interruptions[0].predicted.p50);

  json open = example_run();
  open["scenario"]["plan"].erase("micro_batch");
  open["open"] = {"micro_batch"};
  open["measured"] = {{"gpu_hours", 3000}, {"counted", "steps"}};
  open["stages"] = json::array();
  const RunRow inferred = compare_run(read_one(open));
  EXPECT_FALSE(inferred.plan_known);
  EXPECT_NEAR(*inferred.step_error, inferred.error(), 1e-12) << "nothing but steps is counted";

  json broken = example_run();
  broken["stages"][0]["global_batch"] = 33;
  EXPECT_THAT(compare_run(read_one(broken)).skipped, testing::HasSubstr("global_batch"));
}

// The level reached on runs whose plan is known: GPU-hours from model, tokens, machine and stack
// alone.
TEST(RunValidation, ShippedRunsWithKnownPlansAreOnTheLevel) {
  std::vector<calibration::ErrorSample> errors;
  int intervals = 0;
  for (const PublishedRun& run : read_published_runs(shipped_runs_file())) {
    if (!run.setup.scenario || leaves_plan_open(run.setup)) continue;
    const RunRow row = compare_run(run);
    EXPECT_EQ(row.skipped, "") << row.id;
    // The rows of OPT, BLOOM and GLM have the rates of the other fleets of their profiles.
    for (const ComparedInterruptions& stops : row.interruptions)
      EXPECT_TRUE(stops.inside()) << row.id;
    // People chose intervals that are longer than the best one, which costs them little.
    if (row.interval) {
      ++intervals;
      EXPECT_GT(row.interval->published, row.interval->best) << row.id;
      EXPECT_GE(row.interval->extra, 0.0) << row.id;
      EXPECT_LE(row.interval->extra, 0.01) << row.id;
      EXPECT_NEAR(row.interval->best / row.interval->daly, 1.0, 0.25) << row.id;
    }
    errors.push_back({row.error(), row.covered()});
  }
  EXPECT_GE(errors.size(), 18u);
  EXPECT_EQ(intervals, 3);
  const calibration::ErrorSummary summary = calibration::summarise(errors);
  EXPECT_LE(summary.median_abs, 0.12);
  EXPECT_LE(summary.p90_abs, 0.30);
}

}  // namespace
}  // namespace shardwright::validation
