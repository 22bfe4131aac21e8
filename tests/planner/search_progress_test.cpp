// What a search reports while it goes on, and where it is stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/search.hpp"
#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

// Plans that are reported on the way never get worse and end as the answer.
TEST(SearchProgress, ReportsTheBestSoFar) {
  PlanRequest request = llama_on_one_node();
  request.front = false;
  std::vector<std::vector<PlanCandidate>> found;
  request.found = [&](const std::vector<PlanCandidate>& best) { found.push_back(best); };
  const SearchResult result = search(request);
  ASSERT_FALSE(found.empty());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(std::is_sorted(found[i].begin(), found[i].end(),
                               [](const auto& a, const auto& b) { return a.score < b.score; }));
    if (i == 0) continue;
    EXPECT_LE(found[i].front().score, found[i - 1].front().score);
  }
  ASSERT_EQ(found.back().size(), result.plans.size());
  for (std::size_t i = 0; i < result.plans.size(); ++i)
    EXPECT_EQ(found.back()[i].plan, result.plans[i].plan);
}

TEST(SearchProgress, StopsWhenAsked) {
  PlanRequest request = llama_on_one_node();
  std::stop_source source;
  source.request_stop();
  request.stop = source.get_token();
  EXPECT_TRUE(search(request).partial);
}

// Whenever it is stopped there is a best so far; other simulations that were begun are not ended.
TEST(SearchProgress, HasABestSoFarFromItsFirstSimulation) {
  PlanRequest request = llama_on_one_node();
  std::stop_source source;
  request.stop = source.get_token();
  request.progress = [&](const SearchProgress& progress) {
    if (progress.share > 0.99) source.request_stop();  // all plans are evaluated
  };
  const SearchResult result = search(request);
  EXPECT_TRUE(result.partial);
  EXPECT_EQ(result.counts.simulated, 1);
  EXPECT_EQ(result.plans.size(), 1U);
  EXPECT_TRUE(result.front.empty());
}

// The plans that are simulated and those that are still open are among the feasible ones, and the
// search ends when none is open. A layout that is listed closes the slower plans of its own.
TEST(SearchProgress, CountsThePlansThatMayStillReplaceOneOfTheBest) {
  for (const bool one_per_layout : {false, true}) {
    PlanRequest request = llama_on_one_node();
    request.front = false;
    request.one_per_layout = one_per_layout;
    request.top = 20;
    std::vector<SearchProgress> reports;
    request.progress = [&](const SearchProgress& progress) { reports.push_back(progress); };
    const SearchResult result = search(request);
    std::erase_if(reports, [](const SearchProgress& each) { return !each.open; });
    ASSERT_GT(reports.size(), 2U);
    EXPECT_GT(*reports.front().open, 0);
    EXPECT_EQ(*reports.back().open, 0);
    for (std::size_t i = 0; i < reports.size(); ++i) {
      EXPECT_EQ(reports[i].share, 1.0);
      EXPECT_GT(reports[i].simulated, 0);
      EXPECT_LE(reports[i].simulated + *reports[i].open, result.counts.evaluated);
      if (i == 0) continue;
      EXPECT_LE(*reports[i].open, *reports[i - 1].open);
    }
  }
}

// Simulations of the front and of other layouts, which follow those of the best plans, take long.
TEST(SearchProgress, GoesOnUntilAllPlansAreSimulated) {
  PlanRequest request = llama_on_one_node();
  request.layouts = 20;
  std::vector<std::int64_t> final_ones;
  request.progress = [&](const SearchProgress& progress) {
    if (progress.open == 0) final_ones.push_back(progress.simulated);
  };
  const SearchResult result = search(request);
  ASSERT_GT(final_ones.size(), 3U);
  EXPECT_LT(final_ones.front(), final_ones.back());
  EXPECT_TRUE(std::ranges::is_sorted(final_ones));
  EXPECT_EQ(final_ones.back(), result.counts.simulated);
}

}  // namespace
}  // namespace shardwright::planner
