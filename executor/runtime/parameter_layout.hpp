// Which parameters a rank holds, which part of each, and where they lie in its memory.
//
// Parameters lie in units: one for each layer, for the head, and for the token embedding. A unit is
// what ZeRO splits: rank r of the shard group owns the r-th of `shards` equal parts. The token
// embedding is a unit of its own, so that the first and the last stage split a tied one alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright::executor {

// What a rank holds of one parameter of the model, as a matrix: vectors are one column wide.
struct ParameterSlice {
  std::string name;                 // as in parameter_tensors: "layers.3.attention.q_proj.weight"
  std::vector<std::int64_t> shape;  // of the whole parameter
  std::int64_t first_row = 0, rows = 0;        // of the whole; further rows up to `held_rows` are
  std::int64_t held_rows = 0;                  // padding
  std::int64_t first_column = 0, columns = 0;  // of the whole
  std::size_t offset = 0;                      // elements from the start of the unit
  bool replicated = false;                     // each tensor-parallel rank holds the same

  std::size_t elements() const { return static_cast<std::size_t>(held_rows * columns); }
  std::int64_t whole_columns() const;
  bool is_matrix() const { return shape.size() > 1; }
  bool is_norm() const { return name.find("norm.") != std::string::npos; }
};

struct ParameterUnit {
  PartId part = 0;
  std::vector<ParameterSlice> slices;  // ascending in offset
  std::size_t elements = 0;            // with padding, a multiple of the shards
  bool token_embedding = false;
  bool is_copy = false;  // the last stage's copy of a tied embedding
};

// Where the weights (and biases, if there are any) that an op applies lie.
struct ParameterSpan {
  std::size_t unit = 0;
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
  bool bias_replicated = false;
};

struct ParameterLayout {
  std::vector<ParameterUnit> units;
  std::map<std::string, ParameterSpan> places;  // by name without ".weight"

  // Of a name as ops give it, for a layer.
  const ParameterSpan& find(const std::string& pattern, std::int32_t layer) const;
  // The units of a part.
  std::vector<std::size_t> units_of(PartId part) const;
};

// "layers.*.mlp.up_proj" of layer 3 is "layers.3.mlp.up_proj".
std::string parameter_name(const std::string& pattern, std::int32_t layer);

// The parameters of the ops of a stage. Those that one op applies lie next to each other, weights
// before biases. `shards`: parts that a unit is split into.
ParameterLayout lay_out_parameters(const Program& program, const ModelSpec& model,
                                   std::int64_t stage, std::int64_t tensor_rank,
                                   std::int64_t shards);

}  // namespace shardwright::executor
