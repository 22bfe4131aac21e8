// The layout of a rank's parameters: which part of each it holds, and its place in memory.
//
// Parameters are grouped into units: one for each layer, for its experts, for the head, and for the
// token embedding. ZeRO splits units: rank r of the shard group owns the r-th of `shards` equal
// parts. The token embedding is a unit of its own, so that the first and last stage split a tied
// one alike; experts are, because other ranks hold the same ones than hold the same rest of the
// layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright::executor {

// A rank's part of one parameter, as a matrix; vectors are one column wide.
struct ParameterSlice {
  // A name of parameter_tensors: "layers.3.attention.q_proj.weight".
  std::string name;
  std::vector<std::int64_t> shape;
  // Rows of the whole parameter; the rows from `rows` up to `held_rows` are padding.
  std::int64_t first_row = 0, rows = 0, held_rows = 0;
  // Columns of the whole parameter.
  std::int64_t first_column = 0, columns = 0;
  std::size_t offset = 0;
  // Every tensor-parallel rank holds the same.
  bool replicated = false;
  // The tensor-parallel ranks that hold the same rows, and this rank's number among them: all
  // ranks of a replicated parameter, some of key/value heads where there are fewer of these.
  std::int64_t holders = 1, holder = 0;

  std::size_t elements() const { return static_cast<std::size_t>(held_rows * columns); }
  std::int64_t whole_columns() const;
  bool is_matrix() const { return shape.size() > 1; }
  bool is_norm() const { return name.find("norm.") != std::string::npos; }
  // With sequence parallelism, a rank applies it to its own part of the tokens alone.
  bool sees_own_tokens() const;
  // A rank applies it to its own heads alone, and others apply the same.
  bool sees_own_heads() const;
};

struct ParameterUnit {
  PartId part = 0;
  std::vector<ParameterSlice> slices{};
  // Number of elements with padding, a multiple of the number of shards.
  std::size_t elements = 0;
  // Elements of the part's units before this one.
  std::size_t offset_in_part = 0;
  bool token_embedding = false;
  // The experts that expert parallelism splits.
  bool experts = false;
  // The last stage's copy of a tied embedding, or with DualPipe the copies that stages of the
  // second half of the pipeline hold.
  bool is_copy = false;
};

// The place of the weights (and biases, if any) that an op applies.
struct ParameterSpan {
  std::size_t unit = 0;
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
  // All tensor-parallel ranks hold the bias, and their outputs are added up.
  bool bias_of_sum = false;
};

struct ParameterLayout {
  std::vector<ParameterUnit> units;
  // Keyed by name without ".weight".
  std::map<std::string, ParameterSpan> places;

  // Returns the place of a layer's parameter by the name that ops use.
  const ParameterSpan& find(const std::string& pattern, std::int32_t layer) const;
  std::vector<std::size_t> units_of(PartId part) const;
  // Elements of all units of the part.
  std::size_t elements_of(PartId part) const;
  // Calls visit(unit, slice) for all slices.
  template <class Visit>
  void for_each_slice(Visit visit) const {
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      for (const ParameterSlice& slice : units[unit].slices) visit(unit, slice);
    }
  }
};

// Returns "layers.3.mlp.up_proj" for "layers.*.mlp.up_proj" and layer 3.
std::string parameter_name(const std::string& pattern, std::int32_t layer);

// The place of a rank that its parameters follow from.
struct LayoutPlace {
  std::int64_t stage = 0, tensor_rank = 0, expert_rank = 0, expert_tensor_rank = 0;
  // Parts of a unit, and of the units of experts.
  std::size_t shards = 1, expert_shards = 1;
};

// Lays out the parameters of a stage's ops. Those of one op are adjacent, weights before biases.
ParameterLayout lay_out_parameters(const Program& program, const ModelSpec& model,
                                   const LayoutPlace& place);

}  // namespace shardwright::executor
