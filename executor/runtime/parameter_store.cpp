#include "executor/runtime/parameter_store.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "executor/kernels/bfloat16.hpp"

namespace shardwright::executor {
ElementRange overlap(ElementRange a, ElementRange b) {
  const std::size_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

ParameterStore::ParameterStore(ParameterLayout layout, Kernels& kernels, const ShardPlaces& shards)
    : layout_(std::move(layout)), kernels_(kernels), shards_(shards) {
  const Element applied = kernels_.element(), state = kernels_.state_element();
  for (std::size_t unit = 0; unit < layout_.units.size(); ++unit) {
    const std::size_t elements = held(unit).size(), updated = own(unit).size();
    UnitMemory memory;
    memory.weights = allocate_zeros(elements, applied);
    memory.gradients = allocate_zeros(elements, state);
    if (!applies_updated()) memory.updated_weights = allocate_zeros(updated, state);
    memory.first_moments = allocate_zeros(updated, state);
    memory.second_moments = allocate_zeros(updated, state);
    memory_.push_back(std::move(memory));
  }
}

std::shared_ptr<void> ParameterStore::allocate_zeros(std::size_t elements, Element format) {
  const std::size_t bytes = elements * bytes_of(format);
  std::shared_ptr<void> memory = kernels_.allocate(bytes);
  kernels_.zero(memory.get(), bytes, nullptr);
  bytes_ += bytes;
  return memory;
}

const ShardPlace& ParameterStore::shard_of(std::size_t unit) const {
  return layout_.units[unit].experts ? shards_.experts : shards_.dense;
}

ElementRange ParameterStore::own(std::size_t unit) const {
  const ShardPlace& shard = shard_of(unit);
  const std::size_t each = layout_.units[unit].elements / shard.count;
  return {each * shard.index, each * (shard.index + 1)};
}

ElementRange ParameterStore::held(std::size_t unit) const {
  return shards_.holds_shards_alone ? own(unit) : ElementRange{0, layout_.units[unit].elements};
}

bool ParameterStore::applies_updated() const {
  return kernels_.element() == kernels_.state_element();
}

void* ParameterStore::weights(std::size_t unit, std::size_t element) const {
  return element_at(memory_[unit].weights.get(), element - held(unit).begin, kernels_.element());
}

void* ParameterStore::gradients(std::size_t unit, std::size_t element) const {
  return element_at(memory_[unit].gradients.get(), element - held(unit).begin,
                    kernels_.state_element());
}

void* ParameterStore::updated(OptimizerArray array, std::size_t unit, std::size_t element) const {
  const UnitMemory& memory = memory_[unit];
  const Element state = kernels_.state_element();
  const std::size_t place = element - own(unit).begin;
  switch (array) {
    case OptimizerArray::FirstMoments:
      return element_at(memory.first_moments.get(), place, state);
    case OptimizerArray::SecondMoments:
      return element_at(memory.second_moments.get(), place, state);
    case OptimizerArray::Weights:
      break;
  }
  return applies_updated() ? weights(unit, element)
                           : element_at(memory.updated_weights.get(), place, state);
}

void ParameterStore::set_weights(std::size_t unit, std::size_t first,
                                 std::span<const float> values) {
  const auto part = [&](ElementRange range) {
    return values.subspan(range.begin - first, range.size());
  };
  const ElementRange given{first, first + values.size()};
  const ElementRange updated = overlap(own(unit), given), applied = overlap(held(unit), given);
  if (updated.size() > 0) write(OptimizerArray::Weights, unit, updated.begin, part(updated));
  if (applied.size() > 0) set_applied(unit, applied.begin, part(applied));
}

void ParameterStore::set_applied(std::size_t unit, std::size_t first,
                                 std::span<const float> values) {
  if (applies_updated()) {
    kernels_.upload(weights(unit, first), values.data(), values.size_bytes());
    return;
  }
  SHARDWRIGHT_CHECK(kernels_.element() == Element::Bfloat16, "weights are applied in bf16");
  std::vector<std::uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), to_bfloat16);
  kernels_.upload(weights(unit, first), rounded.data(), rounded.size() * sizeof(std::uint16_t));
}

void ParameterStore::read(OptimizerArray which, std::size_t unit, ElementRange range,
                          std::vector<float>& values) const {
  SHARDWRIGHT_CHECK(kernels_.state_element() == Element::Float32, "states are fp32");
  values.resize(range.size());
  if (values.empty()) return;
  kernels_.download(values.data(), updated(which, unit, range.begin), range.size() * sizeof(float));
}

void ParameterStore::write(OptimizerArray which, std::size_t unit, std::size_t first,
                           std::span<const float> values) {
  SHARDWRIGHT_CHECK(kernels_.state_element() == Element::Float32, "states are fp32");
  kernels_.upload(updated(which, unit, first), values.data(), values.size_bytes());
}

void ParameterStore::apply_updated(std::size_t unit) {
  if (applies_updated()) return;
  std::vector<float> values;
  read(OptimizerArray::Weights, unit, own(unit), values);
  set_applied(unit, own(unit).begin, values);
}

void ParameterStore::apply_adam(std::size_t unit, const ParameterSlice& slice, ElementRange range,
                                AdamStep step, const double* squares, Queue queue) {
  // Biases and norms do not decay.
  if (!slice.is_matrix()) step.weight_decay = 0.0F;
  AdamArrays arrays;
  arrays.gradient = gradients(unit, range.begin);
  arrays.weight = updated(OptimizerArray::Weights, unit, range.begin);
  arrays.first_moment = updated(OptimizerArray::FirstMoments, unit, range.begin);
  arrays.second_moment = updated(OptimizerArray::SecondMoments, unit, range.begin);
  if (!applies_updated()) arrays.applied = weights(unit, range.begin);
  kernels_.adamw(static_cast<std::int64_t>(range.size()), step, arrays, squares, queue);
}

void ParameterStore::zero_gradients(Queue queue) {
  for (std::size_t unit = 0; unit < memory_.size(); ++unit) {
    kernels_.zero(memory_[unit].gradients.get(),
                  held(unit).size() * bytes_of(kernels_.state_element()), queue);
  }
}

}  // namespace shardwright::executor
