// The ops of the CPU in bf16 against those in fp32.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "executor/kernels/cpu/bf16_kernels.hpp"
#include "tests/executor/kernels/op_table.hpp"

namespace shardwright::executor {
namespace {

// Ops of mixtures of experts, which run on CPUs alone. The backward pass gets the forward pass's
// own results.
std::vector<OpResult> router(OpBench& bench, bool renormalised) {
  const RouterShape shape{40, 6, 2, renormalised};
  const std::int64_t scores = shape.tokens * shape.experts, choices = shape.tokens * shape.top_k;
  const auto probabilities = bench.activations(values_of(scores, 1, 4.0));
  const auto dshares = bench.activations(values_of(choices, 2));
  const auto shares = bench.activations(zeros(choices)), dscores = bench.activations(zeros(scores));
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(choices));
  std::vector<double> balance(2 * static_cast<std::size_t>(shape.experts), 0.5);
  balance[3] = -1.0;
  bench.kernels.choose_experts(shape, probabilities, chosen.data(), shares, bench.queue);
  bench.kernels.choose_experts_backward(shape, probabilities, chosen.data(), dshares,
                                        balance.data(), 20, dscores, bench.queue);
  return {{"probabilities", bench.read_activations(probabilities, scores), kRoundedOnce},
          {"chosen", {chosen.begin(), chosen.end()}, 0.0},
          {"shares", bench.read_activations(shares, choices), kRoundedOnce},
          {"dscores", bench.read_activations(dscores, scores), kRoundedOften}};
}

std::vector<OpResult> rows_of_experts(OpBench& bench) {
  constexpr std::int64_t kRows = 5, kWidth = 6;
  const std::vector<std::int32_t> index = {4, 1, -1, 0, 4, 2};
  const auto from = bench.activations(values_of(kRows * kWidth, 1));
  const auto addend = bench.activations(values_of(3 * kWidth, 2));
  const auto weights = bench.activations(values_of(kRows, 3));
  const auto gathered = bench.activations(values_of(6 * kWidth, 4));
  const auto sums = bench.activations(zeros(3 * kWidth)), products = bench.activations(zeros(3));
  bench.kernels.gather_rows(kWidth, index, from, gathered, bench.queue);
  bench.kernels.sum_rows(kWidth, 2, index, from, addend, sums, bench.queue);
  bench.kernels.multiply_rows(3, kWidth, from, addend, products, bench.queue);
  bench.kernels.scale_rows(kRows, kWidth, weights, from, bench.queue);
  return {{"gathered", bench.read_activations(gathered, 6 * kWidth), 0.0},
          {"sums", bench.read_activations(sums, 3 * kWidth), kRoundedOnce},
          {"products", bench.read_activations(products, 3), kRoundedOnce},
          {"scaled", bench.read_activations(from, kRows * kWidth), kRoundedOnce}};
}

// The second of the three experts has no rows.
std::vector<OpResult> experts(OpBench& bench) {
  constexpr std::int64_t kRows = 8, kIn = 10, kOut = 6;
  const std::vector<std::int64_t> rows = {5, 0, 3};
  const ExpertProductShape shape{rows, kIn, kOut};
  const auto x = bench.activations(values_of(kRows * kIn, 1));
  const auto dy = bench.activations(values_of(kRows * 2 * kOut, 2));
  const std::vector<const void*> weights = {bench.activations(values_of(3 * kOut * kIn, 3)),
                                            bench.activations(values_of(3 * kOut * kIn, 4))};
  const std::vector<void*> dweights = {bench.states(values_of(3 * kOut * kIn, 5)),
                                       bench.states(values_of(3 * kOut * kIn, 6))};
  const auto y = bench.activations(zeros(kRows * 2 * kOut));
  const auto dx = bench.activations(zeros(kRows * kIn));
  bench.kernels.expert_product(shape, x, weights, y, bench.queue);
  bench.kernels.expert_input_gradient(shape, dy, weights, dx, bench.queue);
  bench.kernels.expert_weight_gradient(shape, dy, x, dweights, bench.queue);
  return {{"y", bench.read_activations(y, kRows * 2 * kOut), kRoundedOnce},
          {"dx", bench.read_activations(dx, kRows * kIn), kRoundedOnce},
          {"first dweight", bench.read_states(dweights[0], 3 * kOut * kIn), kExact},
          {"second dweight", bench.read_states(dweights[1], 3 * kOut * kIn), kExact}};
}

std::vector<OpResult> gated_rows(OpBench& bench) {
  constexpr std::int64_t kRows = 7, kWidth = 12;
  const auto in = bench.activations(values_of(kRows * kWidth, 1));
  const auto gate = bench.activations(values_of(kRows, 2, 3.0));
  const auto dout = bench.activations(values_of(kRows * kWidth, 3));
  const auto out = bench.activations(zeros(kRows * kWidth));
  const auto din = bench.activations(zeros(kRows * kWidth)),
             dgate = bench.activations(zeros(kRows));
  bench.kernels.gate_rows(kRows, kWidth, in, gate, out, bench.queue);
  bench.kernels.gate_rows_backward(kRows, kWidth, dout, in, gate, din, dgate, bench.queue);
  return {{"out", bench.read_activations(out, kRows * kWidth), kRoundedOnce},
          {"din", bench.read_activations(din, kRows * kWidth), kRoundedOnce},
          {"dgate", bench.read_activations(dgate, kRows), kRoundedOnce}};
}

std::vector<OpCase> ops_of_experts() {
  return {
      {"router", false, [](OpBench& bench) { return router(bench, false); }},
      {"router_renormalised", false, [](OpBench& bench) { return router(bench, true); }},
      {"rows", false, rows_of_experts},
      {"experts", false, experts},
      {"gated_rows", false, gated_rows},
  };
}

class Bf16Op : public testing::TestWithParam<OpCase> {};

TEST_P(Bf16Op, AgreesWithTheKernelsInFp32) {
  const auto kernels = make_bf16_cpu_kernels();
  OpBench bench(*kernels);
  expect_same_results(GetParam(), bench);
}

INSTANTIATE_TEST_SUITE_P(Ops, Bf16Op, testing::ValuesIn(op_table()),
                         [](const auto& op) { return op.param.name; });
INSTANTIATE_TEST_SUITE_P(OpsOfExperts, Bf16Op, testing::ValuesIn(ops_of_experts()),
                         [](const auto& op) { return op.param.name; });

}  // namespace
}  // namespace shardwright::executor
