// Compares loss and all gradients of a small GPT-2 and a small Llama with PyTorch in fp64
// (tests/executor/pytorch_reference.py). Ours are fp32: each tensor's gradient agrees within 2e-6
// of the largest gradient norm of a tensor, and the loss within 1e-6.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kSequences = 2, kTokens = 6, kVocabulary = 11;

ModelSpec reference_size(ModelSpec model) {
  model.layers = 2;
  model.hidden = 8;
  model.vocab = kVocabulary;
  model.attention.head_dim = 2;
  model.mlp.ffn_hidden = 12;
  if (model.position_embeddings > 0) model.position_embeddings = kTokens + 2;
  return model;
}

Batch reference_batch() {
  Batch batch;
  for (std::int32_t i = 0; i < kSequences * kTokens; ++i) {
    batch.tokens.push_back((7 * i * i + 3 * i) % static_cast<std::int32_t>(kVocabulary));
    batch.targets.push_back((7 * i * i + 3 * i + 5) % static_cast<std::int32_t>(kVocabulary));
  }
  return batch;
}

float weight_formula(std::size_t number, const std::string& name, std::size_t index) {
  const double wave =
      0.4 * std::sin(0.9 * static_cast<double>(index) + 1.7 * static_cast<double>(number));
  const bool norm = name.size() > 11 && name.substr(name.size() - 11) == "norm.weight";
  return static_cast<float>(norm ? wave + 1.0 : wave);
}

// One rank holds each parameter completely, so a slice's elements are the parameter's.
template <class Visit>
void for_each_slice(const ParameterStore& store, Visit visit) {
  const auto& units = store.layout().units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    for (const ParameterSlice& slice : units[u].slices) visit(u, slice);
  }
}

void set_weights(const ModelSpec& model, ParameterStore& store) {
  const std::vector<ParameterTensor> tensors = parameter_tensors(model);
  for_each_slice(store, [&](std::size_t unit, const ParameterSlice& slice) {
    const auto tensor = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const auto& t) { return t.name == slice.name; });
    auto* weights = static_cast<float*>(store.weights(unit, slice.offset));
    for (std::size_t i = 0; i < slice.elements(); ++i) {
      weights[i] =
          weight_formula(static_cast<std::size_t>(tensor - tensors.begin()), slice.name, i);
    }
  });
}

double norm_of(const std::vector<double>& values) {
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

class PyTorch : public testing::TestWithParam<const char*> {};

TEST_P(PyTorch, GivesTheSameLossAndGradients) {
  const std::string file = SHARDWRIGHT_SOURCE_DIR "/tests/executor/runtime/pytorch_reference.json";
  const nlohmann::json reference = read_json_file(file).at(GetParam());
  const bool llama = GetParam() == std::string("llama");
  const ModelSpec model = reference_size(llama ? small_llama() : small_gpt2());
  Plan plan = one_rank_plan();
  plan.micro_batch = plan.global_batch = kSequences;
  plan.seq_len = kTokens;
  const Program program = lower(model, plan, load_stack("shardwright"));
  TrainingOptions options;
  options.beta1 = 0.0;  // so that the first moment is the gradient
  options.clip_norm = 0.0;
  CpuKernels<float> kernels;
  RankTrainer trainer(model, program, 0, kernels, {}, options);
  set_weights(model, trainer.parameters());
  const double loss = trainer.step(0, reference_batch()).loss;
  EXPECT_NEAR(loss, reference.at("loss").get<double>(), 1e-6);

  double largest = 0.0;
  for (const auto& [name, values] : reference.at("gradients").items())
    largest = std::max(largest, norm_of(values.get<std::vector<double>>()));
  std::size_t compared = 0;
  for_each_slice(trainer.parameters(), [&](std::size_t unit, const ParameterSlice& slice) {
    std::vector<double> expected = reference.at("gradients").at(slice.name);
    ASSERT_EQ(expected.size(), slice.elements()) << slice.name;
    const auto* gradient =
        static_cast<const float*>(trainer.parameters().first_moments(unit, slice.offset));
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] -= static_cast<double>(gradient[i]);
    EXPECT_LE(norm_of(expected), 2e-6 * largest) << slice.name;
    ++compared;
  });
  EXPECT_EQ(compared, reference.at("gradients").size());
}

INSTANTIATE_TEST_SUITE_P(Models, PyTorch, testing::Values("gpt2", "llama"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace shardwright::executor
