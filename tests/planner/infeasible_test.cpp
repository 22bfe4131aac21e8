// Searches without a plan say why, and what would help.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/plan_evaluation.hpp"
#include "planner/wording.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

bool asks_for_larger_accelerators(const NoFeasiblePlan& infeasible) {
  return std::any_of(infeasible.closes_it.begin(), infeasible.closes_it.end(),
                     [](const std::vector<Remedy>& remedies) {
                       return remedies.front().field == RemedyField::AcceleratorMemory;
                     });
}

TEST(Infeasible, SaysWhySelectiveRecomputationIsNoChoiceBesideFusedAttention) {
  PlanRequest request = llama_on_one_node();
  ASSERT_TRUE(request.stack.fusion.flash_attention);
  fix(request, {"recompute=selective"});
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_EQ(result.infeasible->obstacle.kind, ObstacleKind::FusedAttention);
  const auto& changes = result.infeasible->closes_it;
  const std::vector<Remedy> none = {
      {RemedyField::Fixed, parse_constraint("recompute=none", "--fix")}};
  EXPECT_NE(std::find(changes.begin(), changes.end(), none), changes.end());
  request.stack.fusion.flash_attention = false;
  EXPECT_FALSE(search(request).plans.empty());
}

TEST(Infeasible, LooksForWhatWouldHelpWhereNothingFits) {
  PlanRequest request = llama_on_one_node();
  request.max_memory = gigabytes(10.0);
  fix(request, {"pp=1"});
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  const auto& changes = result.infeasible->closes_it;
  ASSERT_FALSE(changes.empty());
  // The limit is the user's, not the accelerator's.
  ASSERT_EQ(changes.front().front().field, RemedyField::MaxMemory);
  EXPECT_GE(std::get<Bytes>(changes.front().front().value), result.infeasible->needed);
  EXPECT_FALSE(asks_for_larger_accelerators(*result.infeasible));
}

// No accelerator helps where the user's limit is below its memory anyway.
TEST(Infeasible, OffersNoLargerAcceleratorsUnderALimitOfMemory) {
  PlanRequest request = llama_on_one_node();
  request.model = load_model("llama3.1-405b");
  EXPECT_TRUE(asks_for_larger_accelerators(search(request).infeasible.value()));
  request.max_memory = gigabytes(30.0);
  EXPECT_FALSE(asks_for_larger_accelerators(search(request).infeasible.value()));
}

TEST(Infeasible, NamesTheConstraintThatNoPlanKeeps) {
  PlanRequest request = llama_on_one_node();
  fix(request, {"tp=3"});
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_EQ(result.infeasible->obstacle.kind, ObstacleKind::Impossible);
  EXPECT_EQ(result.infeasible->obstacle.constraint, request.constraints.fixed.front());
  EXPECT_EQ(result.infeasible->obstacle.possible, (std::vector<std::int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(no_plan_text(request, *result.infeasible),
            "No plan fits 8 GPUs: none has tp=3; possible are tp=1,2,4,8.");
  EXPECT_EQ(result.infeasible->closes_it,
            (std::vector<std::vector<Remedy>>{
                {{RemedyField::NotFixed, request.constraints.fixed.front()}}}));
}

TEST(Infeasible, AsksForABatchThatEnoughReplicasDivide) {
  PlanRequest request = llama_on_one_node();
  request.gpus = 50'000;
  request.global_batch = 1024;
  request.seq_len = 4096;
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  ASSERT_FALSE(result.infeasible->closes_it.empty());
  const Remedy& change = result.infeasible->closes_it.front().front();
  ASSERT_EQ(change.field, RemedyField::GlobalBatch);
  request.global_batch = std::get<std::int64_t>(change.value);
  request.front = false;
  request.top = 1;
  EXPECT_TRUE(has_feasible_plan(request));
}

TEST(Infeasible, SaysByHowMuchTheSmallestPlanMisses) {
  PlanRequest request = llama_on_one_node();
  request.max_memory = gigabytes(10.0);
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_EQ(result.infeasible->needed, result.infeasible->available + result.infeasible->shortfall);
  ASSERT_TRUE(result.infeasible->nearest.has_value());
  // With exactly that much memory there is a plan.
  request.max_memory = result.infeasible->needed;
  EXPECT_FALSE(search(request).plans.empty());
}

// A number that leaves a part of a node idle may have no plan where its neighbours have some.
TEST(Infeasible, OffersFullNodesForANumberThatFillsNone) {
  const auto gpus_offered = [](const char* model, std::int64_t gpus,
                               const std::vector<const char*>& constraints) {
    std::vector<std::int64_t> offered;
    PlanRequest request = request_for(model, gpus, 1024, 2048);
    fix(request, constraints);
    const SearchResult result = search(request);
    EXPECT_TRUE(result.infeasible) << gpus;
    if (!result.infeasible) return offered;
    for (const std::vector<Remedy>& change : result.infeasible->closes_it)
      if (change.size() == 1 && change.front().field == RemedyField::Gpus)
        offered.push_back(std::get<std::int64_t>(change.front().value));
    return offered;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(gpus_offered("llama3.2-1b", 513, {}), Sizes({512}));
  EXPECT_EQ(gpus_offered("llama3.2-1b", 7, {"tp=2"}), Sizes({4, 8}));
  // What needs more memory is doubled from the next full size.
  const Sizes larger = gpus_offered("llama3-70b", 7, {});
  ASSERT_EQ(larger.size(), 1U);
  EXPECT_EQ(larger.front() % 8, 0);
}

}  // namespace
}  // namespace shardwright::planner
