#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "core/spec/model_library.hpp"
#include "core/spec/model_spec.hpp"
#include "tests/core/spec/model_samples.hpp"

namespace shardwright {
namespace {

struct PublishedCount {
  const char* model;
  std::int64_t total;
  const char* source;
};

constexpr const char* kKerasHub =
    "exact \"params\" of the preset in https://github.com/keras-team/keras-hub";
constexpr const char* kHubTotal =
    "field safetensors.total of https://huggingface.co/api/models/<repository>";
constexpr const char* kLoaded = "parameters of the model as the transformers library loads it";

// Exact counts, each seen in a public source that is independent of this code.
constexpr PublishedCount kPublished[] = {
    {"gpt2", 124'439'808, kLoaded},
    {"gpt2-xl", 1'557'611'200, kKerasHub},
    {"gpt-neox-20b", 20'554'567'680,
     "model card of https://huggingface.co/EleutherAI/gpt-neox-20b"},
    {"bloom-176b", 176'247'271'424,
     "table in https://github.com/huggingface/huggingface.js (safetensors parameters)"},
    {"llama-65b", 65'285'660'672, kLoaded},
    {"llama2-7b", 6'738'415'616, kLoaded},
    {"llama2-13b", 13'015'864'320, kLoaded},
    {"llama3-8b", 8'030'261'248, kHubTotal},
    {"llama3.1-70b", 70'553'706'496, kHubTotal},
    {"llama3.1-405b", 405'853'388'800, kHubTotal},
    {"llama3.2-1b", 1'235'814'400, kHubTotal},
    {"mistral-7b", 7'241'732'096, kHubTotal},
    {"mixtral-8x7b", 46'702'792'704, kKerasHub},
    {"mixtral-8x22b", 140'620'634'112, kHubTotal},
    {"qwen1.5-moe-a2.7b", 14'315'784'192, kKerasHub},
    {"qwen2.5-72b", 72'706'203'648, kKerasHub},
    {"qwen3-8b", 8'190'735'360, kHubTotal},
    {"qwen3-32b", 32'762'123'264, kKerasHub},
    {"qwen3-30b-a3b", 30'532'122'624, kHubTotal},
    {"qwen3-235b-a22b", 235'093'634'560, kHubTotal},
    {"deepseek-v2-lite", 15'706'484'224, kHubTotal},
    {"deepseek-v2", 235'741'434'880, kHubTotal},
    {"deepseek-v3", 671'026'419'200, "main model: all tensors of layers 0 to 60 in the checkpoint"},
    {"gemma-7b", 8'537'680'896, kKerasHub},
    {"gemma2-9b", 9'241'705'984, kHubTotal},
    {"gemma2-27b", 27'227'128'320, kKerasHub},
    {"gemma3-1b", 999'885'952, kHubTotal},
    {"phi3-mini", 3'821'079'552, kHubTotal},
};

TEST(PublishedParameters, AreCountedExactly) {
  for (const PublishedCount& published : kPublished) {
    EXPECT_EQ(count_parameters(load_model(published.model)).total, published.total)
        << published.model << ", " << published.source;
  }
}

// Narayanan et al. 2021 (arXiv 2104.04473), table 1, in billions with one digit; GPT-3 from table
// D.1 of arXiv 2005.14165, OPT-175B is of the same shape.
TEST(PublishedParameters, OfPapersAreMetToTheDigitsGiven) {
  const std::pair<const char*, double> kBillions[] = {
      {"megatron-1.7b", 1.7},   {"megatron-3.6b", 3.6},   {"megatron-7.5b", 7.5},
      {"megatron-18b", 18.4},   {"megatron-39b", 39.1},   {"megatron-76b", 76.1},
      {"megatron-145b", 145.6}, {"megatron-310b", 310.1}, {"mt-nlg-530b", 529.6},
      {"megatron-1t", 1008.0},  {"gpt3-175b", 174.6},     {"opt-175b", 174.6}};
  for (const auto& [name, billions] : kBillions) {
    const auto total = static_cast<double>(count_parameters(load_model(name)).total);
    EXPECT_NEAR(total / 1e9, billions, 0.051) << name;
  }
}

// Mixtral of Experts (arXiv 2401.04088): "13B active"; Qwen3 technical report (arXiv 2505.09388),
// table 2: 3B and 22B; DeepSeek-V2 (arXiv 2405.04434): 21B and 2.4B without the embedding;
// DeepSeek-V3 (README_WEIGHTS.md of its repository): 36.7B, which counts the 0.93B of the embedding
// or of the head but not both; this count has both.
TEST(PublishedParameters, OfOneTokenAreMetToTheDigitsGiven) {
  struct Active {
    const char* model;
    double billions;
    double tolerance;
  };
  const Active kActive[] = {{"mixtral-8x7b", 12.9, 0.05},       {"mixtral-8x22b", 39.1, 0.1},
                            {"qwen3-30b-a3b", 3.3, 0.06},       {"qwen3-235b-a22b", 22.0, 0.5},
                            {"deepseek-v2", 21.0, 0.5},         {"qwen1.5-moe-a2.7b", 2.7, 0.05},
                            {"deepseek-v3", 36.7 + 0.927, 0.08}};
  for (const Active& row : kActive) {
    const auto active = static_cast<double>(count_parameters(load_model(row.model)).active);
    EXPECT_NEAR(active / 1e9, row.billions, row.tolerance) << row.model;
  }
}

// Table 1 of arXiv 2508.10925, which rounds to hundredths of a billion.
TEST(PublishedParameters, OfGptOssAreMetToTheDigitsGiven) {
  const auto billions = [](const char* model) {
    return static_cast<double>(count_parameters(load_model(model)).total) / 1e9;
  };
  EXPECT_NEAR(billions("gpt-oss-120b"), 116.83, 0.005);
  EXPECT_NEAR(billions("gpt-oss-20b"), 20.91, 0.006);
}

// A sink for each of 64 heads and a bias of the router for each expert, in each layer.
TEST(CountParameters, SinksAndRouterBiasesAreCounted) {
  ModelSpec model = load_model("gpt-oss-120b");
  const std::int64_t all = count_parameters(model).total;
  model.attention.sinks = model.moe->router_linear_bias = false;
  EXPECT_EQ(all - count_parameters(model).total, 36 * (64 + 128));
}

// safetensors.total on the Hugging Face hub. The prediction layer of DeepSeek-V3 (besides FP8
// scales; R1 has the same shape) repeats the embedding and the head; Falcon ties its head to the
// embedding, but stores both. A dense model without either stores what it trains.
TEST(PublishedParameters, OfCheckpointsCountWhatTheyStoreTwice) {
  const std::pair<const char*, std::int64_t> kStored[] = {{"deepseek-v3", 684'489'845'504},
                                                          {"falcon-7b", 7'217'189'760},
                                                          {"falcon-40b", 41'835'970'560},
                                                          {"falcon-180b", 179'522'565'120},
                                                          {"llama3-8b", 8'030'261'248}};
  for (const auto& [name, stored] : kStored)
    EXPECT_EQ(count_parameters(load_model(name)).checkpoint, stored) << name;
}

// Equation 2 of arXiv 2104.04473, P = 12 l h^2 (1 + 13/(12h) + (V+s)/(12lh)), plus the 2h of the
// final norm that it leaves out.
TEST(CountParameters, OfAGptFollowTheClosedForm) {
  const bool ok = rc::check("gpt", [] {
    ModelSpec model;
    const std::int64_t l = model.layers = any_size(1, 100);
    const std::int64_t head_dim = any_size(1, 128);
    model.attention.heads = model.attention.kv_heads = any_size(1, 64);
    model.attention.head_dim = head_dim;
    const std::int64_t h = model.hidden = model.attention.heads * head_dim;
    const std::int64_t V = model.vocab = any_size(1, 100'000);
    const std::int64_t s = model.max_seq_len = model.position_embeddings = any_size(1, 4096);
    model.attention.qkv_bias = model.attention.output_bias = true;
    model.mlp = {4 * h, Activation::Gelu, false, true};
    model.norm = NormKind::LayerNorm;
    model.norm_bias = true;
    model.position = PositionKind::Learned;
    model.tied_embeddings = true;
    RC_ASSERT(count_parameters(model).total == 12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h);
  });
  EXPECT_TRUE(ok);
}

std::int64_t sum_of(const std::vector<ParameterTensor>& tensors, bool prediction) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : tensors) {
    if ((tensor.place == ParameterPlace::Mtp) == prediction) sum += tensor.elements();
  }
  return sum;
}

TEST(CountParameters, IsTheSumOfAllTensors) {
  const bool ok = rc::check("sum", [] {
    const ModelSpec model = any_model();
    const std::vector<ParameterTensor> tensors = parameter_tensors(model);
    const ParameterCount count = count_parameters(model);
    RC_ASSERT(count.total == sum_of(tensors, false));
    RC_ASSERT(count.mtp == sum_of(tensors, true));
  });
  EXPECT_TRUE(ok);
}

TEST(CountParameters, OfOneTokenGrowWithTopKByOneExpertPerSparseLayer) {
  const bool ok = rc::check("active", [] {
    ModelSpec model = any_model();
    model.moe = any_experts(model.layers);
    model.mlp.bias = false;
    std::int64_t sparse_layers = 0;
    for (std::int64_t i = 0; i < model.layers; ++i) sparse_layers += model.is_sparse(i) ? 1 : 0;
    RC_ASSERT(sparse_layers > 0);
    const std::int64_t matrices = model.mlp.gated ? 3 : 2;
    const std::int64_t expert = matrices * model.hidden * model.moe->expert_ffn;
    const ParameterCount count = count_parameters(model);
    const std::int64_t idle = model.moe->experts - model.moe->top_k;
    RC_ASSERT(count.active == count.total - sparse_layers * idle * expert);
    RC_ASSERT(count.active <= count.total);
  });
  EXPECT_TRUE(ok);
}

TEST(ParameterTensors, HaveNamesOfTheirOwnAndPositiveShapes) {
  const bool ok = rc::check("names", [] {
    std::set<std::string> names;
    for (const ParameterTensor& tensor : parameter_tensors(any_model())) {
      RC_ASSERT(names.insert(tensor.name).second);
      RC_ASSERT(!tensor.shape.empty());
      for (const std::int64_t size : tensor.shape) RC_ASSERT(size > 0);
    }
  });
  EXPECT_TRUE(ok);
}

// Tensor parallelism divides what is split: a column-split weight along its first dimension, a
// row-split one along its last, so the bias of a row-split matrix cannot be split with it.
TEST(ParameterTensors, AreShardedAlongADimensionThatTheyHave) {
  const bool ok = rc::check("shards", [] {
    for (const ParameterTensor& tensor : parameter_tensors(any_model())) {
      const bool experts = tensor.shard == ShardKind::ExpertColumn ||
                           tensor.shard == ShardKind::ExpertRow ||
                           tensor.shard == ShardKind::ExpertReplicated;
      RC_ASSERT(experts == (tensor.name.find(".experts.") != std::string::npos));
      if (tensor.shard == ShardKind::Row) RC_ASSERT(tensor.shape.size() == 2u);
      if (tensor.shard == ShardKind::ExpertRow) RC_ASSERT(tensor.shape.size() == 3u);
      if (tensor.shard == ShardKind::ExpertReplicated) RC_ASSERT(tensor.shape.size() == 2u);
    }
  });
  EXPECT_TRUE(ok);
}

TEST(IsSparse, FollowsLeadingDenseLayersAndTheInterval) {
  ModelSpec model;
  model.layers = 8;
  EXPECT_FALSE(model.is_sparse(0));
  model.moe = MoeSpec{};
  model.moe->first_dense_layers = 2;
  model.moe->layer_interval = 2;
  std::string pattern;
  for (std::int64_t i = 0; i < model.layers; ++i) pattern += model.is_sparse(i) ? 's' : 'd';
  EXPECT_EQ(pattern, "dddsdsds");
}

TEST(SlidingWindow, IsOffInEachKthLayerAndInLeadingLayers) {
  ModelSpec model;
  model.attention.sliding_window = 512;
  model.attention.full_attention_interval = 3;
  model.attention.full_attention_first_layers = 1;
  std::string pattern;
  for (std::int64_t i = 0; i < 7; ++i) pattern += model.sliding_window_of(i) == 512 ? 'w' : 'f';
  EXPECT_EQ(pattern, "fwfwwfw");
}

}  // namespace
}  // namespace shardwright
