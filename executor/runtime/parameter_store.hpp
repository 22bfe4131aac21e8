// The parameters of a rank: applied weights, their gradients, and the optimizer's weights and
// moments for the part that the rank updates. The optimizer's weights are separate arrays if the
// applied weights have fewer bits. With FSDP the rank also holds weights and gradients of that part
// alone; the ops of a step gather copies of the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/kernels/kernels.hpp"
#include "executor/runtime/parameter_layout.hpp"

namespace shardwright::executor {

// A range of elements of a unit.
struct ElementRange {
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
};

// Returns the intersection, which may be empty.
ElementRange overlap(ElementRange a, ElementRange b);

// The shard of a unit that a rank updates: part `index` of `count`.
struct ShardPlace {
  std::size_t count = 1, index = 0;
  // The rank's number among those that update the same shard.
  std::size_t replica = 0;
};

struct ShardPlaces {
  ShardPlace dense, experts;
  // FSDP: the rank holds no more than its shards.
  bool holds_shards_alone = false;
};

// The arrays of an optimizer.
enum class OptimizerArray : std::uint8_t { Weights, FirstMoments, SecondMoments };

class ParameterStore {
 public:
  // Allocates zeros.
  ParameterStore(ParameterLayout layout, Kernels& kernels, const ShardPlaces& shards);

  const ParameterLayout& layout() const { return layout_; }
  const ShardPlaces& shards() const { return shards_; }
  const ShardPlace& shard_of(std::size_t unit) const;
  // Returns the part of a unit that this rank updates.
  ElementRange own(std::size_t unit) const;
  // Returns the part of a unit whose weights and gradients this rank holds.
  ElementRange held(std::size_t unit) const;

  // The element must be one that this rank holds.
  void* weights(std::size_t unit, std::size_t element = 0) const;
  void* gradients(std::size_t unit, std::size_t element = 0) const;
  // The element must be one that this rank updates.
  void* updated(OptimizerArray array, std::size_t unit, std::size_t element) const;
  // True if the optimizer's weights are the applied ones.
  bool applies_updated() const;
  // Bytes of an applied weight.
  std::size_t applied_bytes() const { return bytes_of(kernels_.element()); }

  // The following copy between host and device, which must be idle. Sets elements of a unit from
  // `first` on, as far as this rank holds them, in the applied weights and in the optimizer's.
  void set_weights(std::size_t unit, std::size_t first, std::span<const float> values);
  // Reads a range that this rank updates.
  void read(OptimizerArray which, std::size_t unit, ElementRange range,
            std::vector<float>& values) const;
  void write(OptimizerArray which, std::size_t unit, std::size_t first,
             std::span<const float> values);

  // Applies the optimizer's weights of the part of a unit that this rank updates.
  void apply_updated(std::size_t unit);

  // AdamW's step on a range of a slice that this rank updates. `squares`: the sum of squares of all
  // gradients.
  void apply_adam(std::size_t unit, const ParameterSlice& slice, ElementRange range, AdamStep step,
                  const double* squares, Queue queue);
  void zero_gradients(Queue queue);
  std::size_t bytes() const { return bytes_; }

 private:
  struct UnitMemory {
    std::shared_ptr<void> weights, gradients, updated_weights, first_moments, second_moments;
  };

  std::shared_ptr<void> allocate_zeros(std::size_t elements, Element format);
  void set_applied(std::size_t unit, std::size_t first, std::span<const float> values);

  ParameterLayout layout_;
  Kernels& kernels_;
  ShardPlaces shards_;
  std::vector<UnitMemory> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace shardwright::executor
