// Writes blocks down: ops with what they read and write; who waits for whom and when a tensor is
// freed follows.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/program/program.hpp"

namespace shardwright {

// The tensors of a program, each known by its name.
class TensorTable {
 public:
  // The tensor of this name; added at the first call, the same at each later one.
  TensorId add(std::string_view name, MemoryCategory category, Bytes bytes,
               Lifetime lifetime = Lifetime::Scoped, bool per_microbatch = true);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }

 private:
  std::vector<TensorSpec> tensors_;
};

// Fills Op::waits: an op that reads what an earlier op of the block wrote on another stream waits
// for it; so does one that writes over what an earlier op reads there (the buffers of a ring).
void derive_waits(std::vector<Op>& ops);

// Fills Op::frees of blocks that run in the given order for one layer and microbatch: after the
// last read of each value. A value that is written again before its next read dies between the two.
//   passed_on: written here for another layer or stage, which frees them
//   passed_in: written before these blocks; freed after their last read here
void derive_frees(std::span<Block* const> in_order, const std::vector<TensorSpec>& tensors,
                  std::span<const TensorRef> passed_on, std::span<const TensorRef> passed_in);

}  // namespace shardwright
