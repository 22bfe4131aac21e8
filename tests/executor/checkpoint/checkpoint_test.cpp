#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.hpp"
#include "executor/checkpoint/run_checkpoints.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/data/hash.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

constexpr std::int64_t kSaved = 3, kCheckpointSteps = 6;

constexpr TrainingOptions kSixSteps{
    .steps = kCheckpointSteps, .learning_rate = 3e-3, .warmup_steps = 2};

Plan plan_of(std::int64_t dp = 1, std::int64_t tp = 1, std::int64_t pp = 1, int zero_stage = 0) {
  Plan plan = one_rank_plan();
  plan.dp = dp;
  plan.tp = tp;
  plan.pp = pp;
  plan.zero_stage = zero_stage;
  plan.micro_batch = 2;
  return plan;
}

RunState state_after(std::int64_t steps) {
  RunState state;
  state.steps = steps;
  state.samples = static_cast<std::uint64_t>(steps * one_rank_plan().global_batch);
  state.seed = 1;
  state.seq_len = 32;
  return state;
}

// Trains under `plan`, saves the state after each step up to the third, and returns the losses.
std::vector<double> run_and_save(const ModelSpec& model, const Plan& plan,
                                 const std::filesystem::path& folder, bool in_background = false) {
  std::vector<double> losses;
  LocalStore store;
  on_ranks(model, plan, kSixSteps, [&](RankTrainer& trainer, const BatchLoader& loader) {
    RunCheckpoints checkpoints({folder, 2, in_background}, model, trainer, store,
                               [](const std::string&) {});
    std::vector<double> own;
    for (std::int64_t step = 0; step < kCheckpointSteps; ++step) {
      own.push_back(run_steps(trainer, loader, step, step + 1).front());
      if (step < kSaved) checkpoints.save(state_after(step + 1));
    }
    checkpoints.finish();
    EXPECT_EQ(checkpoints.times().count, kSaved);
    EXPECT_GT(checkpoints.times().stalled_s, 0.0);
    if (trainer.rank() == 0) losses = own;
  });
  return losses;
}

struct Resumed {
  std::optional<RunState> state;
  // Losses from the resumed step to the sixth.
  std::vector<double> losses;
  std::vector<std::string> reported;
};

Resumed resume(const ModelSpec& model, const Plan& plan, const std::filesystem::path& folder) {
  Resumed resumed;
  LocalStore store;
  on_ranks(model, plan, kSixSteps, [&](RankTrainer& trainer, const BatchLoader& loader) {
    RunCheckpoints checkpoints({folder}, model, trainer, store,
                               [&](const std::string& text) { resumed.reported.push_back(text); });
    const auto state = checkpoints.load_newest();
    std::vector<double> own =
        run_steps(trainer, loader, state ? state->steps : 0, kCheckpointSteps);
    if (trainer.rank() != 0) return;
    resumed.state = state;
    resumed.losses = own;
  });
  return resumed;
}

TEST(Checkpoint, ResumesTheLossCurveExactlyUnderTheSamePlan) {
  Plan dual_pipe = plan_of(1, 1, 2);
  dual_pipe.schedule = ScheduleKind::DualPipe;
  for (const Plan& plan : {plan_of(), plan_of(2, 2, 1, 1), dual_pipe}) {
    const auto folder = scratch_path("exact");
    const std::vector<double> losses = run_and_save(small_gpt2(), plan, folder);
    const Resumed resumed = resume(small_gpt2(), plan, folder);
    ASSERT_EQ(resumed.state, state_after(kSaved));
    EXPECT_EQ(resumed.losses, std::vector<double>(losses.begin() + kSaved, losses.end()));
    EXPECT_TRUE(resumed.reported.empty());
  }
}

// A background checkpoint holds the state after its step, not a later one.
TEST(Checkpoint, WrittenInTheBackgroundHoldsTheStateOfItsStep) {
  const ModelSpec model = small_llama();
  const Plan plan = plan_of(2, 1, 2, 1);
  const auto folder = scratch_path("background"), other = scratch_path("foreground");
  const std::vector<double> losses = run_and_save(model, plan, folder, true);
  EXPECT_EQ(run_and_save(model, plan, other, false), losses);
  for (const std::int64_t steps : {kSaved - 1, kSaved}) {
    for (const char* file : {kModelFile, kOptimizerFile, kStateFile}) {
      EXPECT_EQ(content_of(CheckpointFolder(folder).path(steps) / file),
                content_of(CheckpointFolder(other).path(steps) / file));
    }
  }
  const Resumed resumed = resume(model, plan, folder);
  EXPECT_EQ(resumed.losses, std::vector<double>(losses.begin() + kSaved, losses.end()));
}

// A file blocks the folder of checkpoints: every rank learns that rank 0 cannot write, in the
// background with the next checkpoint.
TEST(Checkpoint, ThatCannotBeWrittenIsAnErrorOnAllRanks) {
  const auto blocked = scratch_path("blocked");
  std::ofstream(blocked) << "no folder";
  for (const bool in_background : {false, true}) {
    LocalStore store;
    on_ranks(small_llama(), plan_of(2, 1, 1, 1), kSixSteps,
             [&](RankTrainer& trainer, const BatchLoader& /*loader*/) {
               RunCheckpoints checkpoints({blocked, 2, in_background}, small_llama(), trainer,
                                          store, [](const std::string&) {});
               const auto write = [&] {
                 checkpoints.save(state_after(1));
                 checkpoints.finish();
               };
               EXPECT_THROW(write(), RuntimeFailure);
             });
  }
}

TEST(Checkpoint, ResumesUnderOtherPlansWithinRounding) {
  for (const ModelSpec& model : {small_gpt2(), small_llama(), small_qwen3()}) {
    const auto folder = scratch_path("other-plan");
    const std::vector<double> losses = run_and_save(model, plan_of(2, 1, 2, 1), folder);
    // The last one has more ranks than the Llamas have heads of keys and values.
    for (const Plan& plan : {plan_of(), plan_of(1, 2, 1, 0), plan_of(4, 1, 1, 1),
                             plan_of(1, 2, 2, 1), plan_of(1, 4, 1, 0)}) {
      const Resumed resumed = resume(model, plan, folder);
      ASSERT_EQ(resumed.losses.size(), static_cast<std::size_t>(kCheckpointSteps - kSaved));
      for (std::size_t i = 0; i < resumed.losses.size(); ++i)
        EXPECT_NEAR(resumed.losses[i] / losses[kSaved + i], 1.0, 1e-5);
    }
  }
}

// The weights that a model has after three steps, by the tensors' names.
std::map<std::string, std::vector<float>> trained_weights(const ModelSpec& model,
                                                          const Plan& plan) {
  const auto folder = scratch_path("trained");
  run_and_save(model, plan, folder);
  const SafetensorsFile file(CheckpointFolder(folder).path(kSaved) / kModelFile,
                             SafetensorsFile::Access::Read);
  std::map<std::string, std::vector<float>> weights;
  for (const auto& [name, tensor] : file.tensors()) {
    for (std::size_t i = 0; i < tensor.bytes.size() / sizeof(float); ++i)
      weights[name].push_back(tensor.at(i));
  }
  return weights;
}

// A plan whose stages lie on several pools, with layers in proportion to their speeds, trains what
// one rank does. The embedding is tied over the pools.
TEST(Checkpoint, HoldsTheWeightsOfOneRankWhereStagesLieOnPools) {
  const ModelSpec model = small_gpt2();
  Plan plan = plan_of(2, 1, 2, 1);
  plan.stage_layers = {3, 1};
  plan.stage_pools = {"fast", "slow"};
  const auto expected = trained_weights(model, plan_of());
  const auto weights = trained_weights(model, plan);
  double difference = 0.0, norm = 0.0;
  for (const auto& [name, values] : expected) {
    const std::vector<float>& others = weights.at(name);
    ASSERT_EQ(others.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(others[i] - values[i], 2.0);
      norm += std::pow(values[i], 2.0);
    }
  }
  EXPECT_GT(norm, 0.0);
  EXPECT_LE(std::sqrt(difference / norm), 2e-6);
}

// Each rank writes and reads the experts that it has, wherever they were before.
TEST(Checkpoint, ResumesUnderAnotherNumberOfExpertRanks) {
  const auto with_experts = [](std::int64_t ranks, std::int64_t ep, int zero_stage) {
    Plan plan = plan_of(ranks, 1, 1, zero_stage);
    plan.ep = ep;
    return plan;
  };
  Plan unequal = with_experts(2, 2, 1);
  unequal.replica_pools = {{"fast", 1, 2, {}, 3}, {"slow", 1, 2, {}, 1}};
  const auto folder = scratch_path("other-experts");
  const std::vector<double> losses = run_and_save(small_mixtral(), unequal, folder);
  Plan split = with_experts(4, 2, 0);
  split.expert_tp = 2;
  for (const Plan& plan : {plan_of(), with_experts(4, 2, 1), with_experts(4, 4, 0),
                           with_experts(2, 2, 3), split, unequal}) {
    const Resumed resumed = resume(small_mixtral(), plan, folder);
    ASSERT_EQ(resumed.losses.size(), static_cast<std::size_t>(kCheckpointSteps - kSaved));
    for (std::size_t i = 0; i < resumed.losses.size(); ++i)
      EXPECT_NEAR(resumed.losses[i] / losses[kSaved + i], 1.0, 1e-5);
  }
}

void flip_bit(const std::filesystem::path& file, std::uint64_t bit) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(bit / 8));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(bit / 8));
  stream.put(static_cast<char>(byte ^ (1 << (bit % 8))));
}

// A run keeps nothing unfinished. Damaged checkpoints do not count as kept ones, wherever they are;
// older ones than the kept ones are deleted.
TEST(Checkpoint, KeepsTheLastIntactOnes) {
  const auto folder = scratch_path("keep");
  run_and_save(small_llama(), plan_of(), folder);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"step-00000002", "step-00000003"}));
  for (const char* name : {"step-00000001", "step-00000004", "step-00000009"})
    // The copies contain another step than their names say.
    std::filesystem::copy(folder / "step-00000003", folder / name);
  const auto left = [&](std::int64_t keep) {
    CheckpointFolder(folder).prune(keep);
    return CheckpointFolder(folder).steps();
  };
  // Two are intact.
  EXPECT_EQ(left(3), (std::vector<std::int64_t>{9, 4, 3, 2, 1}));
  EXPECT_EQ(left(2), (std::vector<std::int64_t>{9, 4, 3, 2}));
  EXPECT_EQ(left(1), (std::vector<std::int64_t>{9, 4, 3}));
}

// If bits are flipped, or files truncated or missing, the previous checkpoint is used with a
// warning.
TEST(Checkpoint, DamageIsNoticedAndThePreviousOneIsUsed) {
  const ModelSpec model = small_llama();
  const auto folder = scratch_path("damage"), whole = scratch_path("whole");
  run_and_save(model, plan_of(), whole);
  const auto damaged = folder / "step-00000003";
  std::vector<std::function<void()>> damages;
  for (const char* file : {kModelFile, kOptimizerFile, kStateFile}) {
    damages.emplace_back([=] { std::filesystem::remove(damaged / file); });
    damages.emplace_back([=] {
      std::filesystem::resize_file(damaged / file, std::filesystem::file_size(damaged / file) / 2);
    });
  }
  // JSON, but no object.
  damages.emplace_back([=] { std::ofstream(damaged / kStateFile) << "0"; });
  for (std::uint64_t i = 0; i < 60; ++i) {
    damages.emplace_back([=] {
      const char* const files[] = {kModelFile, kOptimizerFile, kStateFile};
      const auto file = damaged / files[i % 3];
      flip_bit(file, random_bits(1, i) % (8 * std::filesystem::file_size(file)));
    });
  }
  for (const auto& damage : damages) {
    std::filesystem::remove_all(folder);
    std::filesystem::copy(whole, folder, std::filesystem::copy_options::recursive);
    damage();
    CheckpointFolder checkpoints(folder);
    EXPECT_TRUE(checkpoints.find_damage(3));
    EXPECT_FALSE(checkpoints.find_damage(2));
  }
  const Resumed resumed = resume(model, plan_of(), folder);
  EXPECT_EQ(resumed.state, state_after(2));
  EXPECT_EQ(resumed.reported.size(), 1U);
  std::filesystem::remove(folder / "step-00000002" / kStateFile);
  EXPECT_THROW(resume(model, plan_of(), folder), RuntimeFailure);
}

// Replacements that are no regular files: opening a pipe would wait for ever.
TEST(Checkpoint, IsDamagedIfAFileIsNoRegularFile) {
  const ModelSpec model = small_llama();
  const auto folder = scratch_path("no-file"), whole = scratch_path("no-file-whole");
  run_and_save(model, plan_of(), whole);
  for (const char* name : {kModelFile, kOptimizerFile, kStateFile}) {
    const auto file = folder / "step-00000003" / name;
    const auto expect_damage = [&](const std::string& kind, const std::function<void()>& replace) {
      std::filesystem::remove_all(folder);
      std::filesystem::copy(whole, folder, std::filesystem::copy_options::recursive);
      std::filesystem::remove(file);
      replace();
      EXPECT_EQ(CheckpointFolder(folder).find_damage(3),
                file.string() + " is " + kind + ", not a file");
    };
    expect_damage("a folder", [&] { std::filesystem::create_directory(file); });
    expect_damage("a device", [&] { std::filesystem::create_symlink("/dev/zero", file); });
    expect_damage("a named pipe", [&] { ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0); });
    const Resumed resumed = resume(model, plan_of(), folder);
    EXPECT_EQ(resumed.state, state_after(2)) << name;
    EXPECT_EQ(resumed.reported.size(), 1U) << name;
  }
}

// The means are values that no decimal fraction represents. An older checkpoint lacks them.
TEST(Checkpoint, KeepsTheMeansOfTheNoiseScale) {
  const auto folder = scratch_path("noise");
  run_and_save(small_llama(), plan_of(), folder);
  CheckpointFolder checkpoints(folder);
  RunState state = checkpoints.read_state(kSaved);
  EXPECT_EQ(state.noise, NoiseMeans{});
  state.noise = {-1.0 / 3.0, 1e5 / 7.0, 0.05};
  const auto unfinished = checkpoints.begin(kSaved);
  for (const char* name : {kModelFile, kOptimizerFile})
    std::filesystem::copy(checkpoints.path(kSaved) / name, unfinished / name);
  checkpoints.finish(state);
  EXPECT_FALSE(CheckpointFolder(folder).find_damage(kSaved));
  EXPECT_EQ(checkpoints.read_state(kSaved), state);

  const auto file = checkpoints.path(kSaved) / kStateFile;
  nlohmann::json earlier = nlohmann::json::parse(content_of(file));
  ASSERT_EQ(earlier.erase("noise_scale"), 1U);
  earlier.erase("checksum");
  earlier["checksum"] = checksum_text(key_of(0, earlier.dump()));
  std::ofstream(file) << earlier.dump();
  EXPECT_FALSE(CheckpointFolder(folder).find_damage(kSaved));
  state.noise = {};
  EXPECT_EQ(checkpoints.read_state(kSaved), state);
}

TEST(Checkpoint, OfAnotherModelIsRefused) {
  const auto folder = scratch_path("another");
  run_and_save(small_llama(), plan_of(), folder);
  ModelSpec wider = small_llama();
  wider.mlp.ffn_hidden *= 2;
  EXPECT_THROW(resume(wider, plan_of(), folder), RuntimeFailure);
  EXPECT_THROW(resume(small_gpt2(), plan_of(), folder), RuntimeFailure);
}

// Models with equal tensor sizes but other heads, activation or rotation: the tensors cannot show
// the difference.
TEST(Checkpoint, DistinguishesModelsOfOneSize) {
  const ModelSpec model = small_llama();
  std::set<std::string> sums = {architecture_checksum(model)};
  std::vector<ModelSpec> others(5, model);
  others[0].attention.heads *= 2;
  others[0].attention.head_dim /= 2;
  others[1].rope_theta *= 2.0;
  others[2].norm_epsilon *= 10.0;
  others[3].layers -= 1;
  others[4].tied_embeddings = !model.tied_embeddings;
  for (const ModelSpec& other : others)
    EXPECT_TRUE(sums.insert(architecture_checksum(other)).second);
  ModelSpec renamed = model;
  renamed.name = "the same";
  EXPECT_EQ(architecture_checksum(renamed), architecture_checksum(model));
}

TEST(Checkpoint, IsRefusedBeforeItsTensorsAreRead) {
  const auto folder = scratch_path("refused");
  run_and_save(small_llama(), plan_of(), folder);
  LocalStore store;
  on_ranks(small_llama(), plan_of(), kSixSteps,
           [&](RankTrainer& trainer, const BatchLoader& /*loader*/) {
             RunCheckpoints checkpoints({folder}, small_llama(), trainer, store,
                                        [](const std::string&) {});
             const auto refuse = [](const RunState& state) {
               EXPECT_EQ(state.steps, kSaved);
               throw InputError("--resume", {{"", "another", "this one"}});
             };
             EXPECT_THROW(checkpoints.load_newest(refuse), InputError);
           });
}

// transformers: LlamaForCausalLM and GPT2LMHeadModel; Conv1D weights are [input, output].
TEST(StoredNames, AreHuggingFaces) {
  std::map<std::string, std::vector<std::int64_t>> llama, gpt2;
  for (const StoredTensor& tensor : stored_tensors(small_llama()))
    llama[tensor.name] = tensor.shape;
  for (const StoredTensor& tensor : stored_tensors(small_gpt2())) gpt2[tensor.name] = tensor.shape;
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(llama.size(), 4U * 9U + 3U);
  EXPECT_EQ(llama.at("model.embed_tokens.weight"), (Shape{256, 32}));
  EXPECT_EQ(llama.at("model.layers.3.self_attn.k_proj.weight"), (Shape{16, 32}));
  EXPECT_EQ(llama.at("model.layers.0.mlp.down_proj.weight"), (Shape{32, 48}));
  EXPECT_EQ(llama.at("model.norm.weight"), (Shape{32}));
  EXPECT_EQ(llama.at("lm_head.weight"), (Shape{256, 32}));
  std::map<std::string, std::vector<std::int64_t>> qwen3;
  for (const StoredTensor& tensor : stored_tensors(small_qwen3()))
    qwen3[tensor.name] = tensor.shape;
  EXPECT_EQ(qwen3.size(), 4U * 11U + 3U);
  EXPECT_EQ(qwen3.at("model.layers.2.self_attn.q_norm.weight"), (Shape{12}));
  EXPECT_EQ(qwen3.at("model.layers.2.self_attn.k_norm.weight"), (Shape{12}));
  std::map<std::string, std::vector<std::int64_t>> deepseek;
  for (const StoredTensor& tensor : stored_tensors(small_deepseek_v2()))
    deepseek[tensor.name] = tensor.shape;
  // Five tensors of attention, two norms, and three of a feed-forward block or an expert.
  EXPECT_EQ(deepseek.size(), (7U + 3U) + (7U + 1U + 4U * 3U + 3U) + 3U);
  EXPECT_EQ(deepseek.at("model.layers.0.self_attn.kv_a_proj_with_mqa.weight"), (Shape{16, 32}));
  EXPECT_EQ(deepseek.at("model.layers.1.self_attn.kv_a_layernorm.weight"), (Shape{12}));
  EXPECT_EQ(deepseek.at("model.layers.0.self_attn.kv_b_proj.weight"), (Shape{4 * (6 + 5), 12}));
  EXPECT_EQ(deepseek.at("model.layers.1.mlp.gate.weight"), (Shape{4, 32}));
  EXPECT_EQ(deepseek.at("model.layers.1.mlp.experts.3.down_proj.weight"), (Shape{32, 24}));
  EXPECT_EQ(deepseek.at("model.layers.1.mlp.shared_experts.up_proj.weight"), (Shape{48, 32}));
  EXPECT_EQ(gpt2.size(), 4U * 12U + 4U);
  EXPECT_EQ(gpt2.at("transformer.h.1.attn.c_attn.weight"), (Shape{32, 96}));
  EXPECT_EQ(gpt2.at("transformer.h.1.attn.c_attn.bias"), (Shape{96}));
  EXPECT_EQ(gpt2.at("transformer.h.2.mlp.c_proj.weight"), (Shape{64, 32}));
  EXPECT_EQ(gpt2.at("transformer.ln_f.bias"), (Shape{32}));
}

// Every element of every tensor is exactly one element of one parameter.
TEST(StoredNames, PlacesCoverTheTensorsOnce) {
  for (const ModelSpec& model :
       {small_llama(), small_gpt2(), small_qwen3(), small_deepseek_v2(), small_deepseek_v3()}) {
    std::map<std::string, std::vector<int>> met;
    for (const StoredTensor& tensor : stored_tensors(model))
      met[tensor.name].assign(static_cast<std::size_t>(tensor.elements()), 0);
    for (const ParameterTensor& parameter : parameter_tensors(model)) {
      const std::int64_t columns = parameter.shape.size() < 3
                                       ? parameter.elements() / parameter.shape.front()
                                       : parameter.shape.back();
      std::int64_t next = 0;
      for (const StoredPlace& place : stored_places(model, parameter)) {
        EXPECT_EQ(place.first_row, next);
        next += place.rows;
        for (std::int64_t row = 0; row < place.rows; ++row) {
          for (std::int64_t column = 0; column < columns; ++column) {
            ++met.at(place.tensor)
                  .at(static_cast<std::size_t>(place.offset + row * place.row_stride +
                                               column * place.column_stride));
          }
        }
      }
    }
    for (const auto& [name, counts] : met) {
      for (const int count : counts) ASSERT_EQ(count, 1) << name;
    }
  }
}

TEST(Safetensors, RefusesInvalidSizes) {
  const auto file = scratch_path("sizes.safetensors");
  for (const char* tensor : {R"({"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]})",
                             R"({"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]})",
                             R"({"dtype": "F32", "shape": [1], "data_offsets": [0, 1e300]})",
                             R"({"dtype": "F32", "shape": [1], "data_offsets": [-4, 4]})",
                             R"({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]})",
                             R"({"dtype": "F32", "shape": [1], "data_offsets": [0]})",
                             R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]})",
                             R"({"dtype": 3, "shape": [1], "data_offsets": [0, 4]})", "7"}) {
    const std::string header = std::string("{\"a\": ") + tensor + "}";
    const std::uint64_t length = header.size();
    std::ofstream(file, std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), sizeof length) << header << "1234";
    EXPECT_THROW(SafetensorsFile(file, SafetensorsFile::Access::Read), RuntimeFailure) << tensor;
  }
}

TEST(Safetensors, RefusesIncompleteFiles) {
  const auto file = scratch_path("broken.safetensors");
  using Access = SafetensorsFile::Access;
  create_safetensors(file, {{"a", {2, 3}}, {"b", {4}}});
  SafetensorsFile(file, Access::Write).tensor("b", 4)[3] = 7.0F;
  EXPECT_EQ(SafetensorsFile(file, Access::Read).tensor("b", 4)[3], 7.0F);
  EXPECT_THROW(SafetensorsFile(file, Access::Read).tensor("a", 5), RuntimeFailure);
  EXPECT_THROW(SafetensorsFile(file, Access::Read).tensor("c", 4), RuntimeFailure);
  for (auto size = std::filesystem::file_size(file); size-- > 0;) {
    std::filesystem::resize_file(file, size);
    EXPECT_THROW(SafetensorsFile(file, Access::Read), RuntimeFailure) << size;
  }
}

}  // namespace
}  // namespace shardwright::executor
