// Reading cluster and stack files: what is left out, what is refused and how it is said.
#include "core/spec/cluster_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// The least that a user has to write.
constexpr const char* kAccelerator = R"({
  "schema": "shardwright/accelerator", "version": 1, "name": "chip",
  "matrix": {"bf16_flop_per_s": 1e15},
  "memory": {"capacity_bytes": 80e9, "bandwidth_bytes_per_s": 3e12}})";
constexpr const char* kNode = R"({
  "schema": "shardwright/node", "version": 1, "name": "box", "accelerators": 8,
  "scale_up": {"kind": "switched", "bandwidth_bytes_per_s": 450e9},
  "nic": {"per_node": 8, "bandwidth_bytes_per_s": 50e9}})";
constexpr const char* kFabric = R"({
  "schema": "shardwright/fabric", "version": 1, "name": "net", "kind": "leaf-spine",
  "protocol": "roce", "levels": [{"nodes": 16}, {"nodes": 256, "oversubscription_ratio": 2}]})";
constexpr const char* kStack = R"({
  "schema": "shardwright/stack", "version": 1, "name": "mine", "family": "pytorch"})";

json cluster_document() {
  return {{"schema", "shardwright/cluster"},
          {"version", 1},
          {"name", "mine"},
          {"accelerator", json::parse(kAccelerator)},
          {"node", json::parse(kNode)},
          {"fabric", json::parse(kFabric)},
          {"nodes", 64},
          {"power_usage_effectiveness_ratio", 1.25}};
}

PartLibrary one_part_each() {
  return {.names =
              [](const std::string& folder) {
                return std::vector<std::string>{folder == "accelerators" ? "h100-sxm" : "dgx-h100"};
              },
          .read = [](const std::string&, const std::string&) { return json::parse(kAccelerator); }};
}

ClusterSpec read(const json& document) {
  return read_cluster(document, "mine.json", one_part_each());
}

std::vector<Problem> problems_of(const json& document) {
  try {
    const std::string schema = document.value("schema", "");
    if (schema == "shardwright/stack") {
      read_stack(document, "mine.json");
    } else {
      read(document);
    }
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), "mine.json");
    return error.problems();
  }
  return {};
}

TEST(ClusterJson, AShortFileIsFilledInAndSaysSo) {
  const ClusterSpec cluster = read(cluster_document());
  EXPECT_EQ(cluster.accelerator.memory, gigabytes(80));
  EXPECT_EQ(cluster.node.scale_up.domain, 8);
  EXPECT_THAT(cluster.filled_in,
              ::testing::Contains(HasSubstr("/accelerator/compute_units: 132 filled in")));
  EXPECT_THAT(cluster.filled_in, ::testing::Contains(HasSubstr("/node/scale_up/domain: 8")));
  EXPECT_THAT(cluster.filled_in,
              ::testing::Contains(HasSubstr("/fabric/levels/0/oversubscription_ratio: 1")));
  // By the pointers of the part's own document.
  EXPECT_EQ(cluster.accelerator.sources.at("/compute_units").source, kFilledIn);
  EXPECT_EQ(cluster.accelerator.sources.at("/memory/capacity_bytes").source, kGivenWithoutSource);
  EXPECT_EQ(cluster.accelerator.sources.at("/memory/capacity_bytes").confidence,
            Confidence::Assumed);
  EXPECT_EQ(cluster.fabric.sources.at("/levels/1/oversubscription_ratio").source,
            kGivenWithoutSource);
}

TEST(ClusterJson, AFilledInClusterRoundTripsWithItsReport) {
  const ClusterSpec cluster = read(cluster_document());
  ASSERT_FALSE(cluster.filled_in.empty());
  const ClusterSpec again = read(json::parse(to_json(cluster).dump()));
  EXPECT_TRUE(again == cluster);
  EXPECT_EQ(to_json(again).dump(), to_json(cluster).dump());
}

TEST(ClusterJson, AFigureBringsItsSource) {
  json document = cluster_document();
  document["accelerator"]["memory"]["capacity_bytes"] = {
      {"value", 96e9}, {"source", "sheet"}, {"confidence", "datasheet"}};
  document["accelerator"]["sources"] = {
      {"sheet", {{"title", "The data sheet"}, {"url", "https://example.org/chip"}}}};
  const AcceleratorSpec chip = read(document).accelerator;
  EXPECT_EQ(chip.memory, gigabytes(96));
  EXPECT_EQ(chip.sources.at("/memory/capacity_bytes"),
            (Provenance{"The data sheet, https://example.org/chip", Confidence::Datasheet}));
}

std::vector<std::string> problem_places(const json& document) {
  std::vector<std::string> places;
  try {
    read(document);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) places.push_back(problem.where);
  }
  return places;
}

TEST(ClusterJson, MissingSourcesAreOneProblemWhateverNamesThem) {
  using Places = std::vector<std::string>;
  json document = cluster_document();
  json& chip = document["accelerator"];
  for (const char* key : {"capacity_bytes", "bandwidth_bytes_per_s"}) {
    json& figure = chip["memory"][key];
    figure = {{"value", figure}, {"source", "sheet"}, {"confidence", "datasheet"}};
  }
  EXPECT_EQ(problem_places(document), Places{"/accelerator/sources"});
  chip["sources"] = json::object();
  EXPECT_EQ(problem_places(document), Places{"/accelerator/sources"});
  chip["sources"] = 3;
  EXPECT_EQ(problem_places(document), Places{"/accelerator/sources"});
  chip["sources"] = {{"other", {{"title", "t"}}}};
  EXPECT_EQ(problem_places(document), Places{"/accelerator/memory/bandwidth_bytes_per_s/source"});
}

TEST(ClusterJson, AMissingPartOfAProfileIsOneProblem) {
  for (const char* pointer : {"/accelerator/matrix", "/accelerator/memory", "/node/scale_up",
                              "/node/nic", "/fabric", "/node", "/accelerator"}) {
    json document = cluster_document();
    const json::json_pointer place(pointer);
    document.at(place.parent_pointer()).erase(place.back());
    EXPECT_EQ(problem_places(document), std::vector<std::string>{pointer});
  }
}

TEST(ClusterJson, NodesOfANodeOnlyClusterAreThoseOfItsDomain) {
  json document = cluster_document();
  document["fabric"] = {
      {"schema", "shardwright/fabric"}, {"version", 1}, {"name", "x"}, {"kind", "none"}};
  document.erase("nodes");
  EXPECT_EQ(read(document).nodes, 1);
  document["node"]["scale_up"]["domain"] = 72;
  document["node"]["accelerators"] = 4;
  EXPECT_EQ(read(document).nodes, 18);
  EXPECT_THAT(read(document).filled_in, ::testing::Contains(HasSubstr("/nodes: 18 filled in")));
}

// A change to a valid file, as a JSON patch, and the one problem that it is to bring.
struct BadInput {
  const char* label;
  const char* patch;
  const char* where;
  const char* found;
  const char* expected;
};

void PrintTo(const BadInput& input, std::ostream* stream) {
  *stream << input.label;
}

class BadCluster : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadCluster, IsRefusedWithThePlaceTheFindingAndWhatIsExpected) {
  const BadInput& input = GetParam();
  const std::vector<Problem> problems =
      problems_of(cluster_document().patch(json::parse(input.patch)));
  const auto at_place = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) {
    return problem.where == input.where;
  });
  ASSERT_NE(at_place, problems.end()) << (problems.empty() ? "no problem" : problems[0].where);
  EXPECT_THAT(at_place->found, HasSubstr(input.found));
  EXPECT_THAT(at_place->expected, HasSubstr(input.expected));
  EXPECT_EQ(problems.size(), 1u) << problems.back().where << ": " << problems.back().found;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadCluster,
    ::testing::Values(
        BadInput{
            "capacity as text",
            R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":"80 GB"}])",
            "/accelerator/memory/capacity_bytes", "\"80 GB\"", "a number above 0"},
        BadInput{
            "NaN as text",
            R"([{"op":"replace","path":"/accelerator/memory/bandwidth_bytes_per_s","value":"NaN"}])",
            "/accelerator/memory/bandwidth_bytes_per_s", "\"NaN\"", "a number above 0"},
        BadInput{"negative capacity",
                 R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":-1}])",
                 "/accelerator/memory/capacity_bytes", "-1", "a number above 0"},
        BadInput{"zero peak",
                 R"([{"op":"replace","path":"/accelerator/matrix/bf16_flop_per_s","value":0}])",
                 "/accelerator/matrix/bf16_flop_per_s", "0", "a number above 0"},
        BadInput{"beyond all hardware",
                 R"([{"op":"replace","path":"/accelerator/matrix/bf16_flop_per_s","value":1e300}])",
                 "/accelerator/matrix/bf16_flop_per_s", "1e+300", "at most 1e+30"},
        BadInput{"misspelt key",
                 R"([{"op":"add","path":"/accelerator/memory/bandwith_bytes_per_s","value":1e12}])",
                 "/accelerator/memory/bandwith_bytes_per_s", "an unknown key",
                 "did you mean \"bandwidth_bytes_per_s\"?"},
        BadInput{"misspelt format",
                 R"([{"op":"add","path":"/accelerator/matrix/bf61_flop_per_s","value":1e12}])",
                 "/accelerator/matrix/bf61_flop_per_s", "an unknown key",
                 "did you mean \"bf16_flop_per_s\"?"},
        BadInput{"missing memory",
                 R"([{"op":"remove","path":"/accelerator/memory/capacity_bytes"}])",
                 "/accelerator/memory/capacity_bytes", "no such key", "a number"},
        BadInput{
            "no format that models train in",
            R"([{"op":"replace","path":"/accelerator/matrix","value":{"fp8_flop_per_s":1e13}}])",
            "/accelerator/matrix", "no format", "bf16_flop_per_s"},
        BadInput{"efficiency above one",
                 R"([{"op":"add","path":"/accelerator/efficiency","value":{"matrix_ratio":1.2}}])",
                 "/accelerator/efficiency/matrix_ratio", "1.2", "at most 1"},
        BadInput{
            "idle above design power",
            R"([{"op":"add","path":"/accelerator/power","value":{"design_w":300,"idle_w":400}}])",
            "/accelerator/power/idle_w", "400", "at most the design power of 300"},
        BadInput{"half a compute unit",
                 R"([{"op":"add","path":"/accelerator/compute_units","value":131.5}])",
                 "/accelerator/compute_units", "131.5", "an integer"},
        BadInput{"aliases as a text",
                 R"([{"op":"add","path":"/accelerator/aliases","value":"H100"}])",
                 "/accelerator/aliases", "\"H100\"", "an array of texts"},
        BadInput{"another schema",
                 R"([{"op":"replace","path":"/accelerator/schema","value":"shardwright/node"}])",
                 "/accelerator/schema", "shardwright/node", "\"shardwright/accelerator\""},
        BadInput{"a later version", R"([{"op":"replace","path":"/version","value":2}])", "/version",
                 "2", "an integer from 1 to 1"},
        BadInput{
            "figure without confidence",
            R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":{"value":8e10,"source":"s"}},
                     {"op":"add","path":"/accelerator/sources","value":{"s":{"title":"t"}}}])",
            "/accelerator/memory/capacity_bytes/confidence", "no such key", "one of datasheet"},
        BadInput{
            "figure with unknown confidence",
            R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":{"value":8e10,"source":"s","confidence":"mesured"}},
                     {"op":"add","path":"/accelerator/sources","value":{"s":{"title":"t"}}}])",
            "/accelerator/memory/capacity_bytes/confidence", "mesured",
            "did you mean \"measured\"?"},
        BadInput{
            "figure of an unknown source",
            R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":{"value":8e10,"source":"shet","confidence":"datasheet"}},
                     {"op":"add","path":"/accelerator/sources","value":{"sheet":{"title":"t"}}}])",
            "/accelerator/memory/capacity_bytes/source", "\"shet\"", "did you mean \"sheet\"?"},
        BadInput{
            "figure with a unit",
            R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":{"value":8e10,"source":"s","confidence":"datasheet","unit":"B"}},
                     {"op":"add","path":"/accelerator/sources","value":{"s":{"title":"t"}}}])",
            "/accelerator/memory/capacity_bytes/unit", "an unknown key", "one of"},
        BadInput{
            "negative figure with a source",
            R"([{"op":"replace","path":"/accelerator/memory/capacity_bytes","value":{"value":-8e10,"source":"s","confidence":"datasheet"}},
                     {"op":"add","path":"/accelerator/sources","value":{"s":{"title":"t"}}}])",
            "/accelerator/memory/capacity_bytes/value", "-80000000000.0", "a number above 0"},
        BadInput{
            "one axis of a figure that is a list",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"remove","path":"/fabric/levels"},
                     {"op":"add","path":"/fabric/torus","value":{"value":[4,0,4],"source":"s","confidence":"datasheet"}},
                     {"op":"add","path":"/fabric/sources","value":{"s":{"title":"t"}}}])",
            "/fabric/torus/value/1", "0", "an integer from 1"},
        BadInput{"source without title",
                 R"([{"op":"add","path":"/accelerator/sources","value":{"s":{"url":"u"}}}])",
                 "/accelerator/sources/s/title", "no such key", "a text"},
        BadInput{"no accelerators", R"([{"op":"replace","path":"/node/accelerators","value":0}])",
                 "/node/accelerators", "0", "an integer from 1"},
        BadInput{"domain across a node",
                 R"([{"op":"add","path":"/node/scale_up/domain","value":12}])",
                 "/node/scale_up/domain", "12", "a multiple of the 8 accelerators"},
        BadInput{"domain inside of a node",
                 R"([{"op":"add","path":"/node/scale_up/domain","value":4}])",
                 "/node/scale_up/domain", "4", "a multiple of the 8 accelerators"},
        BadInput{"unknown scale-up",
                 R"([{"op":"replace","path":"/node/scale_up/kind","value":"swiched"}])",
                 "/node/scale_up/kind", "swiched", "did you mean \"switched\"?"},
        BadInput{"ring faster than the link",
                 R"([{"op":"add","path":"/node/scale_up/ring_efficiency_ratio","value":1.01}])",
                 "/node/scale_up/ring_efficiency_ratio", "1.01", "at most 1"},
        BadInput{"switch as a text",
                 R"([{"op":"add","path":"/node/scale_up/in_network_reduction","value":"true"}])",
                 "/node/scale_up/in_network_reduction", "\"true\"", "true or false"},
        BadInput{"latency of hours",
                 R"([{"op":"add","path":"/node/scale_up/latency_s","value":3600}])",
                 "/node/scale_up/latency_s", "3600", "from 0 to 1"},
        BadInput{"NICs without bandwidth",
                 R"([{"op":"remove","path":"/node/nic/bandwidth_bytes_per_s"}])",
                 "/node/nic/bandwidth_bytes_per_s", "no such key", "a number"},
        BadInput{"a fabric that no NIC reaches",
                 R"([{"op":"replace","path":"/node/nic","value":{"per_node":0}}])", "/node",
                 "a cut network", "a node with NICs"},
        BadInput{
            "oversubscription below one",
            R"([{"op":"replace","path":"/fabric/levels/1/oversubscription_ratio","value":0.5}])",
            "/fabric/levels/1/oversubscription_ratio", "0.5", "a number from 1 to"},
        BadInput{"levels that shrink",
                 R"([{"op":"replace","path":"/fabric/levels/1/nodes","value":8}])",
                 "/fabric/levels/1/nodes", "8", "more than the 16 nodes of the level below"},
        BadInput{"no levels", R"([{"op":"replace","path":"/fabric/levels","value":[]}])",
                 "/fabric/levels", "no levels", "at least one level"},
        BadInput{
            "levels of a torus",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"add","path":"/fabric/torus","value":[4,4,4]}])",
            "/fabric/levels", "an array of 2", "only if kind is leaf-spine or rail-optimised"},
        BadInput{"axes of a tree", R"([{"op":"add","path":"/fabric/torus","value":[4,4]}])",
                 "/fabric/torus", "an array of 2", "only if kind is torus"},
        BadInput{
            "blocks of other axes than the torus",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"remove","path":"/fabric/levels"},
                     {"op":"add","path":"/fabric/torus","value":[4,4,4]},{"op":"add","path":"/fabric/torus_block","value":[4,4]}])",
            "/fabric/torus_block", "2 axes", "3, as the torus has"},
        BadInput{
            "blocks that do not divide the torus",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"remove","path":"/fabric/levels"},
                     {"op":"add","path":"/fabric/torus","value":[4,4,4]},{"op":"add","path":"/fabric/torus_block","value":[4,3,4]}])",
            "/fabric/torus_block", "3 nodes along axis 1", "a divisor of the 4 of the torus"},
        BadInput{
            "domains of several nodes on a torus",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"remove","path":"/fabric/levels"},
                     {"op":"add","path":"/fabric/torus","value":[4,4,4]},{"op":"add","path":"/node/scale_up/domain","value":16}])",
            "/node", "a scale-up domain of 16", "that of the 8 of a node"},
        BadInput{"blocks of a tree", R"([{"op":"add","path":"/fabric/torus_block","value":[4,4]}])",
                 "/fabric/torus_block", "an array of 2", "only if kind is torus"},
        BadInput{
            "torus of another size",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"remove","path":"/fabric/levels"},
                     {"op":"add","path":"/fabric/torus","value":[4,4,8]}])",
            "/nodes", "64", "the product 128 of the torus axes"},
        BadInput{
            "an axis of zero",
            R"([{"op":"replace","path":"/fabric/kind","value":"torus"},{"op":"remove","path":"/fabric/levels"},
                     {"op":"add","path":"/fabric/torus","value":[64,0]}])",
            "/fabric/torus/1", "0", "an integer from 1"},
        BadInput{
            "several nodes without a fabric",
            R"([{"op":"replace","path":"/fabric","value":{"schema":"shardwright/fabric","version":1,"name":"n","kind":"none"}}])",
            "/nodes", "64 nodes on a cut network", "at most the 1 nodes"},
        BadInput{"more nodes than the top level joins",
                 R"([{"op":"replace","path":"/nodes","value":257}])", "/nodes",
                 "257 nodes on a cut network",
                 "at most the 256 nodes that the fabric \"net\" joins"},
        BadInput{"negative nodes", R"([{"op":"replace","path":"/nodes","value":-1}])", "/nodes",
                 "-1", "an integer from 0"},
        BadInput{"missing part", R"([{"op":"remove","path":"/fabric"}])", "/fabric", "no such key",
                 "the name of a profile or an object"},
        BadInput{"part of another type", R"([{"op":"replace","path":"/node","value":8}])", "/node",
                 "8", "the name of a profile or an object"},
        BadInput{"part that is not shipped",
                 R"([{"op":"replace","path":"/accelerator","value":"h100-smx"}])", "/accelerator",
                 "\"h100-smx\"", "did you mean \"h100-sxm\"?"},
        BadInput{"effectiveness below one",
                 R"([{"op":"replace","path":"/power_usage_effectiveness_ratio","value":0.9}])",
                 "/power_usage_effectiveness_ratio", "0.9", "from 1 to 10"},
        BadInput{"negative price", R"([{"op":"add","path":"/price_dollars_per_hour","value":-2}])",
                 "/price_dollars_per_hour", "-2", "a number from 0"},
        BadInput{"unknown key of the cluster", R"([{"op":"add","path":"/acelerators","value":8}])",
                 "/acelerators", "an unknown key", "did you mean \"accelerator\"?"}));

TEST(ClusterJson, AllProblemsOfAFileAreReportedAtOnce) {
  json document = cluster_document();
  document["accelerator"]["memory"]["capacity_bytes"] = -1;
  document["node"]["scale_up"]["kind"] = 7;
  document["fabric"]["levels"][1]["oversubscription_ratio"] = 0.5;
  document["nodse"] = 1;
  std::vector<std::string> places;
  for (const Problem& problem : problems_of(document)) places.push_back(problem.where);
  EXPECT_THAT(places, ::testing::UnorderedElementsAre(
                          "/accelerator/memory/capacity_bytes", "/node/scale_up/kind",
                          "/fabric/levels/1/oversubscription_ratio", "/nodse"));
}

// A part that is given by name is a file of its own: its problems say which file, and where in it.
TEST(ClusterJson, AProblemOfANamedPartNamesThePartsFile) {
  PartLibrary library = one_part_each();
  library.read = [](const std::string&, const std::string&) {
    json document = json::parse(kAccelerator);
    document["memory"]["capacity_bytes"] = 0;
    return document;
  };
  json document = cluster_document();
  document["accelerator"] = "h100-sxm";
  try {
    read_cluster(document, "mine.json", library);
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), "mine.json");
    EXPECT_EQ(error.problems().at(0).where, "/accelerator");
    EXPECT_THAT(error.problems().at(0).found,
                HasSubstr("accelerators/h100-sxm.json /memory/capacity_bytes: 0"));
  }
}

TEST(ClusterJson, AFileOfAPartThatIsMissingHidesNoOtherProblem) {
  PartLibrary library = one_part_each();
  library.read = [](const std::string&, const std::string& name) -> json {
    throw InputError(name, {{"", "no such file", "a JSON file"}});
  };
  json document = cluster_document();
  document["accelerator"] = 5;
  document["node"] = "no-node";
  document["fabric"] = "none.json";
  std::vector<std::string> places;
  try {
    read_cluster(document, "mine.json", library);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) places.push_back(problem.where);
    EXPECT_EQ(error.problems().back().found, "none.json: no such file");
  }
  EXPECT_EQ(places, (std::vector<std::string>{"/accelerator", "/node", "/fabric"}));
}

TEST(ClusterJson, AFabricOfAnUnknownKindHasNoProblemsOfAnother) {
  json document = cluster_document();
  document["fabric"]["kind"] = "toruss";
  document["fabric"]["torus"] = {4, 4};
  const std::vector<Problem> problems = problems_of(document);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "/fabric/kind");
}

TEST(ClusterJson, ANumberBeyondDoubleIsNotJson) {
  std::string text = kAccelerator;
  text.replace(text.find("1e15"), 4, "1e999");
  EXPECT_THROW(read_accelerator(parse_json(text, "chip.json"), "chip.json"), InputError);
}

TEST(ClusterJson, ADocumentThatIsNoObjectIsRefused) {
  for (const char* text : {"[]", "3", "null", "\"dgx-h100\"", "{}"}) {
    const json document = json::parse(text);
    EXPECT_THROW(read(document), InputError) << text;
    EXPECT_THROW(read_stack(document, "mine.json"), InputError) << text;
  }
}

struct BadStackInput {
  const char* patch;
  const char* where;
  const char* expected;
};

TEST(StackJson, BadStacksAreRefused) {
  const std::vector<BadStackInput> inputs = {
      {R"([{"op":"add","path":"/fusion","value":{"flash_atention":true}}])",
       "/fusion/flash_atention", "did you mean \"flash_attention\"?"},
      {R"([{"op":"add","path":"/fusion","value":{"norm":1}}])", "/fusion/norm", "true or false"},
      {R"([{"op":"add","path":"/overlap","value":{"tensor_parallel_share_ratio":1.5}}])",
       "/overlap/tensor_parallel_share_ratio", "from 0 to 1"},
      {R"([{"op":"add","path":"/host","value":{"launch_s":-1e-6}}])", "/host/launch_s", "from 0"},
      {R"([{"op":"add","path":"/host","value":{"launch_s":5}}])", "/host/launch_s", "from 0 to 1"},
      {R"([{"op":"add","path":"/host","value":{"prefetch_layers":-1}}])", "/host/prefetch_layers",
       "an integer from 0"},
      {R"([{"op":"add","path":"/gradients","value":{"buckets":"perlayer"}}])", "/gradients/buckets",
       "did you mean \"per-layer\"?"},
      {R"([{"op":"add","path":"/gradients","value":{"bucket_elements":0}}])",
       "/gradients/bucket_elements", "above 0"},
      {R"([{"op":"add","path":"/gradients","value":{"bucket_bytes":0}}])",
       "/gradients/bucket_bytes", "above 0"},
      {R"([{"op":"add","path":"/gradients","value":{"bucket_bytes":2,"bucket_elements":1}}])",
       "/gradients/bucket_bytes", "one of bucket_elements"},
      {R"([{"op":"add","path":"/memory","value":{"fragmentation_ratio":1}}])",
       "/memory/fragmentation_ratio", "from 0 to 0.9"},
      {R"([{"op":"add","path":"/memory","value":[]}])", "/memory", "an object"},
      {R"([{"op":"remove","path":"/name"}])", "/name", "a text"},
      {R"([{"op":"replace","path":"/name","value":""}])", "/name", "a text that is not empty"},
  };
  for (const BadStackInput& input : inputs) {
    const std::vector<Problem> problems =
        problems_of(json::parse(kStack).patch(json::parse(input.patch)));
    ASSERT_EQ(problems.size(), 1u) << input.where;
    EXPECT_EQ(problems[0].where, input.where);
    EXPECT_THAT(problems[0].expected, HasSubstr(input.expected));
  }
}

// Earlier profiles give the bytes of a bucket's gradients, in the format in which they are reduced.
TEST(StackJson, BytesOfABucketAreReadAsElements) {
  for (const bool fp32 : {true, false}) {
    json document = json::parse(kStack);
    const double element = fp32 ? 4.0 : 2.0;
    document["sources"] = {{"paper", {{"title", "a paper"}}}};
    document["gradients"] = {
        {"bucket_bytes",
         {{"value", 40e6 * element}, {"source", "paper"}, {"confidence", "derived"}}},
        {"bucket_bytes_per_replica", 1e6 * element},
        {"fp32_reduction", fp32}};
    const StackSpec stack = read_stack(document, "old.json");
    EXPECT_EQ(stack.gradients.bucket_elements, 40e6);
    EXPECT_EQ(stack.gradients.bucket_elements_per_replica, 1e6);
    EXPECT_EQ(stack.sources.at("/gradients/bucket_elements").source, "a paper");
    EXPECT_EQ(read_stack(json(to_json(stack)), "new.json"), stack);
  }
}

TEST(StackJson, AnEmptyStackIsTheDefaultOneAndSaysWhatWasFilledIn) {
  const StackSpec stack = read_stack(json::parse(kStack), "mine.json");
  const StackSpec defaults;
  EXPECT_EQ(stack.host.launch_time, defaults.host.launch_time);
  EXPECT_EQ(stack.fusion.flash_attention, defaults.fusion.flash_attention);
  EXPECT_THAT(stack.filled_in, ::testing::Contains(HasSubstr("/fusion/flash_attention: true")));
  EXPECT_THAT(stack.filled_in, ::testing::Contains(HasSubstr("/host/launch_s: 5e-06")));
  EXPECT_TRUE(read_stack(json::parse(to_json(stack).dump()), "mine.json") == stack);
}

// Any figures, with or without provenance, survive writing and reading.
// Also figures that say what their absence would, for they have a source.
TEST(StackJson, StatedDefaultsRoundTrip) {
  json document = json::parse(kStack);
  document["sources"]["estimate"] = {{"title", "an estimate"}};
  const auto state = [&](const char* pointer, double value) {
    document[json::json_pointer(pointer)] = {
        {"value", value}, {"source", "estimate"}, {"confidence", "assumed"}};
  };
  state("/fusion/attention_kernel_ratio", 1.0);
  state("/fusion/hopper_attention_kernel_ratio", 1.0);
  state("/overlap/expert_parallel_share_ratio", 0.0);
  state("/host/module_s", 0.0);
  state("/gradients/bucket_elements_per_replica", 0.0);
  const StackSpec stack = read_stack(document, "mine.json");
  EXPECT_EQ(read_stack(to_json(stack), "again.json"), stack);
}

TEST(ClusterJson, RandomClustersRoundTrip) {
  const ClusterSpec base = read(cluster_document());
  EXPECT_TRUE(rc::check([&base] {
    ClusterSpec cluster = base;
    const auto positive = [] {
      return static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000'000)) /
             static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1'000'000));
    };
    cluster.accelerator.memory_bandwidth = BytesPerSecond(positive());
    cluster.accelerator.efficiency.matrix = 1.0 / (1.0 + positive());
    cluster.accelerator.efficiency.kernel_overhead = Seconds(1.0 / (1.0 + positive()));
    cluster.node.scale_up.bandwidth = BytesPerSecond(positive());
    cluster.fabric.levels[1].oversubscription = 1.0 + 1.0 / (1.0 + positive());
    const auto letters = rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
    cluster.accelerator.sources["/memory/bandwidth_bytes_per_s"] = {
        *letters, Confidence(*rc::gen::inRange(0, 5))};
    const std::string text = to_json(cluster).dump();
    RC_ASSERT(read(json::parse(text)) == cluster);
  }));
}

}  // namespace
}  // namespace shardwright
