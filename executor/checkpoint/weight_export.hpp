// The weights of a run as a folder that Hugging Face's transformers loads, and that `--init-from`
// reads: config.json, and safetensors files with an index if there are several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace shardwright::executor {

struct WeightExport {
  // The folder of the run.
  std::filesystem::path run;
  std::filesystem::path out;
  // "bf16", rounded to nearest, or "fp32" as the run has them.
  std::string dtype = "bf16";
  // A file holds no more than that, unless it holds a single tensor.
  std::int64_t shard_bytes = 5'000'000'000;
  // Replaces the model's files in a folder that exists, and keeps others there.
  bool force = false;
};

struct ExportedWeights {
  std::string model;
  // The steps after which the run had these weights.
  std::int64_t steps = 0;
  std::size_t files = 0;
  std::size_t bytes = 0;
};

// Exports the newest intact checkpoint, and warns of damaged ones. The folder is complete or not
// there; with `force`, files are replaced one after the other. Throws InputError if the run has no
// intact checkpoint, if the model is none of Hugging Face's, or for a folder that is not empty
// without `force`; RuntimeFailure if files cannot be written.
ExportedWeights export_weights(const WeightExport& options);

}  // namespace shardwright::executor
