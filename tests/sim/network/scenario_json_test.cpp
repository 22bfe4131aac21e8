#include "sim/network/scenario_json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"

namespace shardwright::sim {
namespace {

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

// They are the same in either order.
TEST(ScenarioJson, AnIntegerAndItsTextAreTheSameId) {
  for (const char* ids : {R"([1, "1"])", R"(["1", 1])", R"([1, 1])"}) {
    auto document = parse_json(kGood, "test");
    const auto both = nlohmann::json::parse(ids);
    for (std::size_t i = 0; i < 2; ++i) document["links"][i]["id"] = both[i];
    document["flows"][0]["route"] = document["flows"][1]["route"] = nlohmann::json::array();
    try {
      read_flow_scenario(document, "test");
      FAIL() << ids;
    } catch (const InputError& error) {
      ASSERT_EQ(error.problems().size(), 1U) << error.what();
      EXPECT_EQ(error.problems()[0].where, "/links/1/id");
      EXPECT_EQ(error.problems()[0].found, both[1].dump() + " for a second time");
    }
  }
}

struct BadCase {
  const char* name;
  // The pointer of the changed value, or of the member that is added.
  const char* pointer;
  // The value as JSON; empty if it is removed.
  const char* value;
  // The pointer of the problem.
  const char* where;
  // A word in found or expected.
  const char* mentioned;
};

class BadScenario : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadScenario, IsRefusedAtItsPlace) {
  const BadCase& bad = GetParam();
  auto document = parse_json(kGood, "test");
  const nlohmann::json::json_pointer place(bad.pointer);
  if (*bad.value == '\0') {
    document[place.parent_pointer()].erase(place.back());
  } else {
    document[place] = nlohmann::json::parse(bad.value);
  }
  try {
    read_flow_scenario(document, "test");
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    const auto& problems = error.problems();
    const auto problem = std::find_if(problems.begin(), problems.end(),
                                      [&](const Problem& p) { return p.where == bad.where; });
    ASSERT_NE(problem, problems.end()) << error.what();
    EXPECT_NE((problem->found + " | " + problem->expected).find(bad.mentioned), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    ScenarioJson, BadScenario,
    ::testing::Values(
        BadCase{"NoLinks", "/links", "", "/links", "no such key"},
        BadCase{"LinksNoList", "/links", "{}", "/links", ""},
        BadCase{"UnknownKey", "/flow", "[]", "/flow", "flows"},
        BadCase{"UnknownLinkKey", "/links/0/latency", "1", "/links/0/latency", "latency_s"},
        BadCase{"UnknownFlowKey", "/flows/1/size", "1", "/flows/1/size", ""},
        BadCase{"NegativeBandwidth", "/links/0/bandwidth_bytes_per_s", "-1",
                "/links/0/bandwidth_bytes_per_s", "above 0"},
        BadCase{"ZeroBandwidth", "/links/0/bandwidth_bytes_per_s", "0",
                "/links/0/bandwidth_bytes_per_s", "above 0"},
        BadCase{"NegativeLatency", "/links/0/latency_s", "-1e-6", "/links/0/latency_s", "from 0"},
        BadCase{"NegativeBytes", "/flows/0/bytes", "-5", "/flows/0/bytes", "from 0"},
        BadCase{"BytesAsText", "/flows/0/bytes", "\"5\"", "/flows/0/bytes", "number"},
        BadCase{"NegativeStart", "/flows/1/start_s", "-2", "/flows/1/start_s", "from 0"},
        BadCase{"LinkTwice", "/links/1/id", "\"up\"", "/links/1/id", "no other link"},
        BadCase{"FlowTwice", "/flows/0/id", "\"first\"", "/flows/1/id", "no other flow"},
        BadCase{"UnknownLink", "/flows/0/route", "[\"upp\"]", "/flows/0/route/0",
                "did you mean \"up\""},
        BadCase{"LinkTwiceInRoute", "/flows/0/route", "[\"up\",\"up\"]", "/flows/0/route/1",
                "each link once"},
        BadCase{"UnknownFlow", "/flows/0/after", "[\"firs\"]", "/flows/0/after/0",
                "did you mean \"first\""},
        BadCase{"StartAndAfter", "/flows/0/start_s", "1", "/flows/0", "both"},
        BadCase{"NeitherStartNorAfter", "/flows/0/after", "", "/flows/0", "neither"},
        BadCase{"NullAfter", "/flows/0/after", "null", "/flows/0", "null is as none"},
        BadCase{"FractionAsId", "/links/0/id", "1.5", "/links/0/id", "a text or an integer"},
        BadCase{"NullAsId", "/flows/0/id", "null", "/flows/0/id", "a text or an integer"},
        BadCase{"FractionInRoute", "/flows/0/route", "[1.5]", "/flows/0/route/0", "id of a link"},
        BadCase{"UnknownNumber", "/flows/0/route", "[1]", "/flows/0/route/0", "id of a link"},
        BadCase{"RouteNoList", "/flows/0/route", "1", "/flows/0/route", "an array of ids"},
        BadCase{"AfterItself", "/flows/0/after", "[\"second\"]", "/flows/0/after",
                "second after second"}),
    [](const auto& tested) { return tested.param.name; });

TEST(ScenarioJson, AllProblemsAreReportedAtOnce) {
  const auto document = parse_json(
      R"({"links":[{"id":"a","bandwidth_bytes_per_s":0,"latency_s":-1}],
          "flows":[{"id":"f","bytes":-1,"route":["b"]}]})",
      "test");
  try {
    read_flow_scenario(document, "test");
    FAIL() << "was accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 5U) << error.what();
  }
}

}  // namespace
}  // namespace shardwright::sim
