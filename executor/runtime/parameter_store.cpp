#include "executor/runtime/parameter_store.hpp"

#include <algorithm>
#include <utility>

namespace shardwright::executor {

ElementRange overlap(ElementRange a, ElementRange b) {
  const std::size_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

ParameterStore::ParameterStore(ParameterLayout layout, Kernels& kernels, ShardPlace shard)
    : layout_(std::move(layout)), kernels_(kernels), shard_(shard) {
  for (std::size_t unit = 0; unit < layout_.units.size(); ++unit) {
    const std::size_t elements = layout_.units[unit].elements;
    memory_.push_back({allocate_zeros(elements), allocate_zeros(elements),
                       allocate_zeros(own(unit).size()), allocate_zeros(own(unit).size())});
  }
}

std::shared_ptr<void> ParameterStore::allocate_zeros(std::size_t elements) {
  const std::size_t bytes = elements * kernels_.element_bytes();
  std::shared_ptr<void> memory = kernels_.allocate(bytes);
  kernels_.zero(memory.get(), bytes, nullptr);
  bytes_ += bytes;
  return memory;
}

ElementRange ParameterStore::own(std::size_t unit) const {
  const std::size_t each = layout_.units[unit].elements / shard_.count;
  return {each * shard_.index, each * (shard_.index + 1)};
}

void* ParameterStore::at(const std::shared_ptr<void>& memory, std::size_t element) const {
  return static_cast<std::byte*>(memory.get()) + element * kernels_.element_bytes();
}

void* ParameterStore::weights(std::size_t unit, std::size_t element) const {
  return at(memory_[unit].weights, element);
}

void* ParameterStore::gradients(std::size_t unit, std::size_t element) const {
  return at(memory_[unit].gradients, element);
}

void* ParameterStore::first_moments(std::size_t unit, std::size_t element) const {
  return at(memory_[unit].first_moments, element - own(unit).begin);
}

void* ParameterStore::second_moments(std::size_t unit, std::size_t element) const {
  return at(memory_[unit].second_moments, element - own(unit).begin);
}

void ParameterStore::zero_gradients(Queue queue) {
  for (std::size_t unit = 0; unit < memory_.size(); ++unit) {
    kernels_.zero(memory_[unit].gradients.get(),
                  layout_.units[unit].elements * kernels_.element_bytes(), queue);
  }
}

}  // namespace shardwright::executor
