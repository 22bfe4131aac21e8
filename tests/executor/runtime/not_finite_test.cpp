// A value that is not finite in one place: the op that spreads it is named on its rank, and nothing
// is updated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "executor/runtime/op_runner.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kPattern = "layers.*.mlp.down_proj";
constexpr std::int32_t kLayer = 1;

// Sets the first weight of a layer of the first stage.
void spoil(RankTrainer& trainer, float value) {
  ParameterStore& parameters = trainer.parameters();
  const ParameterSpan& place = parameters.layout().find(kPattern, kLayer);
  parameters.set_weights(place.unit, place.weight, std::vector<float>{value});
}

class NotFinite : public testing::TestWithParam<float> {};

TEST_P(NotFinite, IsFoundWhereItFirstAppears) {
  Plan plan = one_rank_plan();
  plan.dp = plan.tp = plan.pp = 2;
  plan.zero_stage = 1;
  std::mutex mutex;
  on_ranks(small_llama(), plan, {}, [&](RankTrainer& trainer, const BatchLoader& loader) {
    const RankCoordinates& place = trainer.place();
    const bool holds = place[Axis::Pipeline] == 0 && place[Axis::Tensor] == 1;
    const Batch batch = loader.load(0, place[Axis::Data]);
    if (holds) spoil(trainer, GetParam());
    const StepReport report = trainer.step(0, batch);
    const auto found = trainer.find_not_finite(0, batch);
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(std::isfinite(report.loss) && std::isfinite(report.gradient_norm));
    ASSERT_TRUE(found) << trainer.rank();
    EXPECT_EQ(found->received, !holds) << trainer.rank() << ": " << found->op;
    if (!holds) return;
    EXPECT_EQ(found->counts.weights, 1.0);
    EXPECT_THAT(describe_not_finite(*found),
                testing::MatchesRegex("ffn.down of layer 1, microbatch 0: [0-9]+ values of its "
                                      "result and 1 of its weights layers.1.mlp.down_proj are not "
                                      "finite"));
  });
}

INSTANTIATE_TEST_SUITE_P(Values, NotFinite,
                         testing::Values(std::numeric_limits<float>::quiet_NaN(),
                                         std::numeric_limits<float>::infinity()),
                         [](const auto& value) {
                           return std::isnan(value.param) ? "Nan" : "Infinity";
                         });

// Without such a value, the repeated step finds none.
TEST(SoundStep, HasNone) {
  const auto work = [](RankTrainer& trainer, const BatchLoader& loader) {
    const Batch batch = loader.load(0, 0);
    EXPECT_TRUE(std::isfinite(trainer.step(0, batch).loss));
    EXPECT_FALSE(trainer.find_not_finite(0, batch));
  };
  for (const ModelSpec& model : {small_gpt2(), small_deepseek_v2()})
    on_ranks(model, one_rank_plan(), {}, work);
}

// A step that takes over what replicas have exchanged takes it over once.
TEST(SoundStep, ExchangesOnce) {
  Plan plan = two_replicas();
  plan.replicas.sync = ReplicaSync::LocalSteps;
  plan.replicas.overlap_steps = 1;
  on_ranks(small_llama(), plan, {}, [](RankTrainer& trainer, const BatchLoader& loader) {
    run_steps(trainer, loader, 0, 2);
    const double exchanged = trainer.exchanged_bytes();
    EXPECT_FALSE(trainer.find_not_finite(1, loader.load(8, trainer.place()[Axis::Data])));
    EXPECT_EQ(trainer.exchanged_bytes(), exchanged);
  });
}

}  // namespace
}  // namespace shardwright::executor
