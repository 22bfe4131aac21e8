// Names and layouts of a model's parameters in files: those of Hugging Face's Llama and GPT-2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "executor/checkpoint/safetensors.hpp"

namespace shardwright::executor {

// The place of a parameter in a tensor of a file: element (row, column) lies at offset + row *
// row_stride + column * column_stride. GPT-2 stores matrices transposed and joins those of queries,
// keys and values.
struct StoredPlace {
  std::string tensor;
  std::int64_t offset = 0;
  std::int64_t row_stride = 1, column_stride = 1;
};

// Models that are neither a Llama nor a GPT-2, and those with experts, keep the names of
// parameter_tensors.
StoredPlace stored_place(const ModelSpec& model, const ParameterTensor& parameter);

// Returns the tensors of a checkpoint of the model.
std::vector<StoredTensor> stored_tensors(const ModelSpec& model);

}  // namespace shardwright::executor
