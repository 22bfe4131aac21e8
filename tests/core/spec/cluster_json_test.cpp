// Reading cluster and stack files: what is left out, what is refused and how it is said.
#include "core/spec/cluster_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"
#include "tests/thrown.hpp"

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

// Returns the problems of a cluster or stack.
std::vector<Problem> all_problems(const json& document) {
  try {
    if (document.value("schema", "") == "shardwright/stack") {
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

std::vector<std::string> problem_places(const json& document) {
  return problems_of([&document] { read(document); });
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

// One change to a valid document, and the one problem that it brings.
struct BadValue {
  const char* place;
  // The JSON text of the value; nullptr removes the key.
  const char* value;
  const char* expected;
  // A part of what the problem says was found.
  const char* found = value;
  // The place of the problem.
  const char* where = place;
};

void expect_refusal(json document, const BadValue& bad) {
  SCOPED_TRACE(std::string(bad.place) + ": " + (bad.value == nullptr ? "removed" : bad.value));
  const json::json_pointer place(bad.place);
  if (bad.value == nullptr) {
    document.at(place.parent_pointer()).erase(place.back());
  } else {
    document[place] = json::parse(bad.value);
  }
  const std::vector<Problem> problems = all_problems(document);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, bad.where);
  EXPECT_THAT(problems[0].found, HasSubstr(bad.found));
  EXPECT_THAT(to_string(problems[0].expected), HasSubstr(bad.expected));
}

TEST(ClusterJson, BadValuesAreRefusedAtTheirPlace) {
  const BadValue kBadValues[] = {
      {"/accelerator/memory/capacity_bytes", R"("80 GB")", "a number above 0"},
      {"/accelerator/memory/bandwidth_bytes_per_s", R"("NaN")", "a number above 0"},
      {"/accelerator/memory/capacity_bytes", "-1", "a number above 0"},
      {"/accelerator/matrix/bf16_flop_per_s", "0", "a number above 0"},
      {"/accelerator/matrix/bf16_flop_per_s", "1e300", "at most 1e+30", "1e+300"},
      {"/accelerator/memory/bandwith_bytes_per_s", "1e12",
       R"(did you mean "bandwidth_bytes_per_s"?)", "an unknown key"},
      {"/accelerator/matrix/bf61_flop_per_s", "1e12", R"(did you mean "bf16_flop_per_s"?)",
       "an unknown key"},
      {"/accelerator/memory/capacity_bytes", nullptr, "a number", "no such key"},
      {"/accelerator/matrix", R"({"fp8_flop_per_s":1e13})", "bf16_flop_per_s", "no format"},
      {"/accelerator/efficiency/matrix_ratio", "1.2", "at most 1"},
      {"/accelerator/power", R"({"design_w":300,"idle_w":400})", "at most the design power of 300",
       "400", "/accelerator/power/idle_w"},
      {"/accelerator/compute_units", "131.5", "an integer"},
      {"/accelerator/aliases", R"("H100")", "an array of texts"},
      {"/accelerator/schema", R"("shardwright/node")", R"("shardwright/accelerator")",
       "shardwright/node"},
      {"/version", "2", "1"},
      {"/accelerator/sources", R"({"s":{"url":"u"}})", "a text", "no such key",
       "/accelerator/sources/s/title"},
      {"/node/accelerators", "0", "an integer from 1"},
      {"/node/scale_up/domain", "12", "a multiple of the 8 accelerators"},
      {"/node/scale_up/domain", "4", "a multiple of the 8 accelerators"},
      {"/node/scale_up/kind", R"("swiched")", R"(did you mean "switched"?)", "swiched"},
      {"/node/scale_up/ring_efficiency_ratio", "1.01", "at most 1"},
      {"/node/scale_up/in_network_reduction", R"("true")", "true or false"},
      {"/node/scale_up/latency_s", "3600", "from 0 to 1"},
      {"/node/nic/bandwidth_bytes_per_s", nullptr, "a number", "no such key"},
      {"/node/nic", R"({"per_node":0})", "a node with NICs", "a cut network", "/node"},
      {"/fabric/levels/1/oversubscription_ratio", "0.5", "a number from 1 to"},
      {"/fabric/levels/1/nodes", "8", "more than the 16 nodes of the level below"},
      {"/fabric/levels", "[]", "at least one level", "no levels"},
      {"/fabric/torus", "[4,4]", "only if kind is torus", "an array of 2"},
      {"/fabric/torus_block", "[4,4]", "only if kind is torus", "an array of 2"},
      {"/fabric", R"({"schema":"shardwright/fabric","version":1,"name":"n","kind":"none"})",
       "at most the 1 nodes", "64 nodes on a cut network", "/nodes"},
      {"/nodes", "257", R"(at most the 256 nodes that the fabric "net" joins)",
       "257 nodes on a cut network"},
      {"/nodes", "-1", "an integer from 0"},
      {"/fabric", nullptr, "the name of a profile or an object", "no such key"},
      {"/node", "8", "the name of a profile or an object"},
      {"/accelerator", R"("h100-smx")", R"(did you mean "h100-sxm"?)"},
      {"/power_usage_effectiveness_ratio", "0.9", "from 1 to 10"},
      {"/price_dollars_per_hour", "-2", "a number from 0"},
      {"/acelerators", "8", R"(did you mean "accelerator"?)", "an unknown key"},
  };
  for (const BadValue& bad : kBadValues) expect_refusal(cluster_document(), bad);
}

TEST(ClusterJson, FiguresWithABadSourceOrValueAreRefused) {
  json document = cluster_document();
  document["accelerator"]["sources"] = {{"sheet", {{"title", "t"}}}};
  const char* const kCapacity = "/accelerator/memory/capacity_bytes";
  const BadValue kBadFigures[] = {
      {kCapacity, R"({"value": 8e10, "source": "sheet"})", "one of datasheet", "no such key",
       "/accelerator/memory/capacity_bytes/confidence"},
      {kCapacity, R"({"value": 8e10, "source": "sheet", "confidence": "mesured"})",
       R"(did you mean "measured"?)", "mesured", "/accelerator/memory/capacity_bytes/confidence"},
      {kCapacity, R"({"value": 8e10, "source": "shet", "confidence": "datasheet"})",
       R"(did you mean "sheet"?)", R"("shet")", "/accelerator/memory/capacity_bytes/source"},
      {kCapacity, R"({"value": 8e10, "source": "sheet", "confidence": "datasheet", "unit": "B"})",
       "one of", "an unknown key", "/accelerator/memory/capacity_bytes/unit"},
      {kCapacity, R"({"value": -8e10, "source": "sheet", "confidence": "datasheet"})",
       "a number above 0", "-80000000000.0", "/accelerator/memory/capacity_bytes/value"},
  };
  for (const BadValue& bad : kBadFigures) expect_refusal(document, bad);
}

TEST(ClusterJson, BadToriAreRefused) {
  json document = cluster_document();
  json& fabric = document["fabric"];
  fabric.erase("levels");
  fabric["kind"] = "torus";
  fabric["torus"] = {4, 4, 4};
  fabric["sources"] = {{"sheet", {{"title", "t"}}}};
  const BadValue kBadTori[] = {
      {"/fabric/levels", R"([{"nodes": 16}, {"nodes": 256}])",
       "only if kind is leaf-spine or rail-optimised", "an array of 2"},
      {"/fabric/torus_block", "[4,4]", "3, as the torus has", "2 axes"},
      {"/fabric/torus_block", "[4,3,4]", "a divisor of the 4 of the torus", "3 nodes along axis 1"},
      {"/node/scale_up/domain", "16", "that of the 8 of a node", "a scale-up domain of 16",
       "/node"},
      {"/fabric/torus", "[4,4,8]", "the product 128 of the torus axes", "64", "/nodes"},
      {"/fabric/torus", "[64,0]", "an integer from 1", "0", "/fabric/torus/1"},
      {"/fabric/torus", R"({"value": [4,0,4], "source": "sheet", "confidence": "datasheet"})",
       "an integer from 1", "0", "/fabric/torus/value/1"},
  };
  for (const BadValue& bad : kBadTori) expect_refusal(document, bad);
}

TEST(ClusterJson, AllProblemsOfAFileAreReportedAtOnce) {
  json document = cluster_document();
  document["accelerator"]["memory"]["capacity_bytes"] = -1;
  document["node"]["scale_up"]["kind"] = 7;
  document["fabric"]["levels"][1]["oversubscription_ratio"] = 0.5;
  document["nodse"] = 1;
  EXPECT_THAT(
      problem_places(document),
      ::testing::UnorderedElementsAre("/accelerator/memory/capacity_bytes", "/node/scale_up/kind",
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
  const std::vector<Problem> problems =
      problems_thrown_by([&] { read_cluster(document, "mine.json", library); });
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].where, "/accelerator");
  EXPECT_THAT(problems[0].found, HasSubstr("accelerators/h100-sxm.json /memory/capacity_bytes: 0"));
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
  const auto load = [&] { read_cluster(document, "mine.json", library); };
  EXPECT_EQ(problems_of(load), (std::vector<std::string>{"/accelerator", "/node", "/fabric"}));
  EXPECT_THAT(thrown_by(load), HasSubstr("/fabric: found none.json: no such file"));
}

TEST(ClusterJson, AFabricOfAnUnknownKindHasNoProblemsOfAnother) {
  json document = cluster_document();
  document["fabric"]["kind"] = "toruss";
  document["fabric"]["torus"] = {4, 4};
  EXPECT_EQ(problem_places(document), std::vector<std::string>{"/fabric/kind"});
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

TEST(StackJson, BadStacksAreRefused) {
  const BadValue kBadValues[] = {
      {"/fusion/flash_atention", "true", R"(did you mean "flash_attention"?)", "an unknown key"},
      {"/fusion/norm", "1", "true or false"},
      {"/overlap/tensor_parallel_share_ratio", "1.5", "from 0 to 1"},
      {"/host/launch_s", "-1e-06", "from 0"},
      {"/host/launch_s", "5", "from 0 to 1"},
      {"/host/prefetch_layers", "-1", "an integer from 0"},
      {"/gradients/buckets", R"("perlayer")", R"(did you mean "per-layer"?)"},
      {"/gradients/bucket_elements", "0", "above 0"},
      {"/gradients/bucket_bytes", "0", "above 0"},
      {"/gradients", R"({"bucket_bytes": 2, "bucket_elements": 1})", "one of bucket_elements",
       "an unknown key", "/gradients/bucket_bytes"},
      {"/memory/fragmentation_ratio", "1", "from 0 to 0.9"},
      {"/memory", "[]", "an object", "an array"},
      {"/name", nullptr, "a text", "no such key"},
      {"/name", R"("")", "a text that is not empty"},
  };
  for (const BadValue& bad : kBadValues) expect_refusal(json::parse(kStack), bad);
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

TEST(StackJson, GraphsUpToTheDispatchAreReadAsTheirModules) {
  for (const bool both : {true, false}) {
    json document = json::parse(kStack);
    document["host"] = {{"graphs_to_dispatch", both}};
    const StackSpec stack = read_stack(document, "old.json");
    EXPECT_EQ(stack.host.graph_modules.contains(GraphModule::Attention), both);
    EXPECT_EQ(stack.host.graph_modules.contains(GraphModule::Router), both);
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

// A figure that states the default has a source, which must not be lost.
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
