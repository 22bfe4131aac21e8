#include <gtest/gtest.h>

#include <cmath>

#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

// Initially all tokens are equally likely, so the loss is near ln(vocabulary); the words of the
// text are learnt soon.
TEST(OneRank, LearnsAText) {
  for (const ModelSpec& model : {small_llama(), small_gpt2()}) {
    TrainingOptions options;
    options.steps = 60;
    options.learning_rate = 1e-2;
    const std::vector<double> losses = train(model, one_rank_plan(), options);
    EXPECT_NEAR(losses.front(), std::log(static_cast<double>(model.vocab)), 0.1) << model.name;
    EXPECT_LT(losses.back(), 2.2) << model.name;
  }
}

}  // namespace
}  // namespace shardwright::executor
