// Pools of a cluster in files, and the rules of plans that place stages or replicas on them.
#include "core/spec/pools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/plan_text.hpp"
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

ModelSpec placed_model() {
  ModelSpec model;
  model.layers = 12;
  model.hidden = 1024;
  model.attention = {.heads = 8, .kv_heads = 8, .head_dim = 128};
  model.mlp.ffn_hidden = 4096;
  return model;
}

// Each change breaks the rule, and the rule says where and what.
void expect_refused(const Plan& sound, PlanRule of, const std::vector<BrokenPlacement>& broken) {
  const ClusterSpec cluster = read_mixed(mixed_document());
  const ModelSpec model = placed_model();
  const auto problems = [&](const Plan& plan) { return broken_rules(model, &cluster, plan); };
  ASSERT_TRUE(problems(sound).empty()) << problems(sound).front().problem.found;
  for (const BrokenPlacement& each : broken) {
    Plan plan = sound;
    each.change(plan);
    std::string places;
    for (const BrokenRule& rule : problems(plan)) {
      if (rule.rule != of) continue;
      EXPECT_EQ(rule.problem.where, each.place);
      EXPECT_THAT(rule.problem.found, HasSubstr(each.found));
      places += rule.problem.where;
    }
    EXPECT_NE(places, "") << each.found;
  }
}

TEST(Pools, PlansPlaceStagesOnPoolsThatHoldThem) {
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
  expect_refused(sound_placement(), PlanRule::StagePools, broken);
}

// Three replicas of eight ranks: one on the first pool, which runs six microbatches, and two on the
// second.
Plan sound_replicas() {
  Plan plan;
  plan.dp = 3;
  plan.tp = 4;
  plan.pp = 2;
  plan.global_batch = 6 + 2 * 3;
  plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Pipeline, Axis::Data};
  plan.replica_pools = {{"mixed", 1, 6}, {"old", 2, 3}};
  return plan;
}

TEST(Pools, PlansPlaceReplicasOnPoolsThatHoldThem) {
  const std::vector<BrokenPlacement> broken = {
      {"/replica_pools", "stage_pools",
       [](Plan& p) {
         p.stage_pools = {"mixed", "old"};
       }},
      {"/replica_pools", "2 replicas", [](Plan& p) { p.replica_pools[1].replicas = 1; }},
      {"/replica_pools/1/pool", "\"new\"", [](Plan& p) { p.replica_pools[1].pool = "new"; }},
      {"/replica_pools/1/pool", "again", [](Plan& p) { p.replica_pools[1].pool = "mixed"; }},
      {"/replica_pools/0/pool", "24 ranks",
       [](Plan& p) {
         p.replica_pools = {{"mixed", 3, 4}};
       }},
      {"/replica_pools/1/pool", "4 ranks before", [](Plan& p) { p.tp = 2; }},
      {"/replica_pools/1/pool", "fp8", [](Plan& p) { p.precision = Precision::Fp8; }},
      {"/rank_order", "apart", [](Plan& p) { std::swap(p.rank_order[3], p.rank_order[4]); }},
      {"/replica_pools/1/microbatches", "3", [](Plan& p) { p.ep = 12; }},
      {"/replica_pools", "2, 0 experts", [](Plan& p) { p.replica_pools[0].experts = 2; }},
      {"/zero_stage", "2", [](Plan& p) { p.zero_stage = 2; }},
      {"/data_parallel/sync", "local-steps",
       [](Plan& p) { p.replicas.sync = ReplicaSync::LocalSteps; }},
      {"/offload_optimizer", "host", [](Plan& p) { p.offload_optimizer = OptimizerOffload::Host; }},
  };
  expect_refused(sound_replicas(), PlanRule::ReplicaPools, broken);
  Plan plan = sound_replicas();
  for (PoolReplicas& part : plan.replica_pools) part.microbatches = 4;
  plan.zero_stage = 3;
  EXPECT_FALSE(first_broken_rule(placed_model(), read_mixed(mixed_document()), plan));
  plan.global_batch = 15;
  EXPECT_EQ(first_broken_rule(placed_model(), read_mixed(mixed_document()), plan),
            PlanRule::GlobalBatch);
}

// Two replicas of two stages of eight ranks. The first pool holds the first stage of the first one.
Plan sound_split() {
  Plan plan;
  plan.dp = 2;
  plan.tp = 8;
  plan.pp = 2;
  plan.global_batch = 8;
  plan.replica_pools = {{"", 1, 4, {"mixed", "old"}}, {"old", 1, 4}};
  return plan;
}

TEST(Pools, PlansPlaceTheStagesOfPartsOfTheReplicasOnPoolsThatHoldThem) {
  const std::vector<BrokenPlacement> broken = {
      {"/replica_pools/1", "no pool", [](Plan& p) { p.replica_pools[1].pool.clear(); }},
      {"/replica_pools/0", "a pool and", [](Plan& p) { p.replica_pools[0].pool = "old"; }},
      {"/replica_pools/0/stage_pools", "1 name",
       [](Plan& p) { p.replica_pools[0].stage_pools.pop_back(); }},
      {"/replica_pools/1/stage_pools", "old, old again",
       [](Plan& p) {
         p.replica_pools = {{"old", 1, 4}, {"", 1, 4, {"old", "old"}}};
       }},
      {"/replica_pools/0/stage_pools/1", "\"new\"",
       [](Plan& p) { p.replica_pools[0].stage_pools[1] = "new"; }},
      {"/replica_pools/0/stage_pools/1", "again after",
       [](Plan& p) {
         p.replica_pools = {{"", 1, 4, {"old", "old"}}, {"", 1, 4, {"mixed", "old"}}};
       }},
      {"/replica_pools/1/pool", "4 ranks before", [](Plan& p) { p.tp = 4; }},
      {"/schedule", "dualpipe", [](Plan& p) { p.schedule = ScheduleKind::DualPipe; }},
      {"/rank_order", "stages whose",
       [](Plan& p) {
         p.rank_order = {Axis::Pipeline, Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data};
       }},
      {"/rank_order", "replicas whose",
       [](Plan& p) { std::swap(p.rank_order[0], p.rank_order[3]); }},
  };
  expect_refused(sound_split(), PlanRule::ReplicaPools, broken);
}

// Groups of twelve ranks: the four of the first pool hold six of 48 experts each, the eight of the
// second one three.
Plan sound_experts() {
  Plan plan = sound_replicas();
  plan.ep = 12;
  plan.global_batch = 12;
  plan.replica_pools = {{"mixed", 1, 4, {}, 6}, {"old", 2, 4, {}, 3}};
  return plan;
}

TEST(Pools, GroupsOfExpertsOnSeveralPoolsAreAlike) {
  const ClusterSpec cluster = read_mixed(mixed_document());
  ModelSpec model = load_model("qwen3-30b-a3b");
  model.moe->experts = 48;
  const auto problem = [&](const std::function<void(Plan&)>& change) {
    Plan plan = sound_experts();
    change(plan);
    const auto broken = broken_rules(model, &cluster, plan);
    return broken.empty() ? "" : broken.front().problem.where + ": " + broken.front().problem.found;
  };
  EXPECT_EQ(problem([](Plan&) {}), "");
  EXPECT_EQ(problem([](Plan& p) {
              for (PoolReplicas& part : p.replica_pools) part.experts = 0;
            }),
            "");
  EXPECT_EQ(problem([](Plan& p) { p.replica_pools[0].experts = 5; }),
            "/replica_pools: 5, 3 experts of a rank, 44 in all");
  EXPECT_EQ(problem([](Plan& p) { p.replica_pools[1].experts = 0; }),
            "/replica_pools: 6, 0 experts of a rank, 24 in all");
  // Two copies of each expert.
  EXPECT_EQ(problem([](Plan& p) { p.ep = 6; }),
            "/rank_order: copies of an expert whose ranks lie apart");
  EXPECT_EQ(problem([](Plan& p) {
              p.ep = 6;
              std::swap(p.rank_order[2], p.rank_order[4]);
              std::swap(p.rank_order[2], p.rank_order[3]);
              p.replica_pools[0].experts = 12;
              p.replica_pools[1].experts = 6;
            }),
            "");
}

// Where replicas are outermost, those whose stages lie on several pools come one after the other.
TEST(Pools, PartsOnSeveralPoolsHaveOneReplicaWhereReplicasAreOutermost) {
  const ClusterSpec cluster = read_mixed(mixed_document());
  Plan plan = sound_split();
  std::swap(plan.rank_order[3], plan.rank_order[4]);
  EXPECT_FALSE(first_broken_rule(placed_model(), cluster, plan));
  plan.replica_pools = {{"", 2, 4, {"mixed", "old"}}};
  EXPECT_EQ(first_broken_rule(placed_model(), cluster, plan), PlanRule::ReplicaPools);
  std::swap(plan.rank_order[3], plan.rank_order[4]);
  EXPECT_FALSE(first_broken_rule(placed_model(), cluster, plan));
}

TEST(Pools, StagesOfPartsLieOnTheirOwnPools) {
  const Plan plan = sound_split();
  EXPECT_EQ(pools_of(plan), (std::vector<std::string>{"mixed", "old"}));
  EXPECT_TRUE(splits_replicas(plan));
  EXPECT_FALSE(splits_replicas(sound_replicas()));
  EXPECT_EQ(ranks_on_pool(plan, "mixed"), 8);
  EXPECT_EQ(ranks_on_pool(plan, "old"), 24);
  EXPECT_EQ(pools_of_replica(plan, 1), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(pools_of_replica(plan, 2), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(pools_of_replicas(plan, 2), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(pools_of_replicas(plan, 1), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(pools_text(plan), "mixed+old 1×4 old 1×4");
  EXPECT_EQ(stage_name(plan, 3), "stage 1 on old, replica 1");
  EXPECT_EQ(stage_name(sound_replicas(), 3), "stage 1 on old");
}

// Interleaved schedules run a multiple of the stages: of the replicas on each pool.
TEST(Pools, SchedulesRunTheShapeOfEachPartOfTheReplicas) {
  Plan plan = sound_replicas();
  plan.schedule = ScheduleKind::Interleaved;
  plan.vpp = 2;
  const ClusterSpec cluster = read_mixed(mixed_document());
  const auto broken = broken_rules(placed_model(), &cluster, plan);
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken.front().rule, PlanRule::ScheduleShape);
  EXPECT_THAT(broken.front().problem.found, HasSubstr("3 microbatches"));
  plan.replica_pools[1].microbatches = 2;
  plan.global_batch = 10;
  EXPECT_FALSE(first_broken_rule(placed_model(), cluster, plan));
}

TEST(Pools, PlansOfReplicasAreReadAsTheyAreWritten) {
  EXPECT_EQ(
      nlohmann::json(to_json(sound_replicas())["replica_pools"][1]),
      nlohmann::json({{"pool", "old"}, {"replicas", 2}, {"microbatches", 3}, {"experts", 0}}));
  EXPECT_EQ(to_json(sound_experts())["replica_pools"][1]["experts"], 3);
  EXPECT_EQ(nlohmann::json(to_json(sound_split())["replica_pools"][0]),
            nlohmann::json({{"stage_pools", {"mixed", "old"}},
                            {"replicas", 1},
                            {"microbatches", 4},
                            {"experts", 0}}));
  for (const Plan& plan : {sound_replicas(), sound_split(), sound_experts()}) {
    const nlohmann::json document = to_json(plan);
    ProblemList problems("plan");
    ObjectReader reader(document, "", problems);
    EXPECT_EQ(read_plan(reader, Plan()), plan);
    EXPECT_TRUE(problems.empty());
  }
  EXPECT_FALSE(to_json(Plan()).contains("replica_pools"));
}

// Stages of replicas on several pools are counted apart.
TEST(Pools, PartsOfTheReplicasHaveStagesOfTheirOwn) {
  const Plan plan = sound_replicas();
  EXPECT_EQ(count_stages(plan), 4);
  EXPECT_EQ(ranks_of_stage(plan, 1), 4);
  EXPECT_EQ(ranks_of_stage(plan, 2), 8);
  EXPECT_EQ(ranks_on_pool(plan, "mixed"), 8);
  EXPECT_EQ(ranks_on_pool(plan, "old"), 16);
  EXPECT_EQ(pool_name_of_stage(plan, 1), "mixed");
  EXPECT_EQ(pool_name_of_stage(plan, 2), "old");
  EXPECT_EQ(part_of_replica(plan, 0), 0U);
  EXPECT_EQ(part_of_replica(plan, 2), 1U);
  EXPECT_EQ(plan_of_part(plan, 1).microbatches(), 3);
  EXPECT_EQ(plan_of_part(plan, 1).global_batch, 9);
  EXPECT_EQ(plan.microbatches(), 6);
}

TEST(Pools, CommandsOfOnePoolRefusePlacements) {
  EXPECT_EQ(thrown_by([] { refuse_pools(Plan(), "plan.json"); }), "");
  EXPECT_THAT(thrown_by([] { refuse_pools(sound_placement(), "plan.json"); }),
              HasSubstr("/plan/stage_pools"));
  EXPECT_THAT(thrown_by([] { refuse_pools(sound_replicas(), "plan.json"); }),
              HasSubstr("/plan/replica_pools"));
}

}  // namespace
}  // namespace shardwright
