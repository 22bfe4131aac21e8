// Plans that place stages and replicas on several pools, or experts over these, against every
// placement, split of the layers, share of the batch and number of experts.
#include "planner/joint_search.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"
#include "planner/layer_cost_cache.hpp"
#include "planner/pool_search.hpp"
#include "planner/replica_search.hpp"
#include "planner/stage_search.hpp"
#include "sim/step/analytic.hpp"
#include "tests/faster_accelerator.hpp"
#include "tests/planner/sample_share.hpp"
#include "tests/planner/small_pools.hpp"

namespace shardwright::planner {
namespace {

PoolLayerCosts costs_of(const PlanRequest& request) {
  PoolLayerCosts costs;
  for (const std::string& pool : names_of_pools(request.cluster))
    costs[pool] = std::make_shared<LayerCostCache>();
  return costs;
}

// A job whose plans are some hundreds, all choices counted.
PlanRequest joint_job(std::mt19937& random, bool experts) {
  PlanRequest request = small_job(random, false);
  while (request.model.moe.has_value() != experts) request = small_job(random, false);
  request.model.layers = pick<std::int64_t>(random, {2, 3});
  request.global_batch = 4;
  request.limits.max_micro_batch = 1;
  return request;
}

// Tries every choice, and keeps the shortest step by the analytic level of the plans that obey the
// rules and fit.
class EveryJointPlan {
 public:
  explicit EveryJointPlan(const PlanRequest& request) : request_(request) {}

  double shortest() {
    SearchLimits limits = request_.limits;
    limits.rank_orders = {Plan().rank_order, pipeline_inside_data()};
    for_each(limits, [this](const Plan& plan) {
      if (plan.pp > 1 && plan.dp > 1) on_cells(plan);
    });
    limits.rank_orders = {{Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data, Axis::Expert}};
    for_each(limits, [this](const Plan& plan) {
      if (request_.model.moe && spreads_experts(plan)) with_numbers(plan);
    });
    return best_;
  }

 private:
  void for_each(const SearchLimits& limits, const std::function<void(const Plan&)>& visit) const {
    for (std::int64_t gpus = 2; gpus <= request_.gpus; ++gpus) {
      const SpaceRequest space{
          request_.model,   request_.cluster,   request_.stack, gpus,  request_.global_batch,
          request_.seq_len, request_.precision, request_.lora,  limits};
      for (const Plan& plan : enumerate_plans(space)) visit(plan);
    }
  }

  // Each stage of each replica on one pool or the other.
  void on_cells(Plan plan) {
    const std::int64_t cells = plan.pp * plan.dp;
    for (std::uint64_t choice = 0; choice < std::uint64_t{1} << cells; ++choice) {
      plan.replica_pools.clear();
      for (std::int64_t replica = 0; replica < plan.dp; ++replica) {
        PoolReplicas part{"", 1, 1};
        for (std::int64_t stage = 0; stage < plan.pp; ++stage)
          part.stage_pools.push_back(
              (choice >> (replica * plan.pp + stage) & 1) != 0 ? "second" : request_.cluster.name);
        if (!plan.replica_pools.empty() &&
            plan.replica_pools.back().stage_pools == part.stage_pools)
          ++plan.replica_pools.back().replicas;
        else
          plan.replica_pools.push_back(part);
      }
      if (plan.replica_pools.size() > 1 && splits_replicas(plan)) with_shares(plan, 0);
    }
  }

  void with_shares(Plan& plan, std::size_t part) {
    if (part < plan.replica_pools.size()) {
      for (std::int64_t n = 1; n <= request_.global_batch; ++n) {
        plan.replica_pools[part].microbatches = n;
        with_shares(plan, part + 1);
      }
      return;
    }
    if (batch_of_pools(plan) != request_.global_batch) return;
    const auto chunks = static_cast<std::size_t>(plan.chunks());
    for_each_split(request_.model.layers, static_cast<std::int64_t>(chunks),
                   [&](const std::vector<std::int64_t>& layers) {
                     plan.stage_layers = layers;
                     look_at(plan);
                   });
  }

  void with_numbers(Plan plan) {
    plan.overlap.expert_microbatches = false;
    const std::int64_t experts = request_.model.moe->experts;
    const std::int64_t microbatches = request_.global_batch / (plan.dp * plan.micro_batch);
    for (std::int64_t first = 1; first < plan.dp; ++first) {
      for (std::int64_t m = 0; m <= experts; ++m) {
        for (std::int64_t n = m == 0 ? 0 : 1; n <= (m == 0 ? 0 : experts); ++n) {
          plan.replica_pools = {{request_.cluster.name, first, microbatches, {}, m},
                                {"second", plan.dp - first, microbatches, {}, n}};
          look_at(plan);
        }
      }
    }
  }

  void look_at(const Plan& plan) {
    if (first_broken_rule(request_.model, request_.cluster, plan, 0, &request_.stack)) return;
    if (!broken_constraint(request_.constraints, plan).empty()) return;
    const double step = sim::estimate_step({request_.model, request_.cluster, request_.stack, plan})
                            .analytic.value();
    if (step < best_ && fits(request_, plan)) best_ = step;
  }

  const PlanRequest& request_;
  double best_ = std::numeric_limits<double>::infinity();
};

TEST(JointSearch, EqualsEveryPlacementOnRandomSmallJobs) {
  constexpr int kJobs = 60 / kSampleShare;
  std::mt19937 random(20261209);
  int with_plans = 0, jobs = 0, of_experts = 0;
  for (; with_plans < kJobs && jobs < 20 * kJobs; ++jobs) {
    const PlanRequest request = joint_job(random, jobs % 4 == 0);
    const double oracle = EveryJointPlan(request).shortest();
    const JointSearch found = search_joint(request, costs_of(request), {}, 100'000);
    const std::string job = request.model.name + " job " + std::to_string(jobs);
    ASSERT_TRUE(found.all) << job;
    ASSERT_EQ(found.plans.empty(), !std::isfinite(oracle)) << job;
    if (found.plans.empty()) continue;
    ++with_plans;
    const auto& [look, plan] = found.plans.front();
    ASSERT_NEAR(look.analytic.value() / oracle, 1.0, 1e-12) << job << " " << to_json(plan).dump();
    ASSERT_FALSE(first_broken_rule(request.model, request.cluster, plan)) << job;
    ASSERT_TRUE(fits(request, plan)) << job;
    of_experts += spreads_experts(plan);
  }
  RecordProperty("jobs", jobs);
  RecordProperty("of_experts", of_experts);
  EXPECT_EQ(with_plans, kJobs);
  EXPECT_GT(of_experts, 0);
}

// Where a plan of these kinds is the best one on several pools, the part of a large space that is
// evaluated has one that is nearly as good.
TEST(JointSearch, APartOfASpaceIsNearlyAsGoodAsTheWhole) {
  std::mt19937 random(20261210);
  int compared = 0, near = 0;
  for (int job = 0; job < 300 / kSampleShare; ++job) {
    const PlanRequest request = joint_job(random, job % 2 == 0);
    const PoolLayerCosts costs = costs_of(request);
    std::vector<Plan> seeds;
    double others = std::numeric_limits<double>::infinity();
    const auto add = [&](const std::vector<LookedAtPlan>& plans) {
      if (plans.empty()) return;
      others = std::min(others, plans.front().look.analytic.value());
      for (std::size_t i = 0; i < std::min<std::size_t>(plans.size(), 6); ++i)
        seeds.push_back(plans[i].plan);
    };
    add(search_stages(request, costs, kWholeSpace, 6).plans);
    add(search_replicas(request, costs, kWholeSpace).plans);
    const JointSearch whole = search_joint(request, costs, {}, 100'000);
    if (whole.plans.empty() || whole.plans.front().look.analytic.value() >= others) continue;
    ++compared;
    const JointSearch part = search_joint(request, costs, seeds, 0);
    if (part.plans.empty()) continue;
    const Seconds best = whole.plans.front().look.analytic,
                  found = part.plans.front().look.analytic;
    EXPECT_GE(found, best * (1.0 - 1e-12));
    near += found <= best * 1.05;
  }
  RecordProperty("compared", compared);
  RecordProperty("near", near);
  if (!kSanitized) {
    EXPECT_GT(compared, 10);
    EXPECT_GE(near * 100, compared * 75);
  }
}

// Three fast nodes and a slow one hold two pipelines of two nodes if a part of them has stages on
// both pools; the slow stage gets fewer layers and its pipeline fewer microbatches.
TEST(JointSearch, FillsPoolsThatNeitherStagesNorReplicasDo) {
  PlanRequest request = request_for("llama3-8b", 32, 64, 2048);
  request.cluster.nodes = 1;
  request.cluster.pools = {pool_of(request.cluster, "second")};
  request.cluster.pools[0].nodes = 3;
  double_speed(request.cluster.pools[0].accelerator);
  request.takes_pools = true;
  fix(request,
      {"pp=2", "tp=8", "cp=1", "zero_stage=1", "micro_batch=1", "recompute=none", "schedule=1f1b"});
  adapt_limits(request);
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  const Plan& best = result.plans.front().plan;
  ASSERT_TRUE(splits_replicas(best)) << to_json(best).dump();
  EXPECT_GT(result.placed->joint_plans, 0);
  std::int64_t most = 0, split = 0;
  for (const PoolReplicas& part : best.replica_pools)
    (part.stage_pools.empty() ? most : split) = part.microbatches;
  EXPECT_GT(most, split);
}

// Ranks that compute twice as fast hold more of the experts.
TEST(JointSearch, GivesFasterRanksMoreExperts) {
  PlanRequest request = request_for("mixtral-8x7b", 16, 16, 4096);
  request.model.moe->experts = 48;
  request.model.layers = 4;
  request.cluster.nodes = 1;
  request.cluster.pools = {pool_of(request.cluster, "second")};
  double_speed(request.cluster.pools[0].accelerator);
  request.takes_pools = true;
  fix(request, {"pp=1", "tp=1", "cp=1", "ep=16", "zero_stage=1", "micro_batch=1"});
  adapt_limits(request);
  const JointSearch found = search_joint(request, costs_of(request), {}, 100'000);
  ASSERT_TRUE(found.all);
  ASSERT_FALSE(found.plans.empty());
  const Plan& best = found.plans.front().plan;
  ASSERT_TRUE(numbers_experts(best)) << to_json(best).dump();
  EXPECT_GT(best.replica_pools[1].experts, best.replica_pools[0].experts);
}

}  // namespace
}  // namespace shardwright::planner
