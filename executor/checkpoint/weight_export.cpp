#include "executor/checkpoint/weight_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/scenario.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/exported_config.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/kernels/bfloat16.hpp"
#include "executor/telemetry/log.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.json";

// The format of exported weights in the words of safetensors and of PyTorch.
struct ExportFormat {
  const char* option;
  const char* stored;
  const char* torch;
  std::size_t bytes;
};
constexpr std::array kFormats = {ExportFormat{"bf16", "BF16", "bfloat16", 2},
                                 ExportFormat{"fp32", "F32", "float32", 4}};

const ExportFormat& format_of(const WeightExport& options) {
  for (const ExportFormat& format : kFormats)
    if (options.dtype == format.option) return format;
  throw InputError("--dtype", {{"", "\"" + options.dtype + "\"", "bf16 or fp32"}});
}

ModelSpec model_of(const fs::path& run) {
  const fs::path plan = run / "plan.json";
  std::error_code error;
  if (!fs::exists(plan, error)) {
    throw InputError("--weights", {{"", fmt::format("{}, which has no plan.json", run.string()),
                                    "the folder of a run, as `shardwright run --out` writes it"}});
  }
  return load_scenario(plan.string()).model;
}

// The newest intact checkpoint.
std::int64_t newest_checkpoint(CheckpointFolder& folder, const fs::path& checkpoints) {
  std::optional<std::string> damage;
  for (const std::int64_t steps : folder.steps()) {
    const auto found = folder.find_damage(steps);
    if (!found) return steps;
    log_warning(fmt::format("skipping the damaged checkpoint of step {}: {}", steps, *found));
    if (!damage) damage = found;
  }
  const std::string none =
      folder.has_unfinished() ? "a checkpoint whose writing has not ended" : "no checkpoint";
  throw InputError(checkpoints.string(),
                   {{"", damage ? "damaged checkpoints alone: " + *damage : none,
                     "an intact checkpoint, as a run writes with --checkpoint-every N"}});
}

// Older checkpoints state no checksum.
void check_checkpoint(const RunState& state, const ModelSpec& model, const fs::path& checkpoint) {
  const std::string& found = state.model_checksum;
  if (found.empty() || found == architecture_checksum(model)) return;
  throw InputError(
      checkpoint.string(),
      {{"/model_checksum", found,
        fmt::format("{}, that of the model in plan.json", architecture_checksum(model))}});
}

// The folder of the export without the slash that may end it.
fs::path folder_of(const WeightExport& options) {
  const fs::path folder = fs::absolute(options.out).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

void check_destination(const fs::path& out, bool force) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(out, error);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    throw InputError("--out",
                     {{"", out.string() + ", which is no folder", "a folder, or nothing"}});
  if (force || (fs::is_empty(out, error) && !error)) return;
  throw InputError("--out", {{"", out.string() + ", which is not empty",
                              "a new or an empty folder, or --force to replace the model in it"}});
}

// A file of the export, and its tensors.
struct Shard {
  std::string name;
  std::vector<StoredTensor> tensors;
};

std::size_t stored_bytes(const StoredTensor& tensor, const ExportFormat& format) {
  return static_cast<std::size_t>(tensor.elements()) * format.bytes;
}

// Fills files in the order of the tensors, and names them as transformers does.
std::vector<Shard> split_into_files(const ModelSpec& model, const ExportFormat& format,
                                    std::size_t most) {
  std::vector<Shard> shards;
  std::size_t filled = 0;
  for (StoredTensor& tensor : stored_tensors(model)) {
    const std::size_t bytes = stored_bytes(tensor, format);
    if (shards.empty() || filled + bytes > most) {
      shards.emplace_back();
      filled = 0;
    }
    filled += bytes;
    shards.back().tensors.push_back(std::move(tensor));
  }
  if (shards.size() == 1) {
    shards.front().name = kModelFile;
    return shards;
  }
  for (std::size_t i = 0; i < shards.size(); ++i)
    shards[i].name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  return shards;
}

void write_shard(const fs::path& file, const Shard& shard, const ExportFormat& format,
                 SafetensorsFile& weights) {
  create_safetensors(file, shard.tensors, format.stored);
  SafetensorsFile written(file, SafetensorsFile::Access::Write);
  for (const StoredTensor& tensor : shard.tensors) {
    const std::span<const float> from = weights.tensor(tensor.name, tensor.elements());
    const std::span<std::byte> to = written.bytes_of(tensor.name);
    if (format.bytes == sizeof(float)) {
      std::memcpy(to.data(), from.data(), from.size_bytes());
      continue;
    }
    std::transform(from.begin(), from.end(), reinterpret_cast<std::uint16_t*>(to.data()),
                   to_bfloat16);
  }
  written.sync();
}

// huggingface.co/docs/transformers, "Sharded checkpoints".
void write_index(const fs::path& folder, const std::vector<Shard>& shards,
                 const ExportFormat& format) {
  if (shards.size() == 1) return;
  nlohmann::ordered_json places = nlohmann::ordered_json::object();
  std::size_t bytes = 0;
  for (const Shard& shard : shards) {
    for (const StoredTensor& tensor : shard.tensors) {
      places[tensor.name] = shard.name;
      bytes += stored_bytes(tensor, format);
    }
  }
  write_json(folder / kIndexFile, {{"metadata", {{"total_size", bytes}}}, {"weight_map", places}});
}

// A folder that is removed with its files unless they have been moved elsewhere.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::remove_all(path_, error);
    fs::create_directories(path_, error);
    if (error)
      throw InputError("--out", {{"", fmt::format("{}: {}", path_.string(), error.message()),
                                  "a folder that can be written"}});
  }
  ~UnfinishedFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool is_of_a_model(const std::string& name) {
  return name == kConfigFile || name == kIndexFile ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

// Puts the files in place of those of another model.
void publish(const fs::path& unfinished, const fs::path& out) {
  if (!fs::exists(out)) return fs::rename(unfinished, out);
  std::vector<fs::path> old, made;
  for (const auto& entry : fs::directory_iterator(out)) {
    if (is_of_a_model(entry.path().filename().string())) old.push_back(entry.path());
  }
  for (const auto& entry : fs::directory_iterator(unfinished)) made.push_back(entry.path());
  for (const fs::path& file : old) fs::remove(file);
  for (const fs::path& file : made) fs::rename(file, out / file.filename());
}

}  // namespace

ExportedWeights export_weights(const WeightExport& options) {
  const ExportFormat& format = format_of(options);
  const fs::path out = folder_of(options), checkpoints = options.run / "checkpoints";
  const ModelSpec model = model_of(options.run);
  check_destination(out, options.force);
  const auto config = exported_config(model, format.torch);
  if (!config) {
    throw InputError(
        (options.run / "plan.json").string(),
        {{"/model", model.name,
          "a model that transformers computes as a Llama, Qwen2, Qwen3, DeepSeek-V2 or "
          "GPT-2"}});
  }
  CheckpointFolder folder(checkpoints);
  const std::int64_t steps = newest_checkpoint(folder, checkpoints);
  check_checkpoint(folder.read_state(steps), model, folder.path(steps));
  SafetensorsFile weights(folder.path(steps) / kModelFile, SafetensorsFile::Access::Read);
  const std::vector<Shard> shards =
      split_into_files(model, format, static_cast<std::size_t>(options.shard_bytes));
  const UnfinishedFolder unfinished(out.string() + ".unfinished");
  try {
    for (const Shard& shard : shards)
      write_shard(unfinished.path() / shard.name, shard, format, weights);
    write_index(unfinished.path(), shards, format);
    write_json(unfinished.path() / kConfigFile, *config);
    publish(unfinished.path(), out);
  } catch (const fs::filesystem_error& error) {
    throw RuntimeFailure(fmt::format("{}: {}", out.string(), error.code().message()));
  }
  ExportedWeights exported{model.name, steps, shards.size(), 0};
  for (const StoredTensor& tensor : stored_tensors(model))
    exported.bytes += stored_bytes(tensor, format);
  return exported;
}

}  // namespace shardwright::executor
