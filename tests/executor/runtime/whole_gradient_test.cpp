// Gradients through a whole model: every parameter tensor of a small GPT-2, Llama, Qwen3, Mixtral,
// Qwen2-MoE, DeepSeek-V2 and DeepSeek-V3.
//
// PyTorch in fp64 (tests/executor/pytorch_reference.py) gives the same loss within 1e-6. Our
// gradients are fp32: each tensor's agrees within 2e-6 of the largest gradient norm of a tensor.
//
// Central differences of the loss agree along a tensor's own gradient and along random directions:
//
//   g . d = (loss(w + h d) - loss(w - h d)) / 2h + O(h^2),   |d| = 1
//
// Those of h and h / 2 together are free of the term of h^2 (Richardson).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/data/hash.hpp"
#include "executor/kernels/kernels.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kSequences = 2, kTokens = 6, kVocabulary = 11;
constexpr double kStep = 0.01;

void make_tiny(AttentionSpec& latent) {
  if (latent.q_lora_rank > 0) latent.q_lora_rank = 6;
  latent.kv_lora_rank = 4;
  latent.qk_nope_head_dim = 3;
  latent.qk_rope_head_dim = 4;
  latent.v_head_dim = 5;
  latent.head_dim = 7;
}

ModelSpec tiny(ModelSpec model) {
  model.layers = 2;
  model.hidden = 8;
  model.vocab = kVocabulary;
  model.attention.head_dim = 2;
  if (model.attention.kind == AttentionKind::MultiHeadLatent) make_tiny(model.attention);
  model.mlp.ffn_hidden = 12;
  if (model.moe) model.moe->expert_ffn = 10;
  if (has_shared_experts(model)) model.moe->shared_expert_ffn = 6;
  if (model.position_embeddings > 0) model.position_embeddings = kTokens + 2;
  return model;
}

ModelSpec small_model(const std::string& family) {
  if (family == "gpt2") return small_gpt2();
  if (family == "qwen3") return small_qwen3();
  if (family == "mixtral") return small_mixtral();
  if (family == "deepseek_v2") return small_deepseek_v2();
  if (family == "deepseek_v3") return small_deepseek_v3();
  return family == "llama" ? small_llama() : small_qwen2_moe();
}

float wave(std::size_t number, std::size_t index) {
  return static_cast<float>(
      0.4 * std::sin(0.9 * static_cast<double>(index) + 1.7 * static_cast<double>(number)));
}

// One rank that never learns, so that each step evaluates loss and gradients. It holds each
// parameter completely, so a slice's elements are the parameter's.
class Evaluation {
 public:
  Evaluation(ModelSpec model, std::int32_t (*target_of)(std::int32_t position))
      : model_(std::move(model)),
        program_(lower(model_, plan(), load_stack("shardwright"))),
        trainer_(model_, program_, 0, *kernels_, {}, kOptions) {
    trainer_.set_initial_parameters();
    constexpr auto kWords = static_cast<std::int32_t>(kVocabulary);
    for (std::int32_t i = 0; i < kSequences * kTokens; ++i) {
      batch_.tokens.push_back((7 * i * i + 3 * i) % kWords);
      batch_.targets.push_back(target_of(i) % kWords);
    }
  }

  const ModelSpec& model() const { return model_; }
  double loss() { return trainer_.step(0, batch_).loss; }
  const ParameterLayout& layout() { return trainer_.parameters().layout(); }
  float* weights(std::size_t unit, const ParameterSlice& slice) {
    return static_cast<float*>(trainer_.parameters().weights(unit, slice.offset));
  }
  std::vector<double> gradient(std::size_t unit, const ParameterSlice& slice) {
    const auto* moments = static_cast<const float*>(
        trainer_.parameters().updated(OptimizerArray::FirstMoments, unit, slice.offset));
    return {moments, moments + slice.elements()};
  }

 private:
  static Plan plan() {
    Plan plan = one_rank_plan();
    plan.micro_batch = plan.global_batch = kSequences;
    plan.seq_len = kTokens;
    return plan;
  }
  // beta1 is 0 so that the first moment is the gradient.
  static constexpr TrainingOptions kOptions{.learning_rate = 0.0, .beta1 = 0.0, .clip_norm = 0.0};

  ModelSpec model_;
  Program program_;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels();
  RankTrainer trainer_;
  Batch batch_;
};

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double norm_of(const std::vector<double>& values) {
  return std::sqrt(product(values, values));
}

std::vector<double> unit_length(std::vector<double> values) {
  const double norm = norm_of(values);
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
  const auto slope = [&](double step) { return (loss_at(step) - loss_at(-step)) / (2.0 * step); };
  const double coarse = slope(kStep), fine = slope(kStep / 2.0);
  std::copy(before.begin(), before.end(), weights);
  return (4.0 * fine - coarse) / 3.0;
}

class WholeGradient : public testing::TestWithParam<std::string> {};

TEST_P(WholeGradient, AndLossAreThoseOfPyTorch) {
  Evaluation evaluation(tiny(small_model(GetParam())),
                        [](std::int32_t i) { return 7 * i * i + 3 * i + 5; });
  const std::vector<ParameterTensor> tensors = parameter_tensors(evaluation.model());
  evaluation.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    const auto tensor = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const auto& t) { return t.name == slice.name; });
    const auto number = static_cast<std::size_t>(tensor - tensors.begin());
    const float centre = slice.name.ends_with("norm.weight") ? 1.0F : 0.0F;
    for (std::size_t i = 0; i < slice.elements(); ++i)
      evaluation.weights(unit, slice)[i] = centre + wave(number, i);
  });
  const std::string file = SHARDWRIGHT_SOURCE_DIR "/tests/executor/runtime/pytorch_reference.json";
  const nlohmann::json reference = read_json_file(file).at(GetParam());
  EXPECT_NEAR(evaluation.loss(), reference.at("loss").get<double>(), 1e-6);
  double largest = 0.0;
  for (const auto& [name, values] : reference.at("gradients").items())
    largest = std::max(largest, norm_of(values.get<std::vector<double>>()));
  std::size_t compared = 0;
  evaluation.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    std::vector<double> off = reference.at("gradients").at(slice.name);
    ASSERT_EQ(off.size(), slice.elements()) << slice.name;
    const std::vector<double> gradient = evaluation.gradient(unit, slice);
    for (std::size_t i = 0; i < off.size(); ++i) off[i] -= gradient[i];
    EXPECT_LE(norm_of(off), 2e-6 * largest) << slice.name;
    ++compared;
  });
  EXPECT_EQ(compared, reference.at("gradients").size());
}

TEST_P(WholeGradient, AgreesWithCentralDifferencesOfTheLoss) {
  ModelSpec model = tiny(small_model(GetParam()));
  // The loss jumps where the choice of experts changes.
  if (model.moe) model.moe->top_k = model.moe->experts;
  Evaluation evaluation(model, [](std::int32_t i) { return 5 * i + 2; });
  std::size_t number = 0;
  evaluation.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    ++number;
    for (std::size_t i = 0; i < slice.elements(); ++i)
      evaluation.weights(unit, slice)[i] += wave(number, i);
  });
  evaluation.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    evaluation.loss();
    const std::vector<double> gradient = evaluation.gradient(unit, slice);
    const double norm = norm_of(gradient);
    // fp32 rounds the loss of about 3 to 1e-7 of it, many times.
    const double tolerance = 2e-3 * norm + 1e-4;
    std::vector<std::vector<double>> directions;
    for (std::uint64_t key = 0; key < 3; ++key)
      directions.push_back(unit_length(random_signs(gradient.size(), 100 * unit + key)));
    if (norm > 1e-3) directions.push_back(unit_length(gradient));
    for (const std::vector<double>& along : directions) {
      EXPECT_NEAR(product(gradient, along),
                  difference_along(evaluation, evaluation.weights(unit, slice), along), tolerance)
          << slice.name << ", gradient's norm " << norm;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Models, WholeGradient,
                         testing::Values("gpt2", "llama", "qwen3", "mixtral", "qwen2_moe",
                                         "deepseek_v2", "deepseek_v3"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace shardwright::executor
