#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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
constexpr const char* kPythia = "table of https://github.com/EleutherAI/pythia";
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
    {"llama-30b", 32'528'943'616, kLoaded},
    {"llama3.2-3b", 3'212'749'824, kHubTotal},
    {"codellama-34b", 33'743'970'304, kHubTotal},
    {"tinyllama-1.1b", 1'100'048'384, kHubTotal},
    {"smollm-1.7b", 1'711'376'384, kHubTotal},
    {"solar-10.7b", 10'731'524'096, kHubTotal},
    {"mistral-nemo-12b", 12'247'782'400, kHubTotal},
    {"yi-6b", 6'061'035'520, kHubTotal},
    {"yi-34b", 34'388'917'248, kHubTotal},
    {"deepseek-7b", 6'910'365'696, kHubTotal},
    {"glm4-9b", 9'399'951'360, kLoaded},
    {"kimi-k2", 1'026'408'232'448, kHubTotal},
    {"deepseek-moe-16b", 16'375'728'128, kHubTotal},
    {"internlm2-7b", 7'737'708'544, kHubTotal},
    {"internlm2-20b", 19'861'149'696, kHubTotal},
    {"chatglm3-6b", 6'243'584'000, kLoaded},
    {"qwen1.5-7b", 7'721'324'544, kHubTotal},
    {"qwen1.5-14b", 14'167'290'880, kHubTotal},
    {"qwen2-57b-a14b", 57'408'658'944, kHubTotal},
    {"qwen2.5-0.5b", 494'032'768, kHubTotal},
    {"qwen2.5-1.5b", 1'543'714'304, kHubTotal},
    {"qwen2.5-3b", 3'085'938'688, kHubTotal},
    {"qwen2.5-14b", 14'770'033'664, kHubTotal},
    {"qwen2.5-32b", 32'763'876'352, kKerasHub},
    {"qwen3-0.6b", 596'049'920, kKerasHub},
    {"qwen3-1.7b", 1'720'574'976, kKerasHub},
    {"qwen3-4b", 4'022'468'096, kHubTotal},
    {"qwen3-14b", 14'768'307'200, kHubTotal},
    {"pythia-160m", 162'322'944, kPythia},
    {"pythia-410m", 405'334'016, kPythia},
    {"pythia-1b", 1'011'781'632, kPythia},
    {"pythia-1.4b", 1'414'647'808, kPythia},
    {"pythia-2.8b", 2'775'208'960, kPythia},
    {"pythia-6.9b", 6'857'302'016, kPythia},
    {"pythia-12b", 11'846'072'320, kPythia},
    {"gpt-j-6b", 6'050'882'784, kLoaded},
    {"phi-2", 2'779'683'840, kHubTotal},
    {"bloom-3b", 3'002'557'440, kHubTotal},
    {"bloom-7.1b", 7'069'016'064, kHubTotal},
    {"starcoder-15b", 15'517'456'384, kLoaded},
    {"gemma-2b", 2'506'172'416, kKerasHub},
    {"gemma2-2b", 2'614'341'888, kKerasHub},
    {"nemotron-3-nano-30b-a3b", 31'577'940'288,
     "n_params of llama.cpp for its GGUF file; safetensors.total leaves out the 23 x 128 biases of "
     "the routers"},
};

// Field safetensors.total of https://huggingface.co/api/models/Qwen/Qwen3-Next-80B-A3B-Instruct;
// the checkpoint has one multi-token-prediction layer, which its config.json does not name.
TEST(PublishedParameters, OfQwen3NextAreThoseOfItsCheckpointWithThePredictionLayer) {
  ModelSpec model = load_model("qwen3-next-80b-a3b");
  model.mtp_layers = 1;
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(count.total + count.mtp, 81'324'862'720);
}

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

// Billions in the names, papers and cards of the models: table 1 of arXiv 2205.01068 (OPT),
// table 2.1 of arXiv 2005.14165 (GPT-3), table 2 of arXiv 2401.02954 (DeepSeek), arXiv 2309.10305
// (Baichuan 2), the embedding and the other parameters of arXiv 2402.16819 and 2406.11704
// (Nemotron-4), arXiv 2504.03624 (Nemotron-H) and the cards on https://huggingface.co.
TEST(PublishedParameters, OfNamesAndCardsAreMetToTheDigitsGiven) {
  struct Rounded {
    const char* model;
    double billions, half_a_digit;
  };
  const Rounded kRounded[] = {{"nemotron-h-8b", 8.0, 0.5},
                              {"nemotron-h-47b", 47.0, 0.5},
                              {"nemotron-h-56b", 56.0, 0.5},
                              {"opt-1.3b", 1.3, 0.05},
                              {"opt-2.7b", 2.7, 0.05},
                              {"opt-6.7b", 6.7, 0.05},
                              {"opt-13b", 13.0, 0.5},
                              {"opt-30b", 30.0, 0.5},
                              {"opt-66b", 66.0, 0.5},
                              {"gpt3-1.3b", 1.3, 0.05},
                              {"gpt3-2.7b", 2.7, 0.05},
                              {"gpt3-6.7b", 6.7, 0.05},
                              {"gpt3-13b", 13.0, 0.5},
                              {"deepseek-67b", 67.0, 0.5},
                              {"baichuan2-7b", 7.5, 0.05},
                              {"baichuan2-13b", 13.9, 0.05},
                              {"qwen1.5-72b", 72.3, 0.05},
                              {"starcoder2-3b", 3.0, 0.05},
                              {"starcoder2-7b", 7.2, 0.05},
                              {"mpt-30b", 29.95, 0.01},
                              {"dbrx", 132.0, 0.5},
                              {"moonlight-16b-a3b", 15.96, 0.005},
                              {"nemotron4-15b", 3.2 + 12.5, 0.1},
                              {"nemotron4-340b", 9.4 + 331.6, 0.1}};
  for (const Rounded& row : kRounded) {
    const auto total = static_cast<double>(count_parameters(load_model(row.model)).total);
    EXPECT_NEAR(total / 1e9, row.billions, row.half_a_digit) << row.model;
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
RC_GTEST_PROP(CountParameters, OfAGptFollowTheClosedForm, ()) {
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
}

std::int64_t sum_of(const std::vector<ParameterTensor>& tensors, bool prediction) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : tensors) {
    if ((tensor.place == ParameterPlace::Mtp) == prediction) sum += tensor.elements();
  }
  return sum;
}

RC_GTEST_PROP(CountParameters, IsTheSumOfAllTensors, ()) {
  const ModelSpec model = any_model();
  const std::vector<ParameterTensor> tensors = parameter_tensors(model);
  const ParameterCount count = count_parameters(model);
  RC_ASSERT(count.total == sum_of(tensors, false));
  RC_ASSERT(count.mtp == sum_of(tensors, true));
}

RC_GTEST_PROP(CountParameters, OfOneTokenGrowWithTopKByOneExpertPerSparseLayer, ()) {
  ModelSpec model = any_model();
  model.moe = any_experts(model.layers);
  model.linear_attention.reset();
  model.layer_pattern.clear();
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
}

RC_GTEST_PROP(ParameterTensors, HaveNamesOfTheirOwnAndPositiveShapes, ()) {
  std::set<std::string> names;
  for (const ParameterTensor& tensor : parameter_tensors(any_model())) {
    RC_ASSERT(names.insert(tensor.name).second);
    RC_ASSERT(!tensor.shape.empty());
    for (const std::int64_t size : tensor.shape) RC_ASSERT(size > 0);
  }
}

// Tensor parallelism divides what is split: a column-split weight along its first dimension, a
// row-split one along its last, so the bias of a row-split matrix cannot be split with it.
RC_GTEST_PROP(ParameterTensors, AreShardedAlongADimensionThatTheyHave, ()) {
  for (const ParameterTensor& tensor : parameter_tensors(any_model())) {
    const bool experts = tensor.shard == ShardKind::ExpertColumn ||
                         tensor.shard == ShardKind::ExpertRow ||
                         tensor.shard == ShardKind::ExpertReplicated;
    RC_ASSERT(experts == (tensor.name.find(".experts.") != std::string::npos));
    if (tensor.shard == ShardKind::Row) RC_ASSERT(tensor.shape.size() == 2u);
    if (tensor.shard == ShardKind::ExpertRow) RC_ASSERT(tensor.shape.size() == 3u);
    if (tensor.shard == ShardKind::ExpertReplicated) RC_ASSERT(tensor.shape.size() == 2u);
  }
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
