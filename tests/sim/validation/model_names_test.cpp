// Names of models as sources write them.
#include "sim/validation/model_names.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/spec/model_library.hpp"

namespace shardwright::sim {
namespace {

std::string named(const std::string& name, OtherNumbers others = OtherNumbers::Refused) {
  const ModelSpec* model = model_named(name, others);
  return model == nullptr ? "" : model->name;
}

TEST(ModelNames, EveryShippedNameAndAliasMeansItsModel) {
  for (const ModelSpec& model : shipped_model_specs()) {
    EXPECT_EQ(named(model.name), model.name);
    for (const std::string& alias : model.aliases) EXPECT_EQ(named(alias), model.name) << alias;
  }
}

TEST(ModelNames, OwnersReleasesAndTuningChangeNothing) {
  const std::pair<const char*, const char*> kNames[] = {
      {"meta-llama/Llama-2-70b-chat-hf", "llama2-70b"},
      {"llama_2_13b", "llama2-13b"},
      {"Llama 3.1 70b (MLPerf)", "llama3.1-70b"},
      {"Llama 3.3 70B", "llama3.1-70b"},
      {"Meta-Llama-3.1-405B", "llama3.1-405b"},
      {"Llama-3.1-Nemotron-70B-Instruct", "llama3.1-70b"},
      {"Llama-3-8B-Instruct, 8k context", "llama3-8b"},
      {"Vicuna-13B-v1.5", "llama-13b"},
      {"Code Llama 34B", "codellama-34b"},
      {"LLaMA-33B", "llama-30b"},
      {"mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b"},
      {"Mistral-7B-v0.1", "mistral-7b"},
      {"Qwen3 235B", "qwen3-235b-a22b"},
      {"Qwen2.5-Coder-32B", "qwen2.5-32b"},
      {"DeepSeek-V3-671B (FP8)", "deepseek-v3"},
      {"deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"},
      {"GPT3 (175B)", "gpt3-175b"},
      {"gpt3_175b", "gpt3-175b"},
      {"GPT-22B", "megatron-22b"},
      {"Megatron-Turing NLG 530B", "mt-nlg-530b"},
      {"BLOOMZ-7b1", "bloom-7.1b"},
      {"GPT-2 Medium 345M", "gpt2-medium"},
      {"InternLM2.5-7B", "internlm2-7b"},
      {"DeepSeek-V3.1", "deepseek-v3"},
      {"TinyLlama", "tinyllama-1.1b"}};
  for (const auto& [name, model] : kNames) EXPECT_EQ(named(name), model) << name;
}

// What sources call sparse is so already.
TEST(ModelNames, WordsForExpertsChangeNothingInASparseModel) {
  const std::pair<const char*, const char*> kNames[] = {
      {"Qwen3 MoE 30B", "qwen3-30b-a3b"},
      {"Qwen3 MoE 30B-A3B", "qwen3-30b-a3b"},
      {"Qwen3-30B MoE", "qwen3-30b-a3b"},
      {"Qwen3-MoE-235B-A22B", "qwen3-235b-a22b"},
      {"Qwen3-30B-A3B (128 experts)", "qwen3-30b-a3b"},
      {"Mixtral-8x7B, 8 experts", "mixtral-8x7b"},
      {"Mixtral 8x7B experts", "mixtral-8x7b"},
      {"Qwen1.5-MoE-A2.7B", "qwen1.5-moe-a2.7b"}};
  for (const auto& [name, model] : kNames) EXPECT_EQ(named(name), model) << name;
  for (const char* name : {"Qwen3-8B MoE", "Qwen3 MoE 72B", "Llama-3-8B 8 experts",
                           "Qwen3-30B-A3B, 64 experts", "Mixtral-8x7B with 16 experts"})
    EXPECT_EQ(named(name), "") << name;
  EXPECT_EQ(named("Mixtral-8x7B with 16 experts", OtherNumbers::Allowed), "");
}

TEST(ModelNames, ASizeOfAnotherOfItsNamesChangesNothing) {
  EXPECT_EQ(named("Mixtral 8x22B (141B)"), "mixtral-8x22b");
  EXPECT_EQ(named("Mixtral 8x22B (47B)"), "");
  EXPECT_EQ(named("Kimi-K2 1T MoE"), "kimi-k2");
}

// Another version, size or kind of a family is another model.
TEST(ModelNames, WhatMakesAnotherModelIsNotTakenForIt) {
  for (const char* name :
       {"", "GPT", "Llama", "7B", "Llama-5-70B", "Llama3-8x70B", "Llama-2-70B, 4 layers",
        "Mixtral-8x22B-G8T8", "Qwen2-VL-7B", "GPT-3 760M", "Llama-7B MoE", "OPT-6B"})
    EXPECT_EQ(named(name), "") << name;
}

// Where the row's sizes can tell, a name may hold more.
TEST(ModelNames, NumbersBesideTheNameAreAllowedOnRequest) {
  for (const auto& [name, model] :
       {std::pair{"Llama3.1-405B-proxy-21L", "llama3.1-405b"},
        {"Llama-3-405B cut to 4 layers (16 kv groups)", "llama3.1-405b"},
        {"DeepSeek-V3 cut to 4 layers", "deepseek-v3"}}) {
    EXPECT_EQ(named(name), "") << name;
    EXPECT_EQ(named(name, OtherNumbers::Allowed), model) << name;
  }
  EXPECT_EQ(named("Llama3-8x70B", OtherNumbers::Allowed), "");
}

TEST(ModelNames, WordsBeforeTheFirstNumberAreTheFamily) {
  using Words = std::set<std::string>;
  EXPECT_EQ(family_words("GPT-NeoX-20B"), (Words{"gpt", "neox"}));
  EXPECT_EQ(family_words("meta-llama/Meta-Llama-3-8B"), (Words{"llama"}));
  EXPECT_EQ(family_words("7B"), Words{});
}

TEST(ModelNames, ExpertsStandBeforeAnX) {
  EXPECT_EQ(experts_in_name("Llama3-8x70B"), 8);
  EXPECT_EQ(experts_in_name("Mixtral 16x3B"), 16);
  EXPECT_EQ(experts_in_name("GPT-175B"), 0);
}

}  // namespace
}  // namespace shardwright::sim
