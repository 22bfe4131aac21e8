#include "core/spec/scenario.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

nlohmann::json by_name() {
  return nlohmann::json::parse(R"({"schema": "shardwright/plan", "version": 1,
      "model": "llama3-8b", "cluster": "dgx-h100", "stack": "megatron-core",
      "plan": {"dp": 4, "tp": 2, "pp": 1, "micro_batch": 1, "global_batch": 16, "seq_len": 4096}})");
}

nlohmann::json written(const Scenario& scenario) {
  return nlohmann::json::parse(to_json(scenario).dump());
}

TEST(Scenario, NamesMeanTheShippedDocuments) {
  const Scenario scenario = read_scenario(by_name(), "plan.json");
  EXPECT_EQ(scenario.model, load_model("llama3-8b"));
  EXPECT_EQ(scenario.cluster, load_cluster("dgx-h100"));
  EXPECT_EQ(scenario.stack, load_stack("megatron-core"));
  EXPECT_EQ(scenario.plan.tp, 2);
}

TEST(Scenario, WhatIsWrittenNamesNothingAndReadsBackEqual) {
  Scenario scenario = read_scenario(by_name(), "plan.json");
  for (const std::string& cluster : shipped_clusters()) {
    SCOPED_TRACE(cluster);
    scenario.cluster = load_cluster(cluster);
    scenario.plan.precision = scenario.cluster.accelerator.matrix.bf16 > FlopPerSecond(0)
                                  ? Precision::Bf16
                                  : Precision::Fp16;
    const nlohmann::json document = written(scenario);
    for (const char* part : {"model", "cluster", "stack", "plan"}) {
      EXPECT_TRUE(document.at(part).is_object()) << part;
    }
    EXPECT_EQ(read_scenario(document, "plan.json"), scenario);
  }
}

// One change to a good file and the place of the problem that it must give.
struct BadFile {
  const char* name;
  const char* pointer;
  std::function<void(nlohmann::json&)> change;
};

std::vector<BadFile> bad_files() {
  using nlohmann::json;
  return {
      {"NotAnObject", "", [](json& j) { j = json::array({1}); }},
      {"NoSchema", "/schema", [](json& j) { j.erase("schema"); }},
      {"AnotherSchema", "/schema", [](json& j) { j["schema"] = "shardwright/model"; }},
      {"NoVersion", "/version", [](json& j) { j.erase("version"); }},
      {"ALaterVersion", "/version", [](json& j) { j["version"] = 2; }},
      {"NoModel", "/model", [](json& j) { j.erase("model"); }},
      {"ModelAsNumber", "/model", [](json& j) { j["model"] = 8; }},
      {"UnknownModel", "/model", [](json& j) { j["model"] = "lama3-8b"; }},
      {"ModelByPath", "/model", [](json& j) { j["model"] = "models/llama3-8b.json"; }},
      {"ModelFromStandardInput", "/model", [](json& j) { j["model"] = "-"; }},
      {"BrokenModel", "/model/layers", [](json& j) { j["model"]["layers"] = -1; }},
      {"UnknownCluster", "/cluster", [](json& j) { j["cluster"] = "dgx-h1000"; }},
      {"ClusterByDevice", "/cluster", [](json& j) { j["cluster"] = "/dev/zero"; }},
      {"NoMemory", "/cluster/accelerator/memory/capacity_bytes",
       [](json& j) { j["cluster"]["accelerator"]["memory"]["capacity_bytes"] = 0; }},
      {"UnknownStack", "/stack", [](json& j) { j["stack"] = "megatron-kern"; }},
      {"StackAsList", "/stack", [](json& j) { j["stack"] = json::array({"megatron-core"}); }},
      {"NoPlan", "/plan", [](json& j) { j.erase("plan"); }},
      {"PlanByName", "/plan", [](json& j) { j["plan"] = "best"; }},
      {"BrokenPlan", "/plan/tp", [](json& j) { j["plan"]["tp"] = 0; }},
      {"UnknownKey", "/modle", [](json& j) { j["modle"] = "llama3-8b"; }},
      {"PlanForAnotherModel", "/plan/tp", [](json& j) { j["plan"]["tp"] = 64; }},
      {"PlanForAnotherCluster", "/plan/precision",
       [](json& j) {
         j["cluster"] = "dgx-a100";
         j["plan"]["precision"] = "fp8";
       }},
      {"BatchThatDoesNotDivide", "/plan/global_batch",
       [](json& j) { j["plan"]["global_batch"] = 17; }},
  };
}

TEST(Scenario, ReportsWhatIsWrongAtItsPlace) {
  const nlohmann::json good = written(read_scenario(by_name(), "plan.json"));
  for (const BadFile& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    nlohmann::json document = good;
    bad.change(document);
    const auto read = [&document] { read_scenario(document, "plan.json"); };
    EXPECT_THAT(problems_of(read), Contains(StartsWith(bad.pointer)));
    EXPECT_THAT(thrown_by(read), StartsWith("plan.json: "));
  }
}

TEST(Scenario, ReportsTheProblemsOfAllPartsAtOnce) {
  nlohmann::json document = by_name();
  document["model"] = "lama3-8b";
  document["stack"] = 1;
  document["plan"]["seq_len"] = 0;
  const auto read = [&document] { read_scenario(document, "plan.json"); };
  for (const char* pointer : {"/model", "/stack", "/plan/seq_len"})
    EXPECT_THAT(problems_of(read), Contains(StartsWith(pointer)));
  EXPECT_THAT(thrown_by(read), HasSubstr("llama3-8b")) << "no suggestion";
}

TEST(Scenario, DistinguishesANullFromAMissingPart) {
  nlohmann::json document = by_name();
  const auto read = [&document] { read_scenario(document, "plan.json"); };
  document.erase("stack");
  EXPECT_THAT(thrown_by(read), HasSubstr("/stack: found no such key"));
  document["stack"] = nullptr;
  EXPECT_THAT(thrown_by(read), HasSubstr("/stack: found null"));
}

// Files that are no JSON at all, or not quite.
TEST(Scenario, RefusesBrokenText) {
  const std::string good = by_name().dump();
  const std::vector<std::string> texts = {
      "",
      " ",
      good.substr(0, good.size() / 2),
      good + "}",
      std::string("\0\1\2\3", 4),
      "\xff\xfe{}",
      std::string(100'000, '['),
      R"({"plan": {"dp": NaN}})",
      R"({"plan": {"dp": 1e999}})",
      R"({"plan": {}, "plan": {}})",
      "null",
  };
  for (const std::string& text : texts) {
    EXPECT_THROW(read_scenario(parse_json(text, "plan.json"), "plan.json"), InputError)
        << text.substr(0, 40);
  }
}

TEST(ProgramFingerprint, DistinguishesProgramsWhateverTheyCost) {
  const Scenario scenario{
      load_model("tiny-llama"), load_cluster("dgx-h100"), load_stack("shardwright"), {}};
  const std::string fingerprint = program_fingerprint(to_json(scenario));
  // calibrate reads back what a run writes.
  EXPECT_EQ(program_fingerprint(nlohmann::json::parse(to_json(scenario).dump(2))), fingerprint);
  Scenario other = scenario;
  other.cluster = load_cluster("h100-pcie-server");
  EXPECT_EQ(program_fingerprint(to_json(other)), fingerprint);
  other.plan.micro_batch *= 2;
  EXPECT_NE(program_fingerprint(to_json(other)), fingerprint);
  other = scenario;
  other.model.layers += 1;
  EXPECT_NE(program_fingerprint(to_json(other)), fingerprint);
  other = scenario;
  other.stack = load_stack("megatron-core");
  EXPECT_NE(program_fingerprint(to_json(other)), fingerprint);
}

}  // namespace
}  // namespace shardwright
