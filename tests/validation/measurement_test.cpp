#include "validation/measurement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/spec/profile_library.hpp"
#include "tests/thrown.hpp"
#include "tests/validation/shipped_measurements.hpp"

namespace shardwright::validation {
namespace {

using nlohmann::json;

json example() {
  return json::parse(R"({
    "id": "example", "source": {"title": "An example", "where": "table 1", "year": 2024},
    "verified": true, "grade": "B", "group": "example|64",
    "stated": {"accelerator": "H100 SXM5", "stack": "Megatron-Core 0.9"},
    "scenario": {"model": "llama3-8b",
                 "cluster": {"base": "dgx-h100", "node": {"nic": {"per_node": {"value": 4}}}},
                 "stack": "megatron-core",
                 "plan": {"dp": 4, "tp": 2, "pp": 1, "micro_batch": 1, "global_batch": 16,
                          "seq_len": 4096}},
    "open": ["recompute"],
    "measured": {"mfu": 0.4, "peak_memory_bytes": 6e10},
    "figure": {"metric": "mfu", "value": 0.4, "attention_share": 0.5, "recompute_counted": "none"},
    "memory": {"counter": "reserved", "rank": "last_stage"},
    "assumed": ["NICs: four"], "notes": "torch.compile, no NVLS"})");
}

std::vector<Measurement> read(const std::vector<json>& lines) {
  std::stringstream stream;
  for (const json& line : lines) stream << line.dump() << "\n\n";
  return read_measurements(stream, "rows.jsonl");
}

std::vector<std::string> places_of_problems(const std::vector<json>& lines) {
  return problems_of([&] { read(lines); });
}

TEST(Measurement, IsReadWithAllItsFields) {
  const Measurement row = read({example()}).front();
  EXPECT_EQ(row.source, (PublishedSource{"An example", "table 1"}));
  EXPECT_EQ(row.scenario->cluster.node.nic.per_node, 4);
  EXPECT_EQ(row.scenario->stack, load_stack("megatron-core"));
  EXPECT_EQ(row.open, std::vector<std::string>{"recompute"});
  EXPECT_EQ(row.figure->metric, StepMetric::Mfu);
  EXPECT_EQ(row.figure->flops.attention_share, 0.5);
  EXPECT_EQ(row.measured.peak_memory, Bytes(6e10));
  EXPECT_EQ(row.memory.counter, MemoryCounter::Reserved);
  EXPECT_EQ(row.memory.rank, MemoryRank::LastStage);
  EXPECT_EQ(row.outcome, Outcome::Ran);
  EXPECT_TRUE(leaves_plan_open(row));
}

// Notes are for people: none of them changes what is read but the notes themselves.
TEST(Measurement, NotesDecideNothing) {
  Measurement noted =
      read({with(example(), "/notes", "CUDA graphs, HFU, LoRA, out of memory")}).front();
  const Measurement plain = read({example()}).front();
  noted.notes = plain.notes;
  EXPECT_EQ(noted, plain);
}

TEST(Measurement, AllProblemsOfAFileAreSaidWithLineAndPointer) {
  EXPECT_THAT(
      places_of_problems({with(example(), "/scenario/plan/tpp", 2), example() /* id again */,
                          with(example(), "/figure", {{"metric", "speed"}, {"value", 0.4}}),
                          with(example(), "/surprise", 1)}),
      ::testing::UnorderedElementsAre("line 1/scenario/plan/tpp", "line 3/id",
                                      "line 5/figure/metric", "line 5/id", "line 7/surprise",
                                      "line 7/id"));
}

TEST(Measurement, ValuesThatMeanNothingAreRefused) {
  const auto expect_refused = [](const char* pointer, const json& value, const char* place) {
    EXPECT_THAT(places_of_problems({with(example(), pointer, value)}),
                ::testing::ElementsAre(place));
  };
  expect_refused("/grade", "D", "line 1/grade");
  expect_refused("/open", {"microbatch"}, "line 1/open/0");
  expect_refused("/figure/value", 1.5, "line 1/figure/value");
  expect_refused("/scenario/cluster/base", "dgx-h1", "line 1/scenario/cluster/base");
  EXPECT_THAT(places_of_problems({with(with(example(), "/open", json::array()),
                                       "/scenario/plan/global_batch", 17)}),
              ::testing::ElementsAre("line 1/scenario/plan/global_batch"));
  expect_refused("/memory/counter", "nvml", "line 1/memory/counter");
  expect_refused("/outcome", "crashed", "line 1/outcome");
}

TEST(Measurement, HasEitherAScenarioOrAReasonWhyNot) {
  json without = example();
  without.erase("scenario");
  EXPECT_THAT(places_of_problems({without}), ::testing::ElementsAre("line 1"));
  EXPECT_THAT(places_of_problems({with(example(), "/unsupported", "LoRA")}),
              ::testing::ElementsAre("line 1"));
  without["unsupported"] = "LoRA";
  EXPECT_EQ(read({without}).front().unsupported, "LoRA");
}

// Only what sets the time of a step makes a plan an inferred one.
TEST(Measurement, OpenShardingLeavesThePlanStated) {
  EXPECT_FALSE(leaves_plan_open(read({with(example(), "/open", {"zero_stage"})}).front()));
  Measurement row = read({example()}).front();
  row.open = {"tp"};
  EXPECT_FALSE(leaves_plan_open(row));
  row.open = {"tp", "pp"};
  EXPECT_TRUE(leaves_plan_open(row));
}

TEST(Measurement, IsFoundByItsIdOrTheNearestIsNamed) {
  EXPECT_EQ(shipped("sc21", "sc21-t1-1.7b").id, "sc21-t1-1.7b");
  EXPECT_THAT(thrown_by([] { shipped("sc21", "sc21-t1-17b"); }),
              ::testing::HasSubstr("sc21-t1-1.7b"));
}

TEST(Measurement, FilesCountOnceAndTheirProblemsAreSaidTogether) {
  const std::string file = shipped_file("training/sc21");
  EXPECT_EQ(read_measurements(std::vector{file, file}).size(), read_measurements(file).size());
  const std::vector<std::string> missing = {"none-a.jsonl", "none-b.jsonl"};
  EXPECT_EQ(problems_of([&] { read_measurements(missing); }).size(), 2U);
}

TEST(Measurement, EveryShippedOneIsReadable) {
  std::set<std::string> ids;
  for (const Measurement& row : read_measurements(shipped_measurements())) {
    EXPECT_FALSE(row.source.title.empty()) << row.id;
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
  }
  EXPECT_GT(ids.size(), 2000U);
}

}  // namespace
}  // namespace shardwright::validation
