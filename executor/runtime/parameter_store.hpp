// What a rank holds from step to step: weights, their gradients, and the optimizer's moments of the
// part that it updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/kernels/kernels.hpp"
#include "executor/runtime/parameter_layout.hpp"

namespace shardwright::executor {

// Elements of a unit.
struct ElementRange {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
};

// The part of ranges that both have; empty where they do not meet.
ElementRange overlap(ElementRange a, ElementRange b);

// How ZeRO splits what a rank updates: part `index` of `count`.
struct ShardPlace {
  std::size_t count = 1, index = 0;
};

class ParameterStore {
 public:
  // Gradients and moments are 0, weights unspecified.
  ParameterStore(ParameterLayout layout, Kernels& kernels, ShardPlace shard);

  const ParameterLayout& layout() const { return layout_; }
  ShardPlace shard() const { return shard_; }
  // What this rank updates of a unit.
  ElementRange own(std::size_t unit) const;

  void* weights(std::size_t unit, std::size_t element = 0) const;
  void* gradients(std::size_t unit, std::size_t element = 0) const;
  // Moments of an element that this rank updates.
  void* first_moments(std::size_t unit, std::size_t element) const;
  void* second_moments(std::size_t unit, std::size_t element) const;

  void zero_gradients(Queue queue);
  std::size_t bytes() const { return bytes_; }

 private:
  struct UnitMemory {
    std::shared_ptr<void> weights, gradients, first_moments, second_moments;
  };

  void* at(const std::shared_ptr<void>& memory, std::size_t element) const;
  std::shared_ptr<void> allocate_zeros(std::size_t elements);

  ParameterLayout layout_;
  Kernels& kernels_;
  ShardPlace shard_;
  std::vector<UnitMemory> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace shardwright::executor
