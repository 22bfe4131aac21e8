#include "planner/batch_knee.hpp"

#include <gtest/gtest.h>

#include "planner/search.hpp"
#include "tests/planner/random_request.hpp"

namespace shardwright::planner {
namespace {

double rate_of(const PlanCandidate& candidate) {
  return candidate.tokens() / candidate.result.step.value();
}

TEST(BatchKnee, IsTakenWithoutABatch) {
  PlanRequest request = llama_on_one_node();
  request.global_batch = 0;
  request.max_global_batch = 64;
  const SearchResult knee = search(request);
  ASSERT_FALSE(knee.plans.empty());
  request.global_batch = 64;
  const SearchResult largest = search(request);
  EXPECT_LE(knee.plans[0].plan.global_batch, 64);
  EXPECT_GE(rate_of(knee.plans[0]), kKneeThroughput * rate_of(largest.plans[0]));
}

// One accelerator fills itself with few sequences, whatever limit is set.
TEST(BatchKnee, MayLieFarBelowTheLargestBatch) {
  PlanRequest request = llama_on_one_node();
  request.gpus = 1;
  request.model = load_model("llama3.2-1b");
  request.seq_len = 2048;
  request.global_batch = 0;
  request.max_global_batch = 4096;
  const SearchResult knee = search(request);
  ASSERT_FALSE(knee.plans.empty());
  const std::int64_t batch = knee.plans[0].plan.global_batch;
  EXPECT_LT(batch, 4096 / 64);
  const auto rate_with = [&](std::int64_t size) {
    request.global_batch = size;
    return rate_of(search(request).plans.at(0));
  };
  EXPECT_GE(rate_with(batch), kKneeThroughput * rate_with(4096));
  EXPECT_LT(rate_with(batch / 2), kKneeThroughput * rate_with(4096));
}

TEST(BatchKnee, IsOneOfTheBatchesThatAreFixed) {
  PlanRequest request = llama_on_one_node();
  request.global_batch = 0;
  request.max_global_batch = 4096;
  fix(request, {"global_batch=8,24"});
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  for (const PlanCandidate& candidate : result.plans)
    EXPECT_TRUE(candidate.plan.global_batch == 8 || candidate.plan.global_batch == 24);
}

}  // namespace
}  // namespace shardwright::planner
