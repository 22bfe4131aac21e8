#include "executor/checkpoint/weight_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "executor/checkpoint/exported_config.hpp"
#include "executor/checkpoint/parameter_files.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/data/hash.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

std::filesystem::path new_folder(const std::string& name) {
  std::filesystem::path folder = scratch_path(name);
  std::filesystem::create_directories(folder);
  return folder;
}

// 1/256 steps up to 1/2: exact in each of the formats.
float weight_of(const std::string& tensor, std::size_t index) {
  const auto random = random_bits(key_of(0, tensor), index) % 256;
  return (static_cast<float>(random) - 128.0F) / 256.0F;
}

std::string bits_of(float value, const std::string& format) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (format == "F32") return {reinterpret_cast<const char*>(&bits), 4};
  std::uint32_t half = bits >> 16U;
  if (format == "F16") {
    // Numbers without small exponents: converts the exponent from 8 bits with bias 127 to 5 bits
    // with bias 15.
    const std::uint32_t sign = (bits >> 31U) << 15U;
    const std::uint32_t exponent = (bits >> 23U) & 0xFFU;
    half = value == 0.0F ? sign : sign | (exponent - 112U) << 10U | ((bits >> 13U) & 0x3FFU);
  }
  return {reinterpret_cast<const char*>(&half), 2};
}

// Writes the tensors as specified on the format's own page.
void write_file(const std::filesystem::path& file, const std::vector<StoredTensor>& tensors,
                const std::string& format) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const StoredTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i)
      data += bits_of(weight_of(tensor.name.substr(tensor.name.find('.')), i), format);
    header[tensor.name] = {
        {"dtype", format}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream(file, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), 8) << text << data;
}

std::filesystem::path folder_with(const std::string& name, const std::vector<StoredTensor>& tensors,
                                  const std::string& format = "F32") {
  auto folder = new_folder(name);
  write_file(folder / "model.safetensors", tensors, format);
  return folder;
}

// Under each plan, in each format, in one file or several, the same weights give the same loss.
TEST(WeightFiles, AreReadInEveryFormatAndLayoutOfFiles) {
  for (const ModelSpec& model : {small_llama(), small_gpt2(), small_qwen3()}) {
    const std::vector<StoredTensor> tensors = stored_tensors(model);
    std::vector<double> losses;
    for (const std::string format : {"F32", "BF16", "F16"})
      losses.push_back(first_loss(model, one_rank_plan(), folder_with("formats", tensors, format)));
    const auto folder = new_folder("sharded");
    const auto half = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
    write_file(folder / "model-00001-of-00002.safetensors", {tensors.begin(), half}, "BF16");
    write_file(folder / "model-00002-of-00002.safetensors", {half, tensors.end()}, "F32");
    nlohmann::json index;
    for (auto tensor = tensors.begin(); tensor != tensors.end(); ++tensor)
      index["weight_map"][tensor->name] =
          tensor < half ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
    std::ofstream(folder / "model.safetensors.index.json") << index;
    losses.push_back(first_loss(model, one_rank_plan(), folder));
    EXPECT_EQ(losses, std::vector<double>(4, losses.front()));
    Plan plan = one_rank_plan();
    plan.tp = 4;
    plan.pp = 2;
    EXPECT_NEAR(first_loss(model, plan, folder) / losses.front(), 1.0, 1e-5);
  }
}

// Refused by the rank that holds it, with tensor and index.
TEST(WeightFiles, MustBeFinite) {
  const ModelSpec model = small_llama();
  const auto folder = new_folder("not-finite");
  const std::string file = folder / "model.safetensors", name = "model.layers.1.mlp.up_proj.weight";
  create_safetensors(file, stored_tensors(model));
  SafetensorsFile(file, SafetensorsFile::Access::Write)
      .tensor(name, model.mlp.ffn_hidden * model.hidden)[70] =
      std::numeric_limits<float>::quiet_NaN();
  Plan plan = one_rank_plan();
  plan.pp = 2;
  const WeightFiles files(folder);
  on_ranks(model, plan, {}, [&](RankTrainer& trainer, const BatchLoader& /*loader*/) {
    EXPECT_EQ(thrown_by([&] { read_weights(files, model, trainer.parameters()); }),
              trainer.rank() == 0
                  ? "--init-from: " + name + ": found nan at element 70; expected finite numbers"
                  : "");
  });
}

// huggingface.co/openai-community/gpt2 omits "transformer." and stores masks among the weights.
TEST(WeightFiles, MayOmitTheFirstWordOfNames) {
  const ModelSpec model = small_gpt2();
  const auto folder = new_folder("short-names");
  std::vector<StoredTensor> tensors = stored_tensors(model);
  write_file(folder / "long.safetensors", tensors, "F32");
  for (StoredTensor& tensor : tensors) tensor.name.erase(0, tensor.name.find('.') + 1);
  tensors.push_back({"h.0.attn.bias", {1, 1, 4, 4}});
  write_file(folder / "short.safetensors", tensors, "F32");
  EXPECT_NO_THROW(WeightFiles(folder / "short.safetensors").check(model));
}

// Our own checkpoints are published weights too: the first loss from them is the one that the run
// continued with.
TEST(WeightFiles, OfACheckpointGiveTheLossOfTheRun) {
  const ModelSpec model = small_llama();
  const auto folder = new_folder("checkpoint");
  std::vector<double> losses;
  LocalStore store;
  on_ranks(model, one_rank_plan(), {}, [&](RankTrainer& trainer, const BatchLoader& loader) {
    RunCheckpoints checkpoints({folder}, model, trainer, store, [](const std::string&) {});
    run_steps(trainer, loader, 3, 6);
    RunState state;
    state.steps = 3;
    state.seed = 1;
    state.seq_len = 32;
    checkpoints.save(state);
    losses = run_steps(trainer, loader, 0, 1);
  });
  EXPECT_EQ(first_loss(model, one_rank_plan(), CheckpointFolder(folder).path(3)), losses.front());
}

std::vector<std::string> weight_problems(const std::filesystem::path& from,
                                         const ModelSpec& model) {
  return shardwright::problems_of([&] { WeightFiles(from).check(model); });
}

TEST(WeightFiles, OfAnotherModelAreRefusedWithEveryDifference) {
  const ModelSpec model = small_llama();
  std::vector<StoredTensor> tensors = stored_tensors(model);
  const std::string missing = tensors[4].name, narrow = tensors[7].name;
  tensors[7].shape.back() -= 1;
  tensors.erase(tensors.begin() + 4);
  const auto folder = folder_with("other", tensors);
  EXPECT_THAT(weight_problems(folder, model), testing::UnorderedElementsAre(missing, narrow));
  EXPECT_THROW(WeightFiles(folder / "nothing"), InputError);
  EXPECT_THROW(WeightFiles(new_folder("empty")), InputError);
}

// A bias or layer that the plan's model lacks would be ignored silently.
TEST(WeightFiles, MustNotHoldTensorsThatTheModelLacks) {
  const ModelSpec model = small_llama();
  std::vector<StoredTensor> tensors = stored_tensors(model);
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", {8}});
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {4}});
  tensors.push_back({"model.layers.99.mlp.up_proj.weight", {2, 2}});
  const auto folder = folder_with("more", tensors);
  EXPECT_THAT(weight_problems(folder, model),
              testing::UnorderedElementsAre("model.layers.0.self_attn.q_proj.bias",
                                            "model.layers.99.mlp.up_proj.weight"));
}

// Files of tied models may contain the embedding a second time as their head.
TEST(WeightFiles, HeadOfATiedModelIsItsEmbedding) {
  ModelSpec model = small_llama();
  model.tied_embeddings = true;
  std::vector<StoredTensor> tensors = stored_tensors(model);
  const auto embedding = std::find_if(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.name == "model.embed_tokens.weight";
  });
  ASSERT_NE(embedding, tensors.end());
  tensors.push_back({"lm_head.weight", embedding->shape});
  const auto folder = folder_with("tied", tensors);
  EXPECT_THAT(weight_problems(folder, model), testing::ElementsAre("lm_head.weight"));
}

// The index determines the file of a tensor, also if another file has one of the same name.
TEST(WeightFiles, AnIndexDeterminesTheFileOfATensor) {
  const ModelSpec model = small_llama();
  const auto folder = new_folder("index");
  const std::vector<StoredTensor> tensors = stored_tensors(model);
  StoredTensor other = tensors.front();
  other.shape.back() += 1;
  write_file(folder / "a.safetensors", {other}, "F32");
  write_file(folder / "b.safetensors", tensors, "F32");
  nlohmann::json index;
  for (const StoredTensor& tensor : tensors) index["weight_map"][tensor.name] = "b.safetensors";
  index["weight_map"]["model.layers.0.self_attn.rotary_emb.inv_freq"] = "a.safetensors";
  const auto write = [&] { std::ofstream(folder / "model.safetensors.index.json") << index; };
  write();
  // a.safetensors has no such tensor.
  EXPECT_THROW(WeightFiles{folder}, InputError);
  index["weight_map"].erase("model.layers.0.self_attn.rotary_emb.inv_freq");
  write();
  EXPECT_THAT(weight_problems(folder, model), testing::IsEmpty());
  index["weight_map"].erase(tensors.back().name);
  write();
  EXPECT_THAT(weight_problems(folder, model), testing::ElementsAre(tensors.back().name));
  index["weight_map"][tensors.front().name] = "../index/b.safetensors";
  write();
  EXPECT_THROW(WeightFiles{folder}, InputError);
}

// Returns the configuration of `small_llama` in Hugging Face's format.
nlohmann::json llama_config() {
  return {{"model_type", "llama"},   {"num_hidden_layers", 4},   {"hidden_size", 32},
          {"vocab_size", 256},       {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"intermediate_size", 48}, {"hidden_act", "silu"},     {"tie_word_embeddings", false},
          {"rms_norm_eps", 1e-5}};
}

TEST(WeightFiles, ConfigurationMustBeThatOfThePlan) {
  ModelSpec model = small_llama();
  const auto folder = folder_with("config", stored_tensors(model), "BF16");
  nlohmann::json config = llama_config();
  std::ofstream(folder / "config.json") << config;
  EXPECT_TRUE(weight_problems(folder, model).empty());
  config["rope_theta"] = 500000.0;
  config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
  std::ofstream(folder / "config.json") << config;
  EXPECT_THAT(weight_problems(folder, model),
              testing::UnorderedElementsAre("config.json, as /rope_scaling",
                                            "config.json, as /rope_theta"));
  config["model_type"] = "gemma";
  std::ofstream(folder / "config.json") << config;
  EXPECT_THAT(weight_problems(folder, model), testing::Contains("config.json, /model_type"));
}

// transformers, Qwen3Config: the norms of heads follow from the type.
TEST(WeightFiles, ConfigurationOfQwen3HasNormsOfHeads) {
  nlohmann::json config = llama_config();
  config["model_type"] = "qwen3";
  config["head_dim"] = 12;
  ModelSpec model = small_qwen3();
  const auto folder = folder_with("qwen3", stored_tensors(model), "BF16");
  std::ofstream(folder / "config.json") << config;
  EXPECT_TRUE(weight_problems(folder, model).empty());
  model.attention.qk_norm = false;
  EXPECT_THAT(weight_problems(folder, model),
              testing::IsSupersetOf({"config.json, as /attention/qk_norm",
                                     "model.layers.0.self_attn.q_norm.weight"}));
}

// What changes the scores of a GPT-2's attention, and a model cannot say.
TEST(WeightFiles, ConfigurationOfGpt2MustScaleScoresAsTheExecutorDoes) {
  const ModelSpec model = small_gpt2();
  const auto folder = folder_with("gpt2", stored_tensors(model), "BF16");
  const nlohmann::json config = *exported_config(model, "bfloat16");
  const auto problems_with = [&](const char* key, bool value) {
    nlohmann::json changed = config;
    changed[key] = value;
    std::ofstream(folder / "config.json") << changed;
    return weight_problems(folder, model);
  };
  EXPECT_THAT(problems_with("scale_attn_weights", true), testing::IsEmpty());
  EXPECT_THAT(problems_with("scale_attn_weights", false),
              testing::ElementsAre("config.json, /scale_attn_weights"));
  EXPECT_THAT(problems_with("scale_attn_by_inverse_layer_idx", true),
              testing::ElementsAre("config.json, /scale_attn_by_inverse_layer_idx"));
}

// What changes the computation of a DeepSeek, and a model cannot say.
TEST(WeightFiles, ConfigurationOfDeepseekMustComputeWhatTheExecutorDoes) {
  const ModelSpec model = small_deepseek_v2();
  const auto folder = folder_with("deepseek", stored_tensors(model), "BF16");
  const nlohmann::json config = *exported_config(model, "bfloat16");
  const auto problems_with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = config;
    changed[key] = value;
    std::ofstream(folder / "config.json") << changed;
    return weight_problems(folder, model);
  };
  EXPECT_THAT(problems_with("model_type", "deepseek_v2"), testing::IsEmpty());
  EXPECT_THAT(problems_with("routed_scaling_factor", 2.5),
              testing::ElementsAre("config.json, /routed_scaling_factor"));
  EXPECT_THAT(problems_with("scoring_func", "sigmoid"),
              testing::ElementsAre("config.json, /scoring_func"));
  EXPECT_THAT(problems_with("kv_lora_rank", 8),
              testing::ElementsAre("config.json, as /attention/kv_lora_rank"));
  const ModelSpec dense = small_deepseek_v3();
  const auto other = folder_with("deepseek-dense", stored_tensors(dense), "BF16");
  nlohmann::json interleaved = *exported_config(dense, "bfloat16");
  interleaved["model_type"] = "deepseek_v3";
  interleaved["rope_interleave"] = false;
  std::ofstream(other / "config.json") << interleaved;
  EXPECT_THAT(weight_problems(other, dense), testing::ElementsAre("config.json, /rope_interleave"));
}

TEST(WeightFiles, ConfigurationOfWrongTypesIsBadInput) {
  const ModelSpec model = small_llama();
  const auto folder = folder_with("types", stored_tensors(model), "BF16");
  nlohmann::json config = llama_config();
  config["rope_scaling"] = {{"rope_type", 3}};
  std::ofstream(folder / "config.json") << config;
  EXPECT_THAT(weight_problems(folder, model), testing::Contains("/rope_scaling/rope_type"));
  for (const char* text : {"3", "[]", "null", R"({"model_type": 3})", "{"}) {
    std::ofstream(folder / "config.json") << text;
    EXPECT_THROW(WeightFiles(folder).check(model), InputError) << text;
  }
}

TEST(WeightFiles, ThatAreTruncatedOrOfOtherTypesAreRefused) {
  const ModelSpec model = small_llama();
  const auto folder = new_folder("broken");
  const auto file = folder / "model.safetensors";
  write_file(file, stored_tensors(model), "I16");
  EXPECT_EQ(weight_problems(folder, model).size(), stored_tensors(model).size());
  write_file(file, stored_tensors(model), "BF16");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THROW(WeightFiles{folder}, InputError);
}

}  // namespace
}  // namespace shardwright::executor
