#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A folder with a plan of two nodes on leaves of four at 8:1, and one of one node on another
// fabric.
class NetworkCommand : public testing::Test {
 protected:
  void SetUp() override {
    const std::string plan =
        "simulate --model llama3-8b --cluster dgx-h100 --seq-len 4096 --global-batch 16 ";
    const std::string levels =
        R"(--set cluster.fabric.levels=[{"nodes":4,"oversubscription_ratio":8},{"nodes":64}] )";
    ASSERT_EQ(run_command(plan + levels + "--set cluster.nodes=8 --gpus 16 --zero 3 --out " +
                          folder_.file("fsdp.json"))
                  .exit_code,
              0);
    ASSERT_EQ(run_command(plan + "--gpus 8 --tp 8 --out " + folder_.file("other.json")).exit_code,
              0);
  }

  // Runs jobs with these nodes.
  CommandResult run(const std::string& first, const std::string& second,
                    const std::string& options = "", const std::string& plan = "fsdp.json",
                    const std::string& storage = "[]") const {
    const std::string text = R"({"schema": "shardwright/jobs", "version": 1, "training": [
        {"name": "first", "plan": "fsdp.json", "nodes": ")" +
                             first + R"("}, {"name": "second", "plan": ")" + plan +
                             R"(", "nodes": ")" + second + R"("}], "storage": )" + storage + "}";
    return run_command("network " + folder_.write("jobs.json", text) + options);
  }

  ScratchFolder folder_;
};

TEST_F(NetworkCommand, NamesSlowdownsAndSharedLinks) {
  const CommandResult result = run("0,4", "1,5");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("2 jobs on the network of dgx-h100"));
  EXPECT_THAT(result.output, HasSubstr("level 1, switch 0, up"));
  const json document = json::parse(run("0,4", "1,5", " --json -").output);
  for (const json& job : document["jobs"]) {
    EXPECT_GT(job["slowdown_ratio"], 1.0);
    EXPECT_EQ(job["count"], 4);
  }
  EXPECT_EQ(document["links"].size(), 4U);
  for (const json& link : document["links"]) {
    ASSERT_EQ(link["shares"].size(), 2U);
    EXPECT_NEAR(link["shares"][0]["bytes_per_s"].get<double>() /
                    link["shares"][1]["bytes_per_s"].get<double>(),
                1.0, 1e-6);
  }
}

TEST_F(NetworkCommand, PlacesAJobThatNamesNoNodesBelowOneLeaf) {
  const json document = json::parse(run("0,4", "", " --json -").output);
  EXPECT_EQ(document["jobs"][1]["nodes"], (json{1, 2}));
  EXPECT_TRUE(document["jobs"][1]["placed"]);
  EXPECT_EQ(document["links"], json::array());
  EXPECT_THAT(run("0,4", "").output, HasSubstr("Placed on the nodes that share the fewest links"));
}

TEST_F(NetworkCommand, NamesWhatDoesNotFit) {
  struct Case {
    CommandResult result;
    std::string says;
  };
  const std::string storage =
      R"([{"name": "disk", "direction": "write", "bytes": 1e9, "nodes": "0", "servers": "0"}])";
  for (const Case& each :
       {Case{run("0,4", "1"), "/training/1/nodes: found 1 node; expected 2"},
        Case{run("0,4", "4,5"), "/training/1/nodes: found node 4, which \"first\" has"},
        Case{run("0,4", "1,8"), "/training/1/nodes: found \"1,8\""},
        Case{run("0,4", "1", "", "other.json"), "/training/1/plan: found cluster \"dgx-h100\""},
        Case{run("0,4", "1,5", "", "none.json"), "none.json"},
        Case{run("0,4", "1,5", "", "fsdp.json", storage),
             "/storage/0/servers: found node 0, which \"first\" has"}}) {
    EXPECT_EQ(each.result.exit_code, 2) << each.says;
    EXPECT_THAT(each.result.errors, HasSubstr(each.says));
  }
}

}  // namespace
}  // namespace shardwright::cli
