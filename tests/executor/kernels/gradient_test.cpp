// Compares the backward kernels with central differences in fp64.
//
// For an operation y(x) and random weights r, the gradient of sum(r y) along x_i is
// (sum(r y(x + h e_i)) - sum(r y(x - h e_i))) / 2h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <vector>

#include "executor/data/hash.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"

namespace shardwright::executor {
namespace {

using Values = std::vector<double>;
constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-8;

Values random_values(std::size_t count, std::uint64_t key) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 2.0 * random_unit(key, i) - 1.0;
  return values;
}

double weighted_sum(const Values& weights, const Values& values) {
  return std::inner_product(weights.begin(), weights.end(), values.begin(), 0.0);
}

// `objective` depends on `x` by reference.
void expect_gradient(const char* what, Values& x, const Values& gradient,
                     const std::function<double()>& objective) {
  ASSERT_EQ(x.size(), gradient.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double above = objective();
    x[i] = at - kStep;
    const double below = objective();
    x[i] = at;
    const double expected = (above - below) / (2.0 * kStep);
    EXPECT_NEAR(gradient[i], expected, kTolerance * std::max(1.0, std::abs(expected)))
        << what << " " << i;
  }
}

Kernels& kernels() {
  static CpuKernels<double> made;
  return made;
}

// The outputs fill their rows, or begin longer ones.
class GradientOfLinear : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(OutputWidths, GradientOfLinear, testing::Values(0, 5));

TEST_P(GradientOfLinear, AgreesWithDifferences) {
  const LinearShape shape{5, 4, 3, GetParam()};
  const auto width = static_cast<std::size_t>(GetParam() == 0 ? 3 : GetParam());
  Values x = random_values(20, 1), weight = random_values(12, 2), bias = random_values(3, 3);
  const Values r = random_values(5 * width, 4);
  const auto objective = [&] {
    Values y(5 * width);
    kernels().linear(shape, x.data(), weight.data(), bias.data(), y.data(), nullptr);
    return weighted_sum(r, y);
  };
  Values dx(20), dweight(12), dbias(3);
  kernels().linear_input_gradient(shape, r.data(), weight.data(), dx.data(), nullptr);
  kernels().linear_weight_gradient(shape, r.data(), x.data(), dweight.data(), dbias.data(),
                                   nullptr);
  expect_gradient("input", x, dx, objective);
  expect_gradient("weight", weight, dweight, objective);
  expect_gradient("bias", bias, dbias, objective);
}

// With a loss on all probabilities, as auxiliary losses have it.
TEST(Gradient, OfTheChoiceOfExperts) {
  for (const bool renormalised : {true, false}) {
    const RouterShape shape{4, 5, 2, renormalised};
    Values logits = random_values(20, 1);
    const Values r = random_values(8, 2), balance = random_values(10, 3);
    std::vector<std::int32_t> chosen(8);
    const auto objective = [&] {
      Values scores = logits, shares(8);
      kernels().choose_experts(shape, scores.data(), chosen.data(), shares.data(), nullptr);
      double sum = weighted_sum(r, shares);
      for (std::size_t i = 0; i < scores.size(); ++i)
        sum += scores[i] * balance[(i / 10) * 5 + i % 5];
      return sum;
    };
    objective();
    Values probabilities = logits, shares(8), gradient(20);
    kernels().choose_experts(shape, probabilities.data(), chosen.data(), shares.data(), nullptr);
    kernels().choose_experts_backward(shape, probabilities.data(), chosen.data(), r.data(),
                                      balance.data(), 2, gradient.data(), nullptr);
    expect_gradient("logits", logits, gradient, objective);
    for (std::size_t i = 0; i < chosen.size(); i += 2) EXPECT_GE(shares[i], shares[i + 1]);
  }
}

// Two matrices for each of three experts, of which one gets no rows.
TEST(Gradient, OfProductsOfExperts) {
  const std::vector<std::int64_t> rows = {2, 0, 3};
  const ExpertProductShape shape{rows, 4, 3};
  Values x = random_values(20, 1), gate = random_values(36, 2), up = random_values(36, 3);
  const Values r = random_values(30, 4);
  const std::vector<const void*> weights = {gate.data(), up.data()};
  const auto objective = [&] {
    Values y(30);
    kernels().expert_product(shape, x.data(), weights, y.data(), nullptr);
    return weighted_sum(r, y);
  };
  Values dx(20), dgate(36), dup(36);
  const std::vector<void*> dweights = {dgate.data(), dup.data()};
  kernels().expert_input_gradient(shape, r.data(), weights, dx.data(), nullptr);
  kernels().expert_weight_gradient(shape, r.data(), x.data(), dweights, nullptr);
  expect_gradient("input", x, dx, objective);
  expect_gradient("first weights", gate, dgate, objective);
  expect_gradient("second weights", up, dup, objective);
}

TEST(Gradient, OfNormsWithAResidual) {
  for (const NormKind kind : {NormKind::LayerNorm, NormKind::RmsNorm}) {
    const NormShape shape{kind, 3, 6, 0.01};
    Values x = random_values(18, 1), weight = random_values(6, 2), bias = random_values(6, 3);
    const Values r = random_values(18, 4), residual = random_values(18, 5);
    const auto objective = [&] {
      Values y(18);
      kernels().norm(shape, x.data(), weight.data(), bias.data(), y.data(), nullptr);
      return weighted_sum(r, y) + weighted_sum(residual, x);
    };
    Values dx(18), dweight(6), dbias(6);
    kernels().norm_backward(shape, r.data(), residual.data(), x.data(), weight.data(), dx.data(),
                            dweight.data(), dbias.data(), nullptr);
    expect_gradient("input", x, dx, objective);
    expect_gradient("weight", weight, dweight, objective);
    expect_gradient("bias", bias, dbias, objective);
  }
}

// Rows of inputs and their gradients with two more elements, which the norm leaves alone.
TEST(Gradient, OfNormsOfTheBeginningsOfRows) {
  const NormShape shape{NormKind::RmsNorm, 3, 4, 0.01, 6};
  Values x = random_values(18, 1), weight = random_values(4, 2);
  const Values r = random_values(12, 3);
  const auto objective = [&] {
    Values y(12);
    kernels().norm(shape, x.data(), weight.data(), nullptr, y.data(), nullptr);
    return weighted_sum(r, y);
  };
  Values dx(18), dweight(4);
  kernels().norm_backward(shape, r.data(), nullptr, x.data(), weight.data(), dx.data(),
                          dweight.data(), nullptr, nullptr);
  expect_gradient("input", x, dx, objective);
  expect_gradient("weight", weight, dweight, objective);
}

// Two heads among rows that hold other elements, too.
TEST(Gradient, OfNormsOfHeads) {
  const HeadNormShape shape{3, 2, 4, 11, 9, 0.01};
  Values x = random_values(33, 1), weight = random_values(4, 2);
  const Values r = random_values(33, 3);
  Values before(27);
  const auto objective = [&] {
    Values y = x;
    kernels().head_norm(shape, weight.data(), y.data(), before.data(), nullptr);
    return weighted_sum(r, y);
  };
  objective();
  Values dx = r, dweight(4);
  kernels().head_norm_backward(shape, before.data(), weight.data(), dx.data(), dweight.data(),
                               nullptr);
  expect_gradient("input", x, dx, objective);
  expect_gradient("weight", weight, dweight, objective);
}

// For a row of equal elements x, RMSNorm gives x / sqrt(x^2 + epsilon).
TEST(Norm, AddsItsEpsilonInsideOfTheRoot) {
  for (const double epsilon : {1e-6, 1e-5, 0.5}) {
    const Values x(4, 0.25), weight(4, 1.0);
    Values y(4);
    kernels().norm({NormKind::RmsNorm, 1, 4, epsilon}, x.data(), weight.data(), nullptr, y.data(),
                   nullptr);
    for (const double value : y) EXPECT_NEAR(value, 0.25 / std::sqrt(0.25 * 0.25 + epsilon), 1e-12);
  }
}

// RoFormer (arXiv 2104.09864), section 3.2.2: pair i of d at position m turns by m theta^(-2i/d).
// Llama 3.1's three cases: angles of short wavelengths stay, those of long ones are divided by the
// factor, and the others are blended by how many turns they make.
TEST(Rope, ScalesTheAnglesOfLongWavelengths) {
  RopeShape shape;
  shape.rotated = 128;
  shape.theta = 500'000.0;
  RopeScalingSpec& scaling = shape.scaling.emplace();
  scaling.factor = 8.0;
  int kept = 0, divided = 0, blended = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    const double base = std::pow(500'000.0, -static_cast<double>(i) / 64.0);
    const double wavelength = 2.0 * std::numbers::pi / base;
    double expected = base;
    if (wavelength > 8192.0) {
      expected = base / 8.0;
      ++divided;
    } else if (wavelength > 2048.0) {
      const double smooth = (8192.0 / wavelength - 1.0) / 3.0;
      expected = (1.0 - smooth) * base / 8.0 + smooth * base;
      ++blended;
    } else {
      ++kept;
    }
    EXPECT_NEAR(shape.frequency(i) / expected, 1.0, 1e-12) << i;
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(divided, 20);
  EXPECT_GT(blended, 2);
  scaling.kind = RopeScalingKind::Linear;
  EXPECT_EQ(shape.frequency(0), 1.0 / 8.0);
}

// DeepSeek-V2's heads: transformers 5.24.0 (`_compute_yarn_parameters`) keeps the pairs up to 10,
// divides those from 23 on, and blends evenly between them. Its `attention_scaling` is 1 for the
// `mscale` of DeepSeek-V2, and 1.15572 for the other pair.
TEST(Rope, ScalesAnglesAsYarnDoes) {
  RopeShape shape;
  shape.rotated = 64;
  RopeScalingSpec& scaling = shape.scaling.emplace();
  scaling.kind = RopeScalingKind::Yarn;
  scaling.factor = 40.0;
  scaling.original_max_seq_len = 4096;
  for (std::int64_t i = 0; i < 32; ++i) {
    const double base = std::pow(10'000.0, -static_cast<double>(i) / 32.0);
    const double blend = std::clamp((static_cast<double>(i) - 10.0) / 13.0, 0.0, 1.0);
    EXPECT_NEAR(shape.frequency(i) / base, 1.0 - blend * (1.0 - 1.0 / 40.0), 1e-12) << i;
  }
  scaling.mscale = scaling.mscale_all_dim = 0.707;
  EXPECT_EQ(shape.magnitude(), 1.0);
  scaling.mscale = 1.0;
  scaling.mscale_all_dim = 0.5;
  EXPECT_NEAR(shape.magnitude(), 1.1557219901962608, 1e-12);
}

TEST(Rope, RotatesByTheAnglesOfItsBase) {
  for (const double theta : {100.0, 10'000.0, 500'000.0}) {
    for (const bool interleaved : {false, true}) {
      RopeShape shape{5, 6, 1, 6, 6, 5, theta};
      shape.interleaved = interleaved;
      const std::size_t next = interleaved ? 2 : 1, partner = interleaved ? 1 : 3;
      Values data(30);
      for (std::size_t row = 0; row < 5; ++row)
        for (std::size_t i = 0; i < 3; ++i) data[row * 6 + i * next] = 1.0;
      kernels().rope(shape, false, data.data(), nullptr);
      for (std::size_t position = 0; position < 5; ++position) {
        for (std::size_t i = 0; i < 3; ++i) {
          const double angle =
              static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(i) / 6.0);
          EXPECT_NEAR(data[position * 6 + i * next], std::cos(angle), 1e-12);
          EXPECT_NEAR(data[position * 6 + i * next + partner], std::sin(angle), 1e-12);
        }
      }
    }
  }
}

class GradientOfRotaryPositions : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Interleaved, GradientOfRotaryPositions, testing::Bool());

TEST_P(GradientOfRotaryPositions, AgreesWithDifferences) {
  // Two heads of eight, of which six are rotated, and one that is left alone.
  RopeShape shape{6, 24, 2, 8, 6, 3, 50.0};
  shape.interleaved = GetParam();
  if (GetParam()) {
    // Rotations that lengthen.
    RopeScalingSpec& scaling = shape.scaling.emplace();
    scaling.kind = RopeScalingKind::Yarn;
    scaling.factor = 4.0;
  }
  Values x = random_values(144, 1);
  const Values r = random_values(144, 2);
  const auto objective = [&] {
    Values y = x;
    kernels().rope(shape, false, y.data(), nullptr);
    return weighted_sum(r, y);
  };
  Values dx = r;
  kernels().rope(shape, true, dx.data(), nullptr);
  expect_gradient("input", x, dx, objective);
}

TEST(Gradient, OfActivations) {
  for (const Activation kind : {Activation::Gelu, Activation::Relu, Activation::Silu}) {
    for (const bool gated : {false, true}) {
      const ActivationShape shape{kind, gated, 3, 5};
      Values up = random_values(gated ? 30 : 15, 1);
      const Values r = random_values(15, 2);
      const auto objective = [&] {
        Values y(15);
        kernels().activation(shape, up.data(), y.data(), nullptr);
        return weighted_sum(r, y);
      };
      Values dup(up.size());
      kernels().activation_backward(shape, up.data(), r.data(), dup.data(), nullptr);
      expect_gradient(name_of(kind), up, dup, objective);
    }
  }
}

TEST(Gradient, OfCausalAttentionWithSharedKeys) {
  AttentionWork work;
  work.batch = 2;
  work.heads = 4;
  work.kv_heads = 2;
  work.q_tokens = work.kv_tokens = 5;
  work.qk_head_dim = work.v_head_dim = 3;
  Values qkv = random_values(10 * 24, 1);
  const Values r = random_values(10 * 12, 2);
  Values out(10 * 12), statistics(10 * 4);
  const auto objective = [&] {
    kernels().attention(work, qkv.data(), out.data(), statistics.data(), nullptr);
    return weighted_sum(r, out);
  };
  objective();
  Values dqkv(qkv.size());
  kernels().attention_backward(work, qkv.data(), out.data(), statistics.data(), r.data(),
                               dqkv.data(), nullptr);
  expect_gradient("queries, keys, values", qkv, dqkv, objective);
}

// The rank holds the tokens 4 to 6 of a vocabulary, padded to four rows.
TEST(Gradient, OfEmbedding) {
  const EmbeddingShape shape{{4, 3, 4}, 2, 3};
  const std::vector<std::int32_t> tokens = {4, 0, 6, 5, 5, 7};
  Values table = random_values(8, 1), positions = random_values(6, 2);
  const Values r = random_values(12, 3);
  const auto objective = [&] {
    Values y(12);
    kernels().embedding(shape, tokens, table.data(), positions.data(), y.data(), nullptr);
    return weighted_sum(r, y);
  };
  Values dtable(8), dpositions(6);
  kernels().embedding_backward(shape, tokens, r.data(), dtable.data(), dpositions.data(), nullptr);
  expect_gradient("table", table, dtable, objective);
  expect_gradient("positions", positions, dpositions, objective);
}

// Cross-entropy over a vocabulary of 7 in two parts, the second one padded.
TEST(Gradient, OfLossOverTwoPartsOfAVocabulary) {
  const LossShape parts[] = {{{0, 4, 4}, 3}, {{4, 3, 4}, 3}};
  const std::vector<std::int32_t> targets = {1, 6, 4};
  constexpr std::size_t kRows = 3;
  Values logits[] = {random_values(12, 1), random_values(12, 2)};
  Values probabilities[] = {Values(12), Values(12)};
  const auto objective = [&] {
    Values own[] = {Values(9), Values(9)};
    for (const int part : {0, 1}) {
      kernels().loss_statistics(parts[part], targets, logits[part].data(), own[part].data(),
                                nullptr);
    }
    // The result of the ranks' all-reduces.
    Values all(9);
    for (std::size_t r = 0; r < kRows; ++r) all[r] = std::max(own[0][r], own[1][r]);
    for (Values& statistics : own) {
      const Values maxima(statistics.begin(), statistics.begin() + kRows);
      std::copy_n(all.begin(), kRows, statistics.begin());
      kernels().loss_rescale(kRows, maxima.data(), statistics.data(), nullptr);
      for (std::size_t i = kRows; i < all.size(); ++i) all[i] += statistics[i];
    }
    double losses[] = {0.0, 0.0};
    for (const int part : {0, 1}) {
      kernels().loss_probabilities(parts[part], logits[part].data(), all.data(),
                                   probabilities[part].data(), &losses[part], nullptr);
    }
    EXPECT_EQ(losses[0], losses[1]);
    return 0.5 * losses[0];
  };
  for (const int part : {0, 1}) {
    objective();
    Values gradient(12);
    kernels().loss_backward(parts[part], targets, 0.5F, probabilities[part].data(), gradient.data(),
                            nullptr);
    expect_gradient("logits", logits[part], gradient, objective);
  }
}

// Computes two steps by hand: m = (1-b1) g, v = (1-b2) g^2, both corrected, and decoupled weight
// decay.
TEST(AdamW, FollowsItsDefinition) {
  // The limit is half of the gradient's norm.
  const AdamStep step{.learning_rate = 0.5F,
                      .beta1 = 0.5F,
                      .beta2 = 0.75F,
                      .epsilon = 0.0F,
                      .weight_decay = 0.25F,
                      .clip_norm = 2.0F};
  Values weight = {2.0}, first = {0.0}, second = {0.0};
  const Values gradient = {4.0};
  const double squares = 16.0;
  kernels().adamw(1, step, {gradient.data(), weight.data(), first.data(), second.data(), nullptr},
                  &squares, nullptr);
  EXPECT_DOUBLE_EQ(first[0], 1.0);
  EXPECT_DOUBLE_EQ(second[0], 1.0);
  // m / sqrt(v) = 2 / 2
  EXPECT_DOUBLE_EQ(weight[0], 2.0 * 0.875 - 0.5);
}

}  // namespace
}  // namespace shardwright::executor
