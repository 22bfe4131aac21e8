// Pools of a cluster in files, and the rules of plans that place stages on them.
#include "core/spec/pools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two nodes of H100, and four of A100 as a second pool.
json mixed_document() {
  const ClusterSpec first = load_cluster("dgx-h100"), second = load_cluster("dgx-a100");
  json document = json(to_json(first));
  document["name"] = "mixed";
  document["nodes"] = 2;
  document["pools"] = json::array({{{"name", "old"},
                                    {"accelerator", json(to_json(second.accelerator))},
                                    {"node", json(to_json(second.node))},
                                    {"fabric", json(to_json(second.fabric))},
                                    {"nodes", 4}}});
  document["between_pools"] = {{"bandwidth_bytes_per_s", 12.5e9}, {"latency_s", 0.001}};
  return document;
}

ClusterSpec read_mixed(const json& document) {
  return read_cluster(document, "mixed.json",
                      {[](const std::string&) { return std::vector<std::string>(); }, {}});
}

TEST(Pools, AClusterIsReadAsItIsWritten) {
  const ClusterSpec cluster = read_mixed(mixed_document());
  ASSERT_EQ(cluster.pools.size(), 1U);
  EXPECT_EQ(cluster.pools[0].name, "old");
  EXPECT_EQ(cluster.pools[0].nodes, 4);
  EXPECT_EQ(cluster.pools[0].accelerator, load_cluster("dgx-a100").accelerator);
  EXPECT_EQ(cluster.between_pools, (PoolNetwork{BytesPerSecond(12.5e9), Seconds(0.001)}));
  EXPECT_EQ(read_mixed(json(to_json(cluster))), cluster);
}

TEST(Pools, AClusterOfOnePoolIsWrittenWithoutThem) {
  const json document = json(to_json(load_cluster("dgx-h100")));
  EXPECT_FALSE(document.contains("pools"));
  EXPECT_FALSE(document.contains("between_pools"));
}

TEST(Pools, FilesNameWhatPoolsLack) {
  json document = mixed_document();
  document["pools"][0]["name"] = "mixed";
  document["pools"][0]["fabric"] = {
      {"schema", "shardwright/fabric"}, {"version", 1}, {"name", "cut"}, {"kind", "none"}};
  EXPECT_THAT(problems_of([&] { read_mixed(document); }),
              ElementsAre("/pools/0/name", "/pools/0/fabric"));
  document = mixed_document();
  document["pools"][0].erase("node");
  document["pools"][0]["colour"] = "blue";
  EXPECT_THAT(problems_of([&] { read_mixed(document); }),
              ::testing::UnorderedElementsAre("/pools/0/node", "/pools/0/colour"));
}

TEST(Pools, APoolIsAClusterOfItsOwn) {
  const ClusterSpec cluster = read_mixed(mixed_document());
  const auto old = pool_cluster(cluster, "old"), first = pool_cluster(cluster, "mixed");
  ASSERT_TRUE(old && first);
  EXPECT_EQ(old->accelerator, cluster.pools[0].accelerator);
  EXPECT_EQ(old->most_accelerators(), 32);
  EXPECT_EQ(first->accelerator, cluster.accelerator);
  EXPECT_TRUE(old->pools.empty() && first->pools.empty());
  EXPECT_FALSE(pool_cluster(cluster, "new"));
}

struct BrokenPlacement {
  const char* place;
  const char* found;
  std::function<void(Plan&)> change;
};

// Three stages of eight ranks: one on the first pool, two on the second.
Plan sound_placement() {
  Plan plan;
  plan.tp = 8;
  plan.pp = 3;
  plan.global_batch = 8;
  plan.stage_pools = {"mixed", "old", "old"};
  return plan;
}

TEST(Pools, PlansPlaceStagesOnPoolsThatHoldThem) {
  const ClusterSpec cluster = read_mixed(mixed_document());
  ModelSpec model;
  model.layers = 12;
  model.hidden = 1024;
  model.attention = {.heads = 8, .kv_heads = 8, .head_dim = 128};
  model.mlp.ffn_hidden = 4096;
  const auto problems = [&](const Plan& plan) { return broken_rules(model, &cluster, plan); };
  ASSERT_TRUE(problems(sound_placement()).empty());
  const std::vector<BrokenPlacement> broken = {
      {"/stage_pools", "2 names", [](Plan& p) { p.stage_pools.pop_back(); }},
      {"/stage_pools/1", "\"new\"",
       [](Plan& p) {
         p.stage_pools = {"mixed", "new", "old"};
       }},
      {"/stage_pools/0", "again",
       [](Plan& p) {
         p.stage_pools = {"old", "mixed", "old"};
       }},
      {"/stage_pools/0", "24 ranks",
       [](Plan& p) {
         p.stage_pools = {"mixed", "mixed", "mixed"};
       }},
      {"/stage_pools/1", "4 ranks before", [](Plan& p) { p.tp = 4; }},
      {"/stage_pools/1", "fp8", [](Plan& p) { p.precision = Precision::Fp8; }},
      {"/rank_order", "apart",
       [](Plan& p) { std::swap(p.rank_order.front(), p.rank_order.back()); }},
      {"/offload_optimizer", "host", [](Plan& p) { p.offload_optimizer = OptimizerOffload::Host; }},
      {"/data_parallel/sync", "parameter-server",
       [](Plan& p) { p.replicas.sync = ReplicaSync::ParameterServer; }},
  };
  for (const BrokenPlacement& each : broken) {
    Plan plan = sound_placement();
    each.change(plan);
    std::string places;
    for (const BrokenRule& rule : problems(plan)) {
      if (rule.rule != PlanRule::StagePools) continue;
      EXPECT_EQ(rule.problem.where, each.place);
      EXPECT_THAT(rule.problem.found, HasSubstr(each.found));
      places += rule.problem.where;
    }
    EXPECT_NE(places, "") << each.found;
  }
}

TEST(Pools, CommandsOfOnePoolRefusePlacements) {
  EXPECT_EQ(thrown_by([] { refuse_pools(Plan(), "plan.json"); }), "");
  EXPECT_THAT(thrown_by([] { refuse_pools(sound_placement(), "plan.json"); }),
              HasSubstr("/plan/stage_pools"));
}

}  // namespace
}  // namespace shardwright
