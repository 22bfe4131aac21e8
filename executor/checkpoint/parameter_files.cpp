#include "executor/checkpoint/parameter_files.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/checkpoint/stored_names.hpp"
#include "executor/checkpoint/weight_files.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kFirstMoment = ".exp_avg";
constexpr const char* kSecondMoment = ".exp_avg_sq";

// A parameter's place in a tensor of the file, and that tensor's number of elements.
struct Stored {
  StoredPlace place;
  std::int64_t tensor_elements = 0;
};

std::map<std::string, Stored> stored_parameters(const ModelSpec& model) {
  std::map<std::string, std::int64_t> sizes;
  for (const StoredTensor& tensor : stored_tensors(model)) sizes[tensor.name] = tensor.elements();
  std::map<std::string, Stored> found;
  for (const ParameterTensor& parameter : parameter_tensors(model)) {
    StoredPlace place = stored_place(model, parameter);
    const std::int64_t elements = sizes.at(place.tensor);
    found[parameter.name] = {std::move(place), elements};
  }
  return found;
}

// Calls visit(element of the unit, index in the tensor) for the elements of a slice within a range
// of its unit, except padding.
template <class Visit>
void for_each_element(const ParameterSlice& slice, const StoredPlace& place, ElementRange range,
                      Visit visit) {
  const ElementRange within = overlap(range, {slice.offset, slice.offset + slice.elements()});
  for (std::size_t element = within.begin; element < within.end; ++element) {
    const auto index = static_cast<std::int64_t>(element - slice.offset);
    const std::int64_t row = index / slice.columns, column = index % slice.columns;
    if (row >= slice.rows) continue;
    visit(element,
          static_cast<std::size_t>(place.offset + (slice.first_row + row) * place.row_stride +
                                   (slice.first_column + column) * place.column_stride));
  }
}

template <class Visit>
void for_each_slice(const ParameterStore& parameters, Visit visit) {
  const std::vector<ParameterUnit>& units = parameters.layout().units;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const ParameterSlice& slice : units[unit].slices) visit(unit, units[unit], slice);
  }
}

}  // namespace

void create_parameter_files(const std::filesystem::path& folder, const ModelSpec& model) {
  const std::vector<StoredTensor> weights = stored_tensors(model);
  std::vector<StoredTensor> moments;
  for (const StoredTensor& tensor : weights) {
    moments.push_back({tensor.name + kFirstMoment, tensor.shape});
    moments.push_back({tensor.name + kSecondMoment, tensor.shape});
  }
  create_safetensors(folder / kModelFile, weights);
  create_safetensors(folder / kOptimizerFile, moments);
}

void copy_parameters(const ParameterStore& parameters, const RankCoordinates& place,
                     std::vector<ParameterPiece>& pieces) {
  // Without ZeRO all data-parallel ranks hold the same, and the first one writes it.
  const bool replica = parameters.shard().count == 1 && place[Axis::Data] != 0;
  std::size_t used = 0;
  for_each_slice(parameters, [&](std::size_t unit, const ParameterUnit& of,
                                 const ParameterSlice& slice) {
    if (replica || of.is_copy || (slice.replicated && place[Axis::Tensor] != 0)) return;
    if (used == pieces.size()) pieces.emplace_back();
    ParameterPiece& piece = pieces[used++];
    piece.slice = slice;
    piece.range = overlap(parameters.own(unit), {slice.offset, slice.offset + slice.elements()});
    parameters.read(OptimizerArray::Weights, unit, piece.range, piece.weights);
    parameters.read(OptimizerArray::FirstMoments, unit, piece.range, piece.first_moments);
    parameters.read(OptimizerArray::SecondMoments, unit, piece.range, piece.second_moments);
  });
}

void write_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                      const std::vector<ParameterPiece>& pieces) {
  using Access = SafetensorsFile::Access;
  const std::map<std::string, Stored> stored = stored_parameters(model);
  SafetensorsFile weights(folder / kModelFile, Access::Write);
  SafetensorsFile moments(folder / kOptimizerFile, Access::Write);
  for (const ParameterPiece& piece : pieces) {
    const auto& [where, elements] = stored.at(piece.slice.name);
    const auto weight = weights.tensor(where.tensor, elements);
    const auto first = moments.tensor(where.tensor + kFirstMoment, elements);
    const auto second = moments.tensor(where.tensor + kSecondMoment, elements);
    for_each_element(piece.slice, where, piece.range, [&](std::size_t element, std::size_t to) {
      weight[to] = piece.weights[element - piece.range.begin];
      first[to] = piece.first_moments[element - piece.range.begin];
      second[to] = piece.second_moments[element - piece.range.begin];
    });
  }
  weights.sync();
  moments.sync();
}

void read_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                     ParameterStore& parameters) {
  using Access = SafetensorsFile::Access;
  const std::map<std::string, Stored> stored = stored_parameters(model);
  SafetensorsFile weights(folder / kModelFile, Access::Read);
  SafetensorsFile moments(folder / kOptimizerFile, Access::Read);
  for_each_slice(
      parameters, [&](std::size_t unit, const ParameterUnit& /*of*/, const ParameterSlice& slice) {
        const auto& [where, elements] = stored.at(slice.name);
        const auto weight = weights.tensor(where.tensor, elements);
        const auto first = moments.tensor(where.tensor + kFirstMoment, elements);
        const auto second = moments.tensor(where.tensor + kSecondMoment, elements);
        const ElementRange whole{slice.offset, slice.offset + slice.elements()};
        const ElementRange own = overlap(parameters.own(unit), whole);
        std::vector<float> weight_values(whole.size()), first_values(own.size()),
            second_values(own.size());
        for_each_element(slice, where, whole, [&](std::size_t element, std::size_t from) {
          weight_values[element - whole.begin] = weight[from];
        });
        for_each_element(slice, where, own, [&](std::size_t element, std::size_t from) {
          first_values[element - own.begin] = first[from];
          second_values[element - own.begin] = second[from];
        });
        parameters.set_weights(unit, whole.begin, weight_values);
        if (own.size() == 0) return;
        parameters.write(OptimizerArray::FirstMoments, unit, own.begin, first_values);
        parameters.write(OptimizerArray::SecondMoments, unit, own.begin, second_values);
      });
}

void read_weights(const WeightFiles& files, const ModelSpec& model, ParameterStore& parameters) {
  const std::map<std::string, Stored> stored = stored_parameters(model);
  ProblemList problems("--init-from");
  for_each_slice(
      parameters, [&](std::size_t unit, const ParameterUnit& /*of*/, const ParameterSlice& slice) {
        const StoredPlace& where = stored.at(slice.name).place;
        const SafetensorsFile::View tensor = files.tensor(where.tensor);
        const ElementRange whole{slice.offset, slice.offset + slice.elements()};
        std::vector<float> values(whole.size());
        // Index in the tensor of the first value that is not finite.
        std::optional<std::size_t> bad;
        for_each_element(slice, where, whole, [&](std::size_t element, std::size_t from) {
          const float value = tensor.at(from);
          if (!std::isfinite(value) && !bad) bad = from;
          values[element - whole.begin] = value;
        });
        if (bad)
          problems.add(where.tensor, fmt::format("{} at element {}", tensor.at(*bad), *bad),
                       "finite numbers");
        parameters.set_weights(unit, whole.begin, values);
      });
  problems.throw_if_any();
}

}  // namespace shardwright::executor
