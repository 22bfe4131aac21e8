// Compares gradients through a whole model with central differences of its loss: every parameter
// tensor of a small GPT-2 and a small Llama, along its own gradient and along random directions.
//
//   g . d = (loss(w + h d) - loss(w - h d)) / 2h,   |d| = 1
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/data/counter_random.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kGradientSequences = 2, kGradientTokens = 6, kGradientVocabulary = 11;
constexpr double kStep = 0.02;

ModelSpec tiny(ModelSpec model) {
  model.layers = 2;
  model.hidden = 8;
  model.vocab = kGradientVocabulary;
  model.attention.head_dim = 2;
  model.mlp.ffn_hidden = 12;
  if (model.position_embeddings > 0) model.position_embeddings = kGradientTokens;
  return model;
}

// One rank that never learns, so that each step evaluates loss and gradients.
class Evaluation {
 public:
  explicit Evaluation(const ModelSpec& model)
      : model_(model),
        program_(lower(model_, plan(), load_stack("shardwright"))),
        trainer_(model_, program_, 0, kernels_, {}, options()) {
    for (std::int32_t i = 0; i < kGradientSequences * kGradientTokens; ++i) {
      batch_.tokens.push_back((7 * i * i + 3 * i) % static_cast<std::int32_t>(kGradientVocabulary));
      batch_.targets.push_back((5 * i + 2) % static_cast<std::int32_t>(kGradientVocabulary));
    }
  }

  double loss() { return trainer_.step(0, batch_).loss; }
  const std::vector<ParameterUnit>& units() { return trainer_.parameters().layout().units; }
  float* weights(std::size_t unit, const ParameterSlice& slice) {
    return static_cast<float*>(trainer_.parameters().weights(unit, slice.offset));
  }
  std::vector<double> gradient(std::size_t unit, const ParameterSlice& slice) {
    const auto* moments =
        static_cast<const float*>(trainer_.parameters().first_moments(unit, slice.offset));
    return {moments, moments + slice.elements()};
  }

 private:
  static Plan plan() {
    Plan plan = one_rank_plan();
    plan.micro_batch = plan.global_batch = kGradientSequences;
    plan.seq_len = kGradientTokens;
    return plan;
  }
  static TrainingOptions options() {
    TrainingOptions options;
    options.learning_rate = 0.0;
    options.beta1 = 0.0;  // so that the first moment is the gradient
    options.clip_norm = 0.0;
    return options;
  }

  ModelSpec model_;
  Program program_;
  CpuKernels<float> kernels_;
  RankTrainer trainer_;
  Batch batch_;
};

double gradient_norm(const std::vector<double>& values) {
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> unit_length(std::vector<double> values) {
  const double norm = gradient_norm(values);
  for (double& value : values) value /= norm;
  return values;
}

std::vector<double> random_signs(std::size_t count, std::uint64_t key) {
  std::vector<double> signs;
  for (std::size_t i = 0; i < count; ++i) signs.push_back(random_bits(key, i) % 2 == 0 ? 1 : -1);
  return signs;
}

double difference_along(Evaluation& evaluation, float* weights, const std::vector<double>& along) {
  const std::vector<float> before(weights, weights + along.size());
  const auto loss_at = [&](double step) {
    for (std::size_t i = 0; i < along.size(); ++i)
      weights[i] = static_cast<float>(static_cast<double>(before[i]) + step * along[i]);
    return evaluation.loss();
  };
  const double ahead = loss_at(kStep), behind = loss_at(-kStep);
  std::copy(before.begin(), before.end(), weights);
  return (ahead - behind) / (2.0 * kStep);
}

class WholeGradient : public testing::TestWithParam<const char*> {};

TEST_P(WholeGradient, AgreesWithCentralDifferencesOfTheLoss) {
  const bool llama = GetParam() == std::string("llama");
  Evaluation evaluation(tiny(llama ? small_llama() : small_gpt2()));
  std::uint64_t number = 0;
  for (std::size_t u = 0; u < evaluation.units().size(); ++u) {
    for (const ParameterSlice& slice : evaluation.units()[u].slices) {
      ++number;
      for (std::size_t i = 0; i < slice.elements(); ++i)
        evaluation.weights(u, slice)[i] +=
            static_cast<float>(0.4 * std::sin(0.9 * static_cast<double>(i) + 1.7 * number));
    }
  }
  for (std::size_t u = 0; u < evaluation.units().size(); ++u) {
    for (const ParameterSlice& slice : evaluation.units()[u].slices) {
      evaluation.loss();
      const std::vector<double> gradient = evaluation.gradient(u, slice);
      const double norm = gradient_norm(gradient);
      // fp32 rounds the loss of about 3 to 1e-7 of it, many times; h^2 is 4e-4.
      const double tolerance = 2e-3 * norm + 1e-4;
      std::vector<std::vector<double>> directions;
      for (std::uint64_t key = 0; key < 3; ++key)
        directions.push_back(unit_length(random_signs(gradient.size(), 100 * u + key)));
      if (norm > 1e-3) directions.push_back(unit_length(gradient));
      for (const std::vector<double>& along : directions) {
        EXPECT_NEAR(product(gradient, along),
                    difference_along(evaluation, evaluation.weights(u, slice), along), tolerance)
            << slice.name << ", gradient's norm " << norm;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WholeGradient, testing::Values("gpt2", "llama"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace shardwright::executor
