// Cuts a corpus into samples and hands a data-parallel rank its part of each step's batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "executor/data/batch.hpp"
#include "executor/data/sample_order.hpp"
#include "executor/data/token_file.hpp"

namespace shardwright::executor {

// Sample i is the tokens from i * seq_len on, and the one token after them. The samples of a step
// are the same under every plan with its batch and sequence; which rank has which is up to the
// plan.
class BatchLoader {
 public:
  // Throws InputError if the corpus is shorter than one sample. The file outlives the loader.
  BatchLoader(const TokenFile& file, const Plan& plan, std::int64_t vocabulary, std::uint64_t seed);

  // The batch that begins with the run's sample of this number. Throws InputError if a token is not
  // in the vocabulary, with its position in the file.
  Batch load(std::uint64_t first_sample, std::int64_t data_rank) const;

  // Whether the samples of so many steps hold tokens of the vocabulary alone: those of one epoch at
  // most, and as many as fit into `most_tokens`, which bounds how long it takes. Throws as `load`
  // does.
  void check(std::int64_t steps, std::uint64_t most_tokens = kMostChecked) const;

  std::uint64_t samples() const { return samples_; }

  // A second at most, where the file is in memory.
  static constexpr std::uint64_t kMostChecked = std::uint64_t{1} << 25U;

 private:
  // Tokens of a sample, and the one after them.
  void read(std::uint64_t number, std::vector<std::int32_t>& sample) const;

  const TokenFile& file_;
  const Plan& plan_;
  std::int64_t vocabulary_;
  std::uint64_t samples_;
  SampleOrder order_;
};

}  // namespace shardwright::executor
