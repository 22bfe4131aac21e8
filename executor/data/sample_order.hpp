// The order in which a run meets its samples: each once an epoch, shuffled anew for each, as a
// function of seed and number, so that a run resumes at any sample without a record of those
// before.
#pragma once

#include <cstdint>

namespace shardwright::executor {

class SampleOrder {
 public:
  // At least one sample.
  SampleOrder(std::uint64_t seed, std::uint64_t samples);

  // The sample (0 .. samples - 1) that the run meets as its `number`-th.
  std::uint64_t sample(std::uint64_t number) const;

 private:
  std::uint64_t permute(std::uint64_t key, std::uint64_t value) const;

  std::uint64_t seed_;
  std::uint64_t samples_;
  unsigned half_bits_ = 1;
};

}  // namespace shardwright::executor
