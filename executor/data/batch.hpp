// The tokens that a data-parallel rank works on in one step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwright::executor {

struct Batch {
  std::int64_t tokens_each = 0;
  // All microbatches, one after another; each target is the token that follows its token.
  std::vector<std::int32_t> tokens, targets;

  std::span<const std::int32_t> tokens_of(std::int32_t microbatch) const {
    return part(tokens, microbatch);
  }
  std::span<const std::int32_t> targets_of(std::int32_t microbatch) const {
    return part(targets, microbatch);
  }

 private:
  std::span<const std::int32_t> part(const std::vector<std::int32_t>& all,
                                     std::int32_t microbatch) const {
    const auto each = static_cast<std::size_t>(tokens_each);
    return {all.data() + static_cast<std::size_t>(microbatch) * each, each};
  }
};

}  // namespace shardwright::executor
