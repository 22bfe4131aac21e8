// What a rank holds from step to step: the weights that it applies, their gradients, and, of the
// part that it updates, the optimizer's weights and moments. Where the weights that are applied
// have fewer bits than the optimizer's, the latter are arrays of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

// The arrays in which an optimizer keeps what it updates.
enum class OptimizerArray : std::uint8_t { Weights, FirstMoments, SecondMoments };

class ParameterStore {
 public:
  // All is 0.
  ParameterStore(ParameterLayout layout, Kernels& kernels, ShardPlace shard);

  const ParameterLayout& layout() const { return layout_; }
  ShardPlace shard() const { return shard_; }
  // What this rank updates of a unit.
  ElementRange own(std::size_t unit) const;

  void* weights(std::size_t unit, std::size_t element = 0) const;
  void* gradients(std::size_t unit, std::size_t element = 0) const;
  // Of an element that this rank updates.
  void* updated_weights(std::size_t unit, std::size_t element) const;
  void* first_moments(std::size_t unit, std::size_t element) const;
  void* second_moments(std::size_t unit, std::size_t element) const;
  // The optimizer's weights are the ones that are applied.
  bool applies_updated() const;

  // Between host and device, which must be idle. Elements of a unit from `first` on, as they are
  // applied and, as far as this rank updates them, in the optimizer's weights.
  void set_weights(std::size_t unit, std::size_t first, std::span<const float> values);
  // A range that this rank updates; `values` gets its elements.
  void read(OptimizerArray which, std::size_t unit, ElementRange range,
            std::vector<float>& values) const;
  void write(OptimizerArray which, std::size_t unit, std::size_t first,
             std::span<const float> values);

  void zero_gradients(Queue queue);
  std::size_t bytes() const { return bytes_; }

 private:
  struct UnitMemory {
    std::shared_ptr<void> weights, gradients, updated_weights, first_moments, second_moments;
  };

  void* array(OptimizerArray array, std::size_t unit, std::size_t element) const;
  std::shared_ptr<void> allocate_zeros(std::size_t elements, Element format);

  ParameterLayout layout_;
  Kernels& kernels_;
  ShardPlace shard_;
  std::vector<UnitMemory> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace shardwright::executor
