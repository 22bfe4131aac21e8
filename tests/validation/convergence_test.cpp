#include "validation/convergence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "core/spec/model_library.hpp"
#include "tests/thrown.hpp"

namespace shardwright::validation {
namespace {

Plan diloco(std::int64_t replicas, std::int64_t inner_steps) {
  Plan plan;
  plan.dp = replicas;
  plan.zero_stage = 0;
  plan.replicas.sync = ReplicaSync::LocalSteps;
  plan.replicas.outer = OuterOptimizer::Nesterov;
  plan.replicas.inner_steps = inner_steps;
  return plan;
}

// Scaling laws of DiLoCo: the penalty grows with the replicas and shrinks with the model. Their
// table has losses of 2.230 and 2.224 for 4 billion parameters with 4 replicas and by all-reduce,
// and that of two replicas below the all-reduce's.
TEST(ConvergenceCost, IsThatOfTheFits) {
  const ModelSpec small = load_model("llama3.2-1b"), large = load_model("qwen3-4b");
  const auto likely = [](const ModelSpec& model, std::int64_t replicas) {
    return convergence_cost(model, diloco(replicas, 30)).likely.value();
  };
  EXPECT_LT(likely(small, 2), likely(small, 4));
  EXPECT_LT(likely(small, 4), likely(small, 8));
  EXPECT_LT(likely(large, 4), likely(small, 4));
  const ConvergenceCost cost = convergence_cost(large, diloco(4, 30));
  const double measured = std::exp(0.006 / (0.5 * 0.0953 * 2.224)) - 1.0;
  EXPECT_LE(cost.low, measured);
  EXPECT_GE(cost.high, measured);
}

TEST(ConvergenceCost, IsNotKnownOutsideOfWhatWasMeasured) {
  const ModelSpec model = load_model("llama3.2-1b");
  EXPECT_TRUE(convergence_cost(model, diloco(8, 30)).known());
  EXPECT_FALSE(convergence_cost(load_model("llama3-8b"), diloco(8, 30)).known());
  EXPECT_FALSE(convergence_cost(model, diloco(8, 31)).known());
  EXPECT_FALSE(convergence_cost(model, diloco(16, 30)).known());
  Plan compressed = diloco(8, 30);
  compressed.replicas.compression = ReplicaCompression::Int8;
  EXPECT_EQ(cost_cell(convergence_cost(model, compressed)), "not known");
  Plan streaming = diloco(8, 30);
  streaming.replicas.fragments = 4;
  EXPECT_FALSE(convergence_cost(model, streaming).known());
  streaming = diloco(8, 30);
  streaming.replicas.overlap_steps = 1;
  EXPECT_FALSE(convergence_cost(model, streaming).known());
  EXPECT_EQ(cost_cell(convergence_cost(model, Plan())), "0.0");
}

// The updates of synchronous servers are those of an all-reduce. What stale ones cost was published
// of other models alone.
TEST(ConvergenceCost, OfParameterServersIsKnownIfTheyAreSynchronous) {
  const ModelSpec model = load_model("llama3.2-1b");
  Plan plan;
  plan.dp = 8;
  plan.replicas.sync = ReplicaSync::ParameterServer;
  EXPECT_EQ(convergence_cost(model, plan).likely, 0.0);
  plan.replicas.server_updates = ServerUpdates::BoundedStaleness;
  EXPECT_EQ(convergence_cost(model, plan).likely, 0.0);
  plan.replicas.staleness = 1;
  EXPECT_FALSE(convergence_cost(model, plan).known());
  plan.replicas.server_updates = ServerUpdates::Asynchronous;
  EXPECT_FALSE(convergence_cost(model, plan).known());
}

TEST(ConvergenceCost, RefusesRowsThatSayTooLittle) {
  std::istringstream row(
      R"({"id":"a","source":{"title":"t","where":"w","year":2023},"verified":true,)"
      R"("outer":"average","compression":["none"],"replicas":2,"inner_steps":[4],)"
      R"("parameters":[2,1],"more_tokens":[0,1]})");
  EXPECT_EQ(problems_of([&] { read_convergence(row, "rows"); }),
            (std::vector<std::string>{"line 1/inner_steps", "line 1/parameters"}));
}

}  // namespace
}  // namespace shardwright::validation
