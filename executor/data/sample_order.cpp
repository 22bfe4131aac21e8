#include "executor/data/sample_order.hpp"

#include "core/base/error.hpp"
#include "executor/data/counter_random.hpp"

namespace shardwright::executor {

SampleOrder::SampleOrder(std::uint64_t seed, std::uint64_t samples)
    : seed_(seed), samples_(samples) {
  SHARDWRIGHT_CHECK(samples > 0, "an order of no samples");
  while ((std::uint64_t{1} << (2 * half_bits_)) < samples) ++half_bits_;
}

std::uint64_t SampleOrder::sample(std::uint64_t number) const {
  const std::uint64_t key = random_bits(seed_, number / samples_);
  // The network permutes 2^(2 half_bits) values; values beyond the samples are permuted again until
  // they are in range (cycle walking: Black, Rogaway: Ciphers with arbitrary finite domains, 2002).
  std::uint64_t value = number % samples_;
  do {
    value = permute(key, value);
  } while (value >= samples_);
  return value;
}

// A Feistel network is a permutation for any round function.
std::uint64_t SampleOrder::permute(std::uint64_t key, std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t next = left ^ (random_bits(key + round, right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace shardwright::executor
