#include "executor/checkpoint/parameter_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/checkpoint/stored_names.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kFirstMoment = ".exp_avg";
constexpr const char* kSecondMoment = ".exp_avg_sq";

// A place of a parameter's rows in a tensor of the file, and that tensor's number of elements.
struct Stored {
  StoredPlace place;
  std::int64_t tensor_elements = 0;
};

constexpr std::array kArrays = {OptimizerArray::Weights, OptimizerArray::FirstMoments,
                                OptimizerArray::SecondMoments};

// The files of a checkpoint that hold tensors.
struct StateFiles {
  SafetensorsFile weights, moments;

  StateFiles(const std::filesystem::path& folder, SafetensorsFile::Access access)
      : weights(folder / kModelFile, access), moments(folder / kOptimizerFile, access) {}

  // Returns the tensors of the place, in the order of kArrays.
  std::array<std::span<float>, kArrays.size()> tensors(const Stored& at) {
    const std::string& name = at.place.tensor;
    return {weights.tensor(name, at.tensor_elements),
            moments.tensor(name + kFirstMoment, at.tensor_elements),
            moments.tensor(name + kSecondMoment, at.tensor_elements)};
  }
};

// The places of each parameter, by its name.
std::map<std::string, std::vector<Stored>> stored_parameters(const ModelSpec& model) {
  std::map<std::string, std::int64_t> sizes;
  for (const StoredTensor& tensor : stored_tensors(model)) sizes[tensor.name] = tensor.elements();
  std::map<std::string, std::vector<Stored>> found;
  for (const ParameterTensor& parameter : parameter_tensors(model)) {
    for (StoredPlace& place : stored_places(model, parameter)) {
      const std::int64_t elements = sizes.at(place.tensor);
      found[parameter.name].push_back({std::move(place), elements});
    }
  }
  return found;
}

// The elements of a slice whose rows lie at the place. Padding follows behind the last row.
ElementRange elements_at(const ParameterSlice& slice, const StoredPlace& place) {
  const auto start_of = [&slice](std::int64_t row) {
    const std::int64_t within = std::clamp<std::int64_t>(row - slice.first_row, 0, slice.rows);
    return slice.offset + static_cast<std::size_t>(within * slice.columns);
  };
  return {start_of(place.first_row), start_of(place.first_row + place.rows)};
}

// Calls visit(element of the unit, index in the tensor) for the elements of a slice within a range
// of its unit that lie at the place.
template <class Visit>
void for_each_element(const ParameterSlice& slice, const StoredPlace& place, ElementRange range,
                      Visit visit) {
  const ElementRange within = overlap(range, elements_at(slice, place));
  for (std::size_t element = within.begin; element < within.end; ++element) {
    const auto index = static_cast<std::int64_t>(element - slice.offset);
    const std::int64_t row = index / slice.columns, column = index % slice.columns;
    visit(element, static_cast<std::size_t>(
                       place.offset + (slice.first_row + row - place.first_row) * place.row_stride +
                       (slice.first_column + column) * place.column_stride));
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

std::uintmax_t checkpoint_bytes(const ModelSpec& model) {
  std::uintmax_t bytes = 0;
  for (const StoredTensor& tensor : stored_tensors(model))
    bytes += static_cast<std::uintmax_t>(tensor.elements()) * kArrays.size() * sizeof(float);
  return bytes;
}

void copy_parameters(const ParameterStore& parameters, std::vector<ParameterPiece>& pieces) {
  std::size_t used = 0;
  parameters.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    const ParameterUnit& of = parameters.layout().units[unit];
    // Of the ranks that update the same, the first one writes it.
    if (parameters.shard_of(unit).replica != 0 || of.is_copy || slice.holder != 0) return;
    if (used == pieces.size()) pieces.emplace_back();
    ParameterPiece& piece = pieces[used++];
    piece.slice = slice;
    piece.range = overlap(parameters.own(unit), {slice.offset, slice.offset + slice.elements()});
    for (std::size_t array = 0; array < kArrays.size(); ++array)
      parameters.read(kArrays[array], unit, piece.range, piece.values[array]);
  });
}

void write_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                      const std::vector<ParameterPiece>& pieces) {
  const auto stored = stored_parameters(model);
  StateFiles files(folder, SafetensorsFile::Access::Write);
  for (const ParameterPiece& piece : pieces) {
    for (const Stored& at : stored.at(piece.slice.name)) {
      const auto tensors = files.tensors(at);
      for_each_element(piece.slice, at.place, piece.range,
                       [&](std::size_t element, std::size_t to) {
                         for (std::size_t array = 0; array < kArrays.size(); ++array)
                           tensors[array][to] = piece.values[array][element - piece.range.begin];
                       });
    }
  }
  files.weights.sync();
  files.moments.sync();
}

void read_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                     ParameterStore& parameters) {
  const auto stored = stored_parameters(model);
  StateFiles files(folder, SafetensorsFile::Access::Read);
  parameters.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    const ElementRange whole{slice.offset, slice.offset + slice.elements()};
    for (std::size_t array = 0; array < kArrays.size(); ++array) {
      const bool is_weights = kArrays[array] == OptimizerArray::Weights;
      const ElementRange range = is_weights ? whole : overlap(parameters.own(unit), whole);
      std::vector<float> values(range.size());
      for (const Stored& at : stored.at(slice.name)) {
        const auto tensors = files.tensors(at);
        for_each_element(slice, at.place, range, [&](std::size_t element, std::size_t from) {
          values[element - range.begin] = tensors[array][from];
        });
      }
      if (is_weights) {
        parameters.set_weights(unit, range.begin, values);
      } else if (!values.empty()) {
        parameters.write(kArrays[array], unit, range.begin, values);
      }
    }
  });
}

void read_weights(const WeightFiles& files, const ModelSpec& model, ParameterStore& parameters) {
  const auto stored = stored_parameters(model);
  ProblemList problems("--init-from");
  parameters.layout().for_each_slice([&](std::size_t unit, const ParameterSlice& slice) {
    const ElementRange whole{slice.offset, slice.offset + slice.elements()};
    std::vector<float> values(whole.size());
    for (const Stored& at : stored.at(slice.name)) {
      const StoredPlace& where = at.place;
      // Other ranks may hold all that lies there.
      if (elements_at(slice, where).size() == 0) continue;
      const SafetensorsFile::View tensor = files.tensor(where.tensor);
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
    }
    parameters.set_weights(unit, whole.begin, values);
  });
  problems.throw_if_any();
}

}  // namespace shardwright::executor
