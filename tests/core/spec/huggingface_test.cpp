#include "core/spec/huggingface.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "tests/core/spec/model_samples.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json config(const std::string& name) {
  return read_json_file(std::string(SHARDWRIGHT_SOURCE_DIR) + "/tests/core/spec/data/huggingface/" +
                        name + ".json");
}

ModelSpec imported(const std::string& name) {
  return import_huggingface(config(name), name);
}

std::int64_t total_of(const std::string& name) {
  return count_parameters(imported(name)).total;
}

// The shipped file of the same name was written from the papers and model cards; the import must
// find the same sizes. What only a person knows (names, the source) is left out.
TEST(ImportHuggingface, FindsTheSizesOfTheShippedModels) {
  for (const char* name :
       {"gpt2-xl",          "gpt-neox-20b",      "bloom-176b",         "llama2-7b",
        "llama3.1-405b",    "llama3.2-1b",       "mistral-7b",         "mixtral-8x7b",
        "qwen2.5-72b",      "qwen1.5-moe-a2.7b", "qwen3-8b",           "qwen3-30b-a3b",
        "deepseek-v2-lite", "deepseek-v2",       "deepseek-v3",        "gemma-7b",
        "gemma2-27b",       "gemma3-1b",         "phi3-mini",          "mpt-7b",
        "falcon-7b",        "falcon-40b",        "gpt-oss-20b",        "gpt-oss-120b",
        "kimi-k2",          "starcoder2-3b",     "qwen3-next-80b-a3b", "nemotron-3-nano-30b-a3b"}) {
    ModelSpec model = imported(name);
    const ModelSpec shipped = load_model(name);
    EXPECT_EQ(model.family, shipped.family) << name;
    model.name = shipped.name;
    model.aliases = shipped.aliases;
    model.source = shipped.source;
    EXPECT_EQ(to_json(model).dump(1), to_json(shipped).dump(1)) << name;
  }
}

// OPT-350M: embeddings of half the width, no final norm; 331,196,416 parameters in its checkpoint
// (https://huggingface.co/facebook/opt-350m).
TEST(ImportHuggingface, ReadsTheProjectedEmbeddingsOfOpt350m) {
  EXPECT_EQ(total_of("opt-350m"), 331'196'416);
}

// Gemma 3 4B: the text model alone has 3,880,099,328 parameters with 262,144 tokens
// (https://github.com/keras-team/keras-hub, preset gemma3_4b_text); the configuration has 64 more.
TEST(ImportHuggingface, TakesTheTextPartOfGemma3AndItsDefaults) {
  const ModelSpec model = imported("gemma3-4b");
  EXPECT_EQ(model.family, "gemma3_text");
  EXPECT_EQ(count_parameters(model).total - 64 * model.hidden, 3'880'099'328);
}

struct PublishedModel {
  const char* config;
  // Elements of the published checkpoint.
  std::int64_t stored;
  // Elements of them that the model does not have: the parts that it names as not simulated.
  std::int64_t left_out = 0;
};

// The vision tower and projector of Llama 4 Scout, from vision_config of its file: embeddings of
// patches, class and positions, 34 layers of width 1408 with biases, norms before and behind them,
// pixel shuffle, projector.
constexpr std::int64_t kScoutVision = (588 + 1 + 577 + 4) * 1408 +
                                      34 * (4 * 1408 * 1409 + 2 * 1408 * 5632 + 5632 + 5 * 1408) +
                                      5632 * 4096 + 4096 * 4096 + 4096 * 5120;

// Field safetensors.total of https://huggingface.co/api/models/ followed by, in this order,
// zai-org/GLM-4.5, zai-org/GLM-4.5-Air, allenai/OLMo-2-1124-7B, allenai/Olmo-3-1025-7B,
// meta-llama/Llama-4-Scout-17B-16E-Instruct, MiniMaxAI/MiniMax-M2, ibm-granite/granite-3.1-2b-base,
// ibm-granite/granite-3.0-1b-a400m-instruct, CohereLabs/aya-expanse-8b,
// CohereLabs/c4ai-command-r7b-12-2024, ByteDance-Seed/Seed-OSS-36B-Base.
TEST(ImportHuggingface, CountsWhatThePublishedCheckpointsStore) {
  const PublishedModel kModels[] = {{"glm-4.5", 358'337'791'296},
                                    {"glm-4.5-air", 110'468'824'832},
                                    {"olmo2-7b", 7'298'617'344},
                                    {"olmo3-7b", 7'298'011'136},
                                    {"llama4-scout", 108'641'793'536, kScoutVision},
                                    {"minimax-m2", 228'689'764'864},
                                    {"granite-3.1-2b", 2'533'531'648},
                                    {"granite-3.0-1b-a400m", 1'334'628'352},
                                    {"aya-expanse-8b", 8'028'033'024},
                                    {"command-r7b", 8'028'033'024},
                                    {"seed-oss-36b", 36'151'104'512}};
  for (const PublishedModel& published : kModels) {
    const ModelSpec model = imported(published.config);
    EXPECT_EQ(count_parameters(model).checkpoint + published.left_out, published.stored)
        << published.config;
  }
}

// Billions of parameters: ERNIE-4.5-21B-A3B by its name, in all and for each token; Minitron 4B by
// arXiv 2407.14679 (4.2).
TEST(ImportHuggingface, CountsMeetNamesAndPapersToTheDigitsGiven) {
  const auto billions = [](std::int64_t count) { return static_cast<double>(count) / 1e9; };
  const ParameterCount ernie = count_parameters(imported("ernie-4.5-21b-a3b"));
  EXPECT_NEAR(billions(ernie.total), 21.5, 0.5);
  EXPECT_NEAR(billions(ernie.active), 3.0, 0.5);
  EXPECT_NEAR(billions(total_of("minitron-4b")), 4.2, 0.05);
}

TEST(ImportHuggingface, NamesWhatIsNotSimulated) {
  EXPECT_THAT(imported("gemma3-4b").not_simulated, testing::ElementsAre("the vision tower"));
  EXPECT_THAT(
      imported("llama4-scout").not_simulated,
      testing::ElementsAre(testing::HasSubstr("chunks of 8192 tokens"), "the vision tower"));
  EXPECT_THAT(imported("minimax-m2").not_simulated, testing::ElementsAre("multi-token prediction"));
  EXPECT_THAT(imported("deepseek-v3.2").not_simulated,
              testing::ElementsAre(testing::HasSubstr("the indexer")));
  EXPECT_TRUE(imported("glm-4.5").not_simulated.empty());
  // Without its indexer DeepSeek-V3.2 has the layers of DeepSeek-V3.
  EXPECT_EQ(count_parameters(imported("deepseek-v3.2")), count_parameters(imported("deepseek-v3")));
}

TEST(ImportHuggingface, NamesAModelAfterItsPathOrItsType) {
  EXPECT_EQ(imported("llama2-7b").name, "Llama-2-7b-hf");
  EXPECT_EQ(imported("deepseek-v3").name, "deepseek_v3");
}

ModelSpec patched(const std::string& name, const std::string& patch) {
  json value = config(name);
  value.merge_patch(json::parse(patch));
  return import_huggingface(value, name);
}

// Each row: what a configuration class of the transformers library does with the key.
TEST(ImportHuggingface, MissingKeysHaveTheDefaultsOfTheirClass) {
  EXPECT_EQ(patched("llama3.2-1b", R"({"num_key_value_heads": null})").attention.kv_heads, 32);
  EXPECT_EQ(patched("mistral-7b", R"({"num_key_value_heads": null})").attention.kv_heads, 8);
  EXPECT_EQ(patched("qwen3-8b", R"({"head_dim": null})").attention.head_dim, 128);
  EXPECT_EQ(patched("gemma-7b", R"({"head_dim": null})").attention.head_dim, 256);
  EXPECT_EQ(patched("mistral-7b", R"({"sliding_window": null})").attention.sliding_window, 4096);
  EXPECT_FALSE(patched("llama3.2-1b", R"({"tie_word_embeddings": null})").tied_embeddings);
  EXPECT_EQ(patched("gpt-neox-20b", R"({"rotary_pct": null})").rotary_share, 0.25);
  EXPECT_EQ(patched("llama3.2-1b", R"({"rms_norm_eps": null})").norm_epsilon, 1e-6);
  EXPECT_EQ(patched("gpt2-xl", R"({"layer_norm_epsilon": null})").norm_epsilon, 1e-5);
  EXPECT_EQ(patched("llama3.2-1b", R"({"rope_theta": null})").rope_theta, 10'000.0);
  EXPECT_EQ(patched("mixtral-8x7b", R"({"rope_theta": null})").rope_theta, 1e6);
  EXPECT_EQ(patched("llama3.2-1b", R"({"rope_theta": null,
                                       "rope_parameters": {"rope_theta": 5e5}})")
                .rope_theta,
            5e5);
  EXPECT_EQ(patched("deepseek-v3", R"({"num_nextn_predict_layers": null})").mtp_layers, 0);
  EXPECT_EQ(patched("falcon-7b", R"({"multi_query": null})").attention.kv_heads, 1);
}

// merge_patch removes a key that is null in the patch, so these set it by hand.
TEST(ImportHuggingface, ANullIsNotAMissingKey) {
  json mistral = config("mistral-7b");
  mistral["sliding_window"] = nullptr;
  EXPECT_EQ(import_huggingface(mistral, "test").attention.sliding_window, 0);
  mistral["num_key_value_heads"] = nullptr;
  EXPECT_EQ(import_huggingface(mistral, "test").attention.kv_heads, 32);
  json deepseek = config("deepseek-v2");
  deepseek["q_lora_rank"] = nullptr;
  EXPECT_EQ(import_huggingface(deepseek, "test").attention.q_lora_rank, 0);
  json bloom = config("bloom-176b");
  bloom["n_layer"] = nullptr;
  EXPECT_EQ(problems_of([&] { import_huggingface(bloom, "bloom"); }),
            std::vector<std::string>{"/n_layer"});
}

TEST(ImportHuggingface, ReadsTheVariantsOfAFamily) {
  EXPECT_TRUE(patched("llama3.2-1b", R"({"attention_bias": true})").attention.output_bias);
  EXPECT_TRUE(patched("llama3.2-1b", R"({"mlp_bias": true})").mlp.bias);
  EXPECT_EQ(patched("gpt2-xl", R"({"n_inner": 5000})").mlp.ffn_hidden, 5000);
  EXPECT_EQ(patched("falcon-40b", R"({"num_ln_in_parallel_attn": 1})").norms_per_layer, 1);
  EXPECT_EQ(patched("falcon-7b", R"({"parallel_attn": false})").norms_per_layer, 2);
  EXPECT_EQ(patched("falcon-7b", R"({"multi_query": false})").attention.kv_heads, 71);
  EXPECT_EQ(patched("falcon-7b", R"({"alibi": true})").position, PositionKind::Alibi);
  EXPECT_EQ(patched("mpt-7b", R"({"attn_config": {"alibi": false}})").position_embeddings, 2048);
  const ModelSpec rotary = patched("mpt-7b", R"({"attn_config": {"alibi": false, "rope": true}})");
  EXPECT_EQ(rotary.position, PositionKind::Rotary);
  EXPECT_EQ(rotary.position_embeddings, 0);
  EXPECT_EQ(patched("mpt-7b", R"({"attn_config": {"kv_n_heads": 8}})").attention.kv_heads, 8);
  EXPECT_TRUE(patched("mpt-7b", R"({"no_bias": false})").norm_bias);
  EXPECT_EQ(patched("qwen3-30b-a3b", R"({"decoder_sparse_step": 2})").moe->layer_interval, 2);
  EXPECT_EQ(patched("qwen3-30b-a3b", R"({"mlp_only_layers": [0, 1]})").moe->first_dense_layers, 2);
  EXPECT_FALSE(patched("deepseek-v2", R"({"n_routed_experts": null})").moe.has_value());
}

TEST(ImportHuggingface, ReadsSlidingWindowsByLayer) {
  const ModelSpec gemma2 = imported("gemma2-27b");
  EXPECT_EQ(gemma2.sliding_window_of(0), 4096);
  EXPECT_EQ(gemma2.sliding_window_of(1), 0);
  const ModelSpec gemma3 = imported("gemma3-1b");
  EXPECT_EQ(gemma3.sliding_window_of(4), 512);
  EXPECT_EQ(gemma3.sliding_window_of(5), 0);
  const ModelSpec qwen =
      patched("qwen2.5-72b", R"({"use_sliding_window": true, "max_window_layers": 70})");
  EXPECT_EQ(qwen.sliding_window_of(69), 0);
  EXPECT_EQ(qwen.sliding_window_of(70), 131'072);
}

TEST(ImportHuggingface, ReadsListsOfLayerTypes) {
  json value = config("gemma3-1b");
  value["num_hidden_layers"] = 4;
  value["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention",
                          "full_attention"};
  EXPECT_EQ(import_huggingface(value, "test").attention.full_attention_interval, 2);
  value["layer_types"] = {"full_attention", "full_attention", "sliding_attention",
                          "sliding_attention"};
  EXPECT_EQ(import_huggingface(value, "test").attention.full_attention_first_layers, 2);
  value["layer_types"] = {"sliding_attention", "full_attention", "full_attention",
                          "sliding_attention"};
  EXPECT_EQ(problems_of([&value] { import_huggingface(value, "test"); }),
            std::vector<std::string>{"/layer_types"});
}

TEST(ImportHuggingface, AnUnknownTypeIsRefusedByNameWithTheNearestOne) {
  const std::string message = thrown_by([] {
    import_huggingface(json{{"model_type", "qwen4"}}, "config.json");
  });
  EXPECT_THAT(message, testing::HasSubstr("config.json: /model_type: found \"qwen4\""));
  EXPECT_THAT(message, testing::HasSubstr("did you mean \"qwen2\"?"));
  for (const std::string& type : huggingface_model_types())
    EXPECT_THAT(message, testing::HasSubstr(type));
}

TEST(ImportHuggingface, FindsTheRotatedShareInNewerFiles) {
  EXPECT_EQ(
      patched("phi3-mini", R"({"rope_parameters": {"partial_rotary_factor": 0.75}})").rotary_share,
      0.75);
}

std::vector<std::string> all_configs() {
  std::vector<std::string> names;
  const fs::path folder = fs::path(SHARDWRIGHT_SOURCE_DIR) / "tests/core/spec/data/huggingface";
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

// Any value in place of any key: either a model within limits that our own format can hold, or an
// InputError; never a crash, an overflow or another exception.
TEST(ImportHuggingface, AChangedValueGivesASoundModelOrAnInputError) {
  std::vector<json> configs;
  for (const std::string& name : all_configs()) configs.push_back(config(name));
  const std::vector<json> values = {
      nullptr,          true,          -1,    0,   1,  2,      7,   4096,
      4'000'000,        1e9,           1e300, 0.5, "", "gelu", "x", json::array(),
      json::array({0}), json::object()};
  EXPECT_TRUE(rc::check([&] {
    json value = *rc::gen::elementOf(configs);
    std::vector<std::string> keys;
    for (const auto& [key, unused] : value.items()) keys.push_back(key);
    for (std::int64_t change = any_size(1, 3); change > 0; --change)
      value[*rc::gen::elementOf(keys)] = *rc::gen::elementOf(values);
    try {
      const ModelSpec model = import_huggingface(value, "changed");
      const ParameterCount count = count_parameters(model);
      RC_ASSERT(count.active > 0);
      RC_ASSERT(count.active <= count.total);
      RC_ASSERT(read_model(json::parse(to_json(model).dump()), "round trip") == model);
    } catch (const InputError& error) {
      RC_ASSERT(!error.problems().empty());
    }
  }));
}

struct MalformedConfig {
  const char* config;
  // A merge patch on the configuration.
  const char* patch;
  std::vector<std::string> pointers;
};

TEST(ImportHuggingface, MalformedConfigurationsAreRefusedAtThePointerOfTheProblem) {
  const std::vector<MalformedConfig> table = {
      {"llama2-7b", R"({"model_type": null})", {"/model_type"}},
      {"llama2-7b", R"({"model_type": 3})", {"/model_type"}},
      {"llama2-7b", R"({"hidden_size": null})", {"/hidden_size"}},
      {"llama2-7b", R"({"hidden_size": 0})", {"/hidden_size"}},
      {"llama2-7b", R"({"hidden_size": 4097})", {"/hidden_size"}},
      {"llama2-7b", R"({"hidden_size": 480})", {"/hidden_size"}},
      {"qwen3-8b", R"({"head_dim": 15})", {"/head_dim"}},
      {"llama2-7b", R"({"hidden_size": 1e30})", {"/hidden_size"}},
      {"llama2-7b", R"({"num_hidden_layers": -1})", {"/num_hidden_layers"}},
      {"llama2-7b", R"({"num_attention_heads": "32"})", {"/num_attention_heads"}},
      {"llama2-7b", R"({"num_key_value_heads": 5})", {"/num_key_value_heads"}},
      {"llama2-7b", R"({"vocab_size": 1.5})", {"/vocab_size"}},
      {"llama2-7b", R"({"intermediate_size": null})", {"/intermediate_size"}},
      {"llama2-7b", R"({"hidden_act": "tanh"})", {"/hidden_act"}},
      {"llama2-7b", R"({"tie_word_embeddings": 1})", {"/tie_word_embeddings"}},
      {"llama2-7b",
       R"({"vocab_size": 0, "num_hidden_layers": 0})",
       {"/num_hidden_layers", "/vocab_size"}},
      {"gpt2-xl", R"({"n_embd": null})", {"/n_embd"}},
      {"gpt2-xl", R"({"n_layer": null, "n_head": null})", {"/n_head", "/n_layer"}},
      {"gpt2-xl", R"({"n_embd": 1601})", {"/n_embd"}},
      {"bloom-176b", R"({"n_layer": null})", {"/n_layer"}},
      {"bloom-176b", R"({"n_layer": "70"})", {"/n_layer"}},
      {"bloom-176b", R"({"num_attention_heads": null})", {"/n_head"}},
      {"mpt-7b", R"({"n_layers": 0})", {"/n_layers"}},
      {"mpt-7b", R"({"d_model": null, "n_heads": null})", {"/d_model", "/n_heads"}},
      {"gpt-neox-20b", R"({"num_hidden_layers": null})", {"/num_hidden_layers"}},
      {"falcon-7b", R"({"hidden_size": null})", {"/hidden_size"}},
      {"opt-350m", R"({"ffn_dim": 0})", {"/ffn_dim"}},
      {"gpt2-xl", R"({"n_head": 0})", {"/n_head"}},
      {"gpt2-xl", R"({"add_cross_attention": true})", {"/add_cross_attention"}},
      {"opt-350m",
       R"({"layer_norm_elementwise_affine": false})",
       {"/layer_norm_elementwise_affine"}},
      {"gpt2-xl", R"({"resid_pdrop": 2})", {"/resid_pdrop"}},
      {"mixtral-8x7b", R"({"num_experts_per_tok": 9})", {"/num_experts_per_tok"}},
      {"qwen3-30b-a3b", R"({"num_experts": null})", {"/num_experts"}},
      {"qwen3-30b-a3b", R"({"mlp_only_layers": [7]})", {"/mlp_only_layers"}},
      {"deepseek-v3", R"({"first_k_dense_replace": 61})", {"/first_k_dense_replace"}},
      {"deepseek-v3", R"({"moe_layer_freq": 2})", {"/moe_layer_freq"}},
      {"deepseek-v3", R"({"kv_lora_rank": 0})", {"/kv_lora_rank"}},
      {"deepseek-v3", R"({"n_group": 7})", {"/n_group"}},
      {"deepseek-v3", R"({"n_routed_experts": 250, "num_experts_per_tok": 8})", {"/n_group"}},
      {"deepseek-v3", R"({"n_routed_experts": null, "n_group": 7})", {}},
      {"deepseek-v3", R"({"n_routed_experts": 0})", {"/n_routed_experts"}},
      {"deepseek-v3", R"({"topk_group": 9})", {"/topk_group"}},
      {"deepseek-v3", R"({"topk_group": 1, "num_experts_per_tok": 33})", {"/topk_group"}},
      {"deepseek-v2", R"({"n_group": 3})", {"/n_group"}},
      {"gemma3-4b", R"({"text_config": null})", {"/text_config"}},
      {"gemma3-4b", R"({"text_config": {"hidden_size": -2}})", {"/text_config/hidden_size"}},
      {"gemma3-4b",
       R"({"text_config": {"num_key_value_heads": 3}})",
       {"/text_config/num_key_value_heads"}},
      {"mpt-7b", R"({"attn_config": {"kv_n_heads": 5}})", {"/attn_config/kv_n_heads"}},
      {"mpt-7b", R"({"attn_config": {"qk_ln": true}})", {"/attn_config/qk_ln"}},
      {"falcon-40b", R"({"num_kv_heads": 7})", {"/num_kv_heads"}},
      {"nemotron-3-nano-30b-a3b", R"({"moe_latent_size": 1024})", {"/moe_latent_size"}},
      {"nemotron-3-nano-30b-a3b",
       R"({"hybrid_override_pattern": "MExE"})",
       {"/hybrid_override_pattern"}},
      {"nemotron-3-nano-30b-a3b", R"({"n_groups": 7})", {"/n_groups"}},
      {"qwen3-next-80b-a3b", R"({"layer_types": ["sliding_attention"]})", {"/layer_types"}},
      {"ernie-4.5-21b-a3b", R"({"moe_layer_interval": 2})", {"/moe_layer_interval"}},
  };
  for (const MalformedConfig& row : table) {
    EXPECT_THAT(problems_of([&row] { patched(row.config, row.patch); }),
                testing::UnorderedElementsAreArray(row.pointers))
        << row.config << " " << row.patch;
  }
}

}  // namespace
}  // namespace shardwright
