// Names and layouts of a model's parameters in files: those of Hugging Face's Llama, GPT-2 and
// DeepSeek-V2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "executor/checkpoint/safetensors.hpp"

namespace shardwright::executor {

// The place of some rows of a parameter in a tensor of a file: element (row, column) lies at
// offset + (row - first_row) * row_stride + column * column_stride. GPT-2 stores matrices
// transposed and joins those of queries, keys and values. The rows of stacked matrices of experts
// are numbered through.
struct StoredPlace {
  std::string tensor;
  std::int64_t offset = 0;
  std::int64_t row_stride = 1, column_stride = 1;
  std::int64_t first_row = 0, rows = 0;
};

// Returns the places of all rows, in their order: more than one if each expert has a tensor of its
// own. Models of other families keep the names of parameter_tensors, and so do other models with
// experts.
std::vector<StoredPlace> stored_places(const ModelSpec& model, const ParameterTensor& parameter);

// Returns the tensors of a checkpoint of the model.
std::vector<StoredTensor> stored_tensors(const ModelSpec& model);

}  // namespace shardwright::executor
