#include "sim/network/scenario_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "tests/thrown.hpp"

namespace shardwright::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood = R"({
  "links": [{"id": "up", "bandwidth_bytes_per_s": 10, "latency_s": 1},
            {"id": "down", "bandwidth_bytes_per_s": 20, "latency_s": 0}],
  "flows": [{"id": "second", "bytes": 20, "route": ["up"], "after": ["first"]},
            {"id": "first", "bytes": 100, "route": ["up", "down"], "start_s": 2}]})";

TEST(ScenarioJson, ReadsSimulatesAndWrites) {
  const auto document = parse_json(kGood, "test");
  const auto scenario = read_flow_scenario(document, "test");
  const auto json = write_flow_result(document, simulate_flows(scenario), Seconds(0.5));
  // first: 2 + 1 + 100/10 = 13; second: 13 + 1 + 20/10 = 16
  EXPECT_EQ(json.dump(), R"({"makespan_s":16.0,"flows":[)"
                         R"({"id":"second","start_s":13.0,"finish_s":16.0},)"
                         R"({"id":"first","start_s":2.0,"finish_s":13.0}],"wall_s":0.5})");
}

TEST(ScenarioJson, IntegersAreIdsAndStayIntegers) {
  const auto document = parse_json(
      R"({"links": [{"id": 1, "bandwidth_bytes_per_s": 10, "latency_s": 1},
                    {"id": "2", "bandwidth_bytes_per_s": 20, "latency_s": 0}],
          "flows": [{"id": -7, "bytes": 20, "route": ["1", 2], "after": ["8"], "start_s": null},
                    {"id": "8", "bytes": 100, "route": [1], "after": null, "start_s": 0}]})",
      "test");
  const auto scenario = read_flow_scenario(document, "test");
  EXPECT_EQ(scenario.route(0).size(), 2U);
  const auto json = write_flow_result(document, simulate_flows(scenario), Seconds(0));
  // "8": 1 + 100/10 = 11; -7: 11 + 1 + 20/10 = 14
  EXPECT_EQ(json["flows"].dump(), R"([{"id":-7,"start_s":11.0,"finish_s":14.0},)"
                                  R"({"id":"8","start_s":0.0,"finish_s":11.0}])");
}

TEST(ScenarioJson, AnIntegerAndItsTextAreTheSameId) {
  for (const char* ids : {R"([1, "1"])", R"(["1", 1])", R"([1, 1])"}) {
    auto document = parse_json(kGood, "test");
    const auto both = nlohmann::json::parse(ids);
    for (std::size_t i = 0; i < 2; ++i) document["links"][i]["id"] = both[i];
    document["flows"][0]["route"] = document["flows"][1]["route"] = nlohmann::json::array();
    const auto read = [&document] { read_flow_scenario(document, "test"); };
    EXPECT_EQ(problems_of(read), std::vector<std::string>{"/links/1/id"});
    EXPECT_THAT(thrown_by(read), HasSubstr("found " + both[1].dump() + " for a second time"));
  }
}

struct BadCase {
  // The pointer of the changed value, or of the member that is added.
  const char* pointer;
  // The value as JSON; empty if it is removed.
  const char* value;
  // A word in found or expected.
  const char* mentioned;
  // The pointer of the problem.
  const char* where = pointer;
};

TEST(ScenarioJson, BadValuesAreRefusedAtTheirPlace) {
  const BadCase kBadCases[] = {
      {"/links", "", "no such key"},
      {"/links", "{}", ""},
      {"/flow", "[]", "flows"},
      {"/links/0/latency", "1", "latency_s"},
      {"/flows/1/size", "1", ""},
      {"/links/0/bandwidth_bytes_per_s", "-1", "above 0"},
      {"/links/0/bandwidth_bytes_per_s", "0", "above 0"},
      {"/links/0/latency_s", "-1e-6", "from 0"},
      {"/flows/0/bytes", "-5", "from 0"},
      {"/flows/0/bytes", "\"5\"", "number"},
      {"/flows/1/start_s", "-2", "from 0"},
      {"/links/1/id", "\"up\"", "no other link"},
      {"/flows/0/id", "\"first\"", "no other flow", "/flows/1/id"},
      {"/flows/0/route", "[\"upp\"]", "did you mean \"up\"", "/flows/0/route/0"},
      {"/flows/0/route", "[\"up\",\"up\"]", "each link once", "/flows/0/route/1"},
      {"/flows/0/after", "[\"firs\"]", "did you mean \"first\"", "/flows/0/after/0"},
      {"/flows/0/start_s", "1", "both", "/flows/0"},
      {"/flows/0/after", "", "neither", "/flows/0"},
      {"/flows/0/after", "null", "null is as none", "/flows/0"},
      {"/links/0/id", "1.5", "a text or an integer"},
      {"/flows/0/id", "null", "a text or an integer"},
      {"/flows/0/route", "[1.5]", "id of a link", "/flows/0/route/0"},
      {"/flows/0/route", "[1]", "id of a link", "/flows/0/route/0"},
      {"/flows/0/route", "1", "an array of ids"},
      {"/flows/0/after", "[\"second\"]", "second after second"},
  };
  for (const BadCase& bad : kBadCases) {
    SCOPED_TRACE(std::string(bad.pointer) + " " + bad.value);
    auto document = parse_json(kGood, "test");
    const nlohmann::json::json_pointer place(bad.pointer);
    if (*bad.value == '\0') {
      document[place.parent_pointer()].erase(place.back());
    } else {
      document[place] = nlohmann::json::parse(bad.value);
    }
    const auto read = [&document] { read_flow_scenario(document, "test"); };
    const std::vector<Problem> problems = problems_thrown_by(read);
    const auto problem =
        std::find_if(problems.begin(), problems.end(),
                     [&bad](const Problem& each) { return each.where == bad.where; });
    ASSERT_NE(problem, problems.end());
    EXPECT_THAT(problem->found + "; " + to_string(problem->expected), HasSubstr(bad.mentioned));
  }
}

TEST(ScenarioJson, AllProblemsAreReportedAtOnce) {
  const auto document = parse_json(
      R"({"links":[{"id":"a","bandwidth_bytes_per_s":0,"latency_s":-1}],
          "flows":[{"id":"f","bytes":-1,"route":["b"]}]})",
      "test");
  EXPECT_EQ(problems_of([&document] { read_flow_scenario(document, "test"); }).size(), 5U);
}

}  // namespace
}  // namespace shardwright::sim
