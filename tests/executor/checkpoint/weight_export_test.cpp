#include "executor/checkpoint/weight_export.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/spec/huggingface.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/scenario.hpp"
#include "executor/checkpoint/exported_config.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/telemetry/run_files.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

using testing::HasSubstr;

std::string type_of(const std::string& model) {
  const auto config = exported_config(load_model(model), "bfloat16");
  return config ? config->at("model_type").get<std::string>() : "none";
}

TEST(ExportedConfig, IsOfTheFamilyThatComputesTheSame) {
  EXPECT_EQ(type_of("llama3.1-8b"), "llama");
  EXPECT_EQ(type_of("qwen2.5-7b"), "qwen2");
  EXPECT_EQ(type_of("qwen3-8b"), "qwen3");
  EXPECT_EQ(type_of("gpt2"), "gpt2");
  EXPECT_EQ(type_of("deepseek-v2-lite"), "deepseek_v2");
  EXPECT_EQ(type_of("deepseek-v3"), "none") << "corrected scores of experts";
  EXPECT_EQ(type_of("mixtral-8x7b"), "none") << "experts";
  EXPECT_EQ(type_of("gemma2-9b"), "none") << "four norms";
}

// What the reader of configurations makes of it is the model, with its longest sequence.
TEST(ExportedConfig, OfShippedModelsIsReadAsTheModel) {
  int exported = 0;
  for (const ModelSpec& model : shipped_model_specs()) {
    const auto config = exported_config(model, "bfloat16");
    if (!config) continue;
    ++exported;
    const ModelSpec read = import_huggingface(*config, "config.json");
    EXPECT_EQ(architecture_checksum(read), architecture_checksum(model)) << model.name;
    EXPECT_EQ(read.dropout, model.dropout) << model.name;
    if (model.position != PositionKind::Rotary) continue;
    EXPECT_EQ(read.max_seq_len, model.max_seq_len) << model.name;
  }
  EXPECT_GE(exported, 30);
}

// A run of three steps in a folder of its own, and the loss of the first batch after them.
struct ShortRun {
  std::filesystem::path folder;
  double loss = 0.0;

  explicit ShortRun(const ModelSpec& model, const Plan& plan = one_rank_plan())
      : folder(scratch_path("run")) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    Scenario scenario;
    scenario.model = model;
    scenario.plan = plan;
    scenario.cluster = load_cluster(std::string("h100-pcie-server"));
    scenario.stack = load_stack("shardwright");
    write_json(folder / "plan.json", to_json(scenario));
    LocalStore store;
    on_ranks(model, plan, kTwentySteps, [&](RankTrainer& trainer, const BatchLoader& loader) {
      RunCheckpoints checkpoints({folder / "checkpoints", 2}, model, trainer, store,
                                 [](const std::string&) {});
      RunState state;
      state.seq_len = plan.seq_len;
      state.model_checksum = architecture_checksum(model);
      while (state.steps < 3) {
        run_steps(trainer, loader, state.steps, state.steps + 1);
        ++state.steps;
        checkpoints.save(state);
      }
      checkpoints.finish();
      const double own = run_steps(trainer, loader, 0, 1).front();
      if (trainer.rank() == 0) loss = own;
    });
  }

  WeightExport to(const std::string& name) const {
    WeightExport options;
    options.run = folder;
    options.out = scratch_path(name);
    return options;
  }
};

// All weights that a folder of safetensors files holds, as fp32 numbers.
std::map<std::string, std::vector<float>> weights_in(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<float>> weights;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file(entry.path(), SafetensorsFile::Access::Read);
    for (const auto& [name, view] : file.tensors()) {
      std::size_t elements = 1;
      for (const std::int64_t size : view.shape) elements *= static_cast<std::size_t>(size);
      for (std::size_t i = 0; i < elements; ++i) weights[name].push_back(view.at(i));
    }
  }
  return weights;
}

TEST(WeightExport, Fp32GivesTheLossOfTheRun) {
  Plan plan = one_rank_plan();
  plan.dp = plan.tp = 2;
  plan.zero_stage = 1;
  for (const ModelSpec& model : {small_llama(), small_qwen2(), small_qwen3(), small_gpt2(),
                                 small_deepseek_v2(), small_deepseek_v3()}) {
    if (model.moe) plan.ep = plan.expert_tp = 2;
    const ShortRun run(model, plan);
    WeightExport options = run.to("fp32-" + model.name);
    options.dtype = "fp32";
    const ExportedWeights exported = export_weights(options);
    EXPECT_EQ(exported.steps, 3);
    EXPECT_EQ(exported.files, 1U);
    EXPECT_EQ(exported.bytes, 4 * static_cast<std::size_t>(count_parameters(model).total));
    EXPECT_EQ(first_loss(model, plan, options.out), run.loss) << model.name;
    plan.ep = plan.expert_tp = 1;
  }
}

// Each weight is the bf16 number next to that of the run: at most half of the place of its last
// bit away, and without bits below.
TEST(WeightExport, Bf16IsRoundedToNearest) {
  const ModelSpec model = small_llama();
  const ShortRun run(model);
  const WeightExport options = run.to("bf16");
  export_weights(options);
  const auto rounded = weights_in(options.out);
  const auto exact = weights_in(CheckpointFolder(run.folder / "checkpoints").path(3));
  ASSERT_EQ(rounded.size(), stored_tensors(model).size());
  for (const auto& [name, values] : rounded) {
    const std::vector<float>& from = exact.at(name);
    ASSERT_EQ(values.size(), from.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]) & 0xFFFFU, 0U);
      const float last_bit = std::ldexp(1.0F, std::ilogb(from[i]) - 7);
      EXPECT_LE(std::abs(values[i] - from[i]), last_bit / 2) << name << " " << i;
    }
  }
  EXPECT_NEAR(first_loss(model, one_rank_plan(), options.out) / run.loss, 1.0, 1e-3);
}

TEST(WeightExport, SplitsFilesAndListsTheirTensors) {
  const ModelSpec model = small_gpt2();
  const ShortRun run(model);
  WeightExport one = run.to("one"), several = run.to("several");
  one.dtype = several.dtype = "fp32";
  several.shard_bytes = 20'000;
  export_weights(one);
  const ExportedWeights exported = export_weights(several);
  EXPECT_FALSE(std::filesystem::exists(one.out / kIndexFile));
  const auto index = nlohmann::json::parse(content_of(several.out / kIndexFile));
  EXPECT_EQ(index["metadata"]["total_size"], exported.bytes);
  std::set<std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) files.insert(file);
  EXPECT_EQ(files.size(), exported.files);
  EXPECT_GT(exported.files, 5U);
  EXPECT_EQ(*files.begin(), fmt::format("model-00001-of-{:05}.safetensors", exported.files));
  for (const std::string& file : files) {
    const SafetensorsFile shard(several.out / file, SafetensorsFile::Access::Read);
    std::size_t bytes = 0;
    for (const auto& [name, view] : shard.tensors()) bytes += view.bytes.size();
    EXPECT_TRUE(bytes <= 20'000 || shard.tensors().size() == 1) << file;
  }
  EXPECT_EQ(weights_in(several.out), weights_in(one.out));
  EXPECT_EQ(first_loss(model, one_rank_plan(), several.out), run.loss);
}

// Files of the model are replaced, those beside it stay.
TEST(WeightExport, ReplacesAModelOnlyIfForced) {
  const ShortRun run(small_llama());
  WeightExport options = run.to("forced");
  options.shard_bytes = 20'000;
  const std::size_t files = export_weights(options).files;
  ASSERT_GT(files, 1U);
  std::ofstream(options.out / "tokenizer.json") << "{}";
  options.shard_bytes = 1'000'000'000;
  EXPECT_THAT(thrown_by([&] { export_weights(options); }), HasSubstr("which is not empty"));
  options.force = true;
  export_weights(options);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(options.out))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"config.json", "model.safetensors", "tokenizer.json"}));
  EXPECT_FALSE(std::filesystem::exists(options.out.string() + ".unfinished"));
}

TEST(WeightExport, RefusesWhatHoldsNoIntactCheckpoint) {
  const ShortRun run(small_llama());
  const auto text = [](const WeightExport& options) {
    const std::string refused = thrown_by([&] { export_weights(options); });
    EXPECT_FALSE(std::filesystem::exists(options.out)) << refused;
    return refused;
  };
  WeightExport options = run.to("refused");
  options.dtype = "int8";
  EXPECT_THAT(text(options), HasSubstr("\"int8\"; expected bf16 or fp32"));
  options = run.to("refused");
  options.run = run.folder / "checkpoints";
  EXPECT_THAT(text(options), HasSubstr("which has no plan.json"));
  options = run.to("refused");
  CheckpointFolder folder(run.folder / "checkpoints");
  // The newest one is damaged, so the one before it is exported.
  std::ofstream(folder.path(3) / kModelFile, std::ios::app) << "more";
  EXPECT_EQ(export_weights(run.to("before")).steps, 2);
  std::ofstream(folder.path(2) / kStateFile) << "{}";
  EXPECT_THAT(text(options), HasSubstr("damaged checkpoints alone"));
  std::filesystem::remove_all(folder.path(2));
  std::filesystem::rename(folder.path(3), folder.unfinished(3));
  EXPECT_THAT(text(options), HasSubstr("a checkpoint whose writing has not ended; expected"));
  std::filesystem::remove_all(folder.unfinished(3));
  EXPECT_THAT(text(options), HasSubstr("found no checkpoint; expected an intact checkpoint"));
}

TEST(WeightExport, RefusesAnotherModelAndOneThatHuggingFaceLacks) {
  const ShortRun run(small_llama());
  const WeightExport options = run.to("another");
  nlohmann::json plan = nlohmann::json::parse(content_of(run.folder / "plan.json"));
  plan["model"]["norm_epsilon"] = 1e-3;
  std::ofstream(run.folder / "plan.json") << plan;
  EXPECT_THAT(thrown_by([&] { export_weights(options); }), HasSubstr("that of the model in"));
  const ShortRun experts(small_mixtral());
  EXPECT_THAT(thrown_by([&] { export_weights(experts.to("experts")); }),
              HasSubstr("small-mixtral; expected a model that transformers computes"));
  std::ofstream(options.out) << "a file";
  EXPECT_THAT(thrown_by([&] { export_weights(options); }), HasSubstr("which is no folder"));
}

}  // namespace
}  // namespace shardwright::executor
