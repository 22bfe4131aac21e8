#include "planner/varied_agreements.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"

namespace shardwright::planner {
namespace {

// Each is compared with the all-reduce, and some plan of a dense model follows it.
TEST(VariedAgreements, BeginWithTheAllReduceAndAllHavePlans) {
  const ModelSpec model = load_model("llama3.2-1b");
  const ClusterSpec cluster = load_cluster("dgx-h100");
  for (const bool compression : {false, true}) {
    const std::vector<ReplicaAgreement> all = varied_agreements(true, compression);
    EXPECT_EQ(all.front(), ReplicaAgreement());
    Plan plan;
    plan.dp = 16;
    plan.zero_stage = 0;
    plan.global_batch = 16;
    for (std::size_t i = 0; i < all.size(); ++i) {
      plan.replicas = all[i];
      EXPECT_EQ(first_broken_rule(model, cluster, plan), std::nullopt) << i;
      EXPECT_EQ(std::count(all.begin(), all.end(), all[i]), 1) << i;
    }
    const auto served = [](const ReplicaAgreement& agreement) { return agreement.has_servers(); };
    EXPECT_EQ(std::count_if(all.begin(), all.end(), served), 3);
  }
}

}  // namespace
}  // namespace shardwright::planner
