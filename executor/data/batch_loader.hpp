// Splits a corpus into samples and gives each data-parallel rank its part of a step's batch.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "executor/data/token_file.hpp"

namespace shardwright::executor {

// The order of samples: each once per epoch, shuffled for each epoch. It is a function of seed and
// number, so that a run can resume at any sample.
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

// The tokens that a data-parallel rank works on in one step: all microbatches, one after another.
// Each target is the token that follows its token.
struct Batch {
  std::vector<std::int32_t> tokens, targets;
};

// Sample i consists of the tokens from i * seq_len on and the one token after them. The samples of
// a step are the same under every plan with the same batch size and sequence length. The last
// samples may be held out from training, for validation.
class BatchLoader {
 public:
  // `held_out` is their share of all samples, from 0 up to below 1. Throws InputError if the corpus
  // is shorter than one sample, or if samples are held out and they, or the rest, are less than
  // one. The file must outlive the loader.
  BatchLoader(const TokenFile& file, const Plan& plan, std::int64_t vocabulary, std::uint64_t seed,
              double held_out = 0.0);

  // Loads the batch that begins with this sample of the run, of each sequence the context-parallel
  // rank's part. Throws InputError with the position of a token that is not in the vocabulary.
  Batch load(std::uint64_t first_sample, std::int64_t data_rank,
             std::int64_t context_rank = 0) const;
  // The batches of the plan's size among the samples held out, and one of them. Throws as `load`
  // does.
  std::uint64_t held_out_batches() const;
  Batch load_held_out(std::uint64_t batch, std::int64_t data_rank,
                      std::int64_t context_rank = 0) const;

  // The tokens that training may see.
  std::uint64_t training_tokens() const;

  // Checks that the samples of this many steps contain only tokens of the vocabulary. It reads at
  // most one epoch and `max_tokens` tokens, which bounds its time. Throws as `load` does.
  void check(std::int64_t steps, std::uint64_t most_tokens = kMaxChecked) const;

  // Takes a second at most if the file is in memory.
  static constexpr std::uint64_t kMaxChecked = std::uint64_t{1} << 25U;

 private:
  // Reads a sample and the token after it.
  void read(std::uint64_t sample, std::vector<std::int32_t>& tokens) const;
  // The part of a step's batch whose i-th sequence is `sample_at(i)`.
  template <class SampleAt>
  Batch part_of_batch(const SampleAt& sample_at, std::int64_t data_rank,
                      std::int64_t context_rank) const;

  const TokenFile& file_;
  const Plan& plan_;
  std::int64_t vocabulary_;
  // For training, and held out after them.
  std::uint64_t samples_, held_out_;
  SampleOrder order_;
};

}  // namespace shardwright::executor
