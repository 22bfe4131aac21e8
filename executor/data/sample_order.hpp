// The order of samples: each once per epoch, shuffled for each epoch. It is a function of seed and
// number, so that a run can resume at any sample.
#pragma once

#include <cstdint>

namespace shardwright::executor {

class SampleOrder {
 public:
  // Requires at least one sample.
  SampleOrder(std::uint64_t seed, std::uint64_t samples);

  // Returns the sample (0 .. samples - 1) that the run trains on as its `number`-th.
  std::uint64_t sample(std::uint64_t number) const;

 private:
  std::uint64_t permute(std::uint64_t key, std::uint64_t value) const;

  std::uint64_t seed_;
  std::uint64_t samples_;
  unsigned half_bits_ = 1;
};

}  // namespace shardwright::executor
