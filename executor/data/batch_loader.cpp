#include "executor/data/batch_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/spec/pools.hpp"
#include "executor/data/hash.hpp"
#include "executor/data/sequence_part.hpp"

namespace shardwright::executor {
namespace {

std::uint64_t count_samples(const TokenFile& file, const Plan& plan) {
  const auto needed = static_cast<std::uint64_t>(plan.seq_len) + 1;
  if (file.tokens() < needed) {
    throw InputError(file.path().string(),
                     {{"", fmt::format("{} tokens", file.tokens()),
                       fmt::format("at least {}: a sequence and the token after it", needed)}});
  }
  return (file.tokens() - 1) / static_cast<std::uint64_t>(plan.seq_len);
}

std::uint64_t count_held_out(const TokenFile& file, const Plan& plan, double share) {
  if (share <= 0.0) return 0;
  const std::uint64_t all = count_samples(file, plan);
  const auto held_out = static_cast<std::uint64_t>(std::floor(static_cast<double>(all) * share));
  if (held_out < static_cast<std::uint64_t>(plan.global_batch) || held_out == all) {
    throw InputError(
        "--validation-ratio",
        {{"", fmt::format("{} of the {} sequences of {}", held_out, all, file.path().string()),
          fmt::format("at least one batch of {}, and some to train on", plan.global_batch)}});
  }
  return held_out;
}

// `first` is the position of the first of the tokens.
void check_vocabulary(const TokenFile& file, std::uint64_t first,
                      const std::vector<std::int32_t>& tokens, std::int64_t vocabulary) {
  const auto foreign = std::find_if(tokens.begin(), tokens.end(),
                                    [&](std::int32_t token) { return token >= vocabulary; });
  if (foreign == tokens.end()) return;
  const std::uint64_t position = first + static_cast<std::uint64_t>(foreign - tokens.begin());
  throw InputError(
      file.path().string(),
      {{fmt::format("position {}", position), fmt::format("the token {}", file.token(position)),
        fmt::format("0 to {}, the model's vocabulary", vocabulary - 1)}});
}

}  // namespace

BatchLoader::BatchLoader(const TokenFile& file, const Plan& plan, std::int64_t vocabulary,
                         std::uint64_t seed, double held_out)
    : file_(file),
      plan_(plan),
      vocabulary_(vocabulary),
      samples_(count_samples(file, plan) - count_held_out(file, plan, held_out)),
      held_out_(count_samples(file, plan) - samples_),
      order_(seed, samples_) {}

std::uint64_t BatchLoader::held_out_batches() const {
  return held_out_ / static_cast<std::uint64_t>(plan_.global_batch);
}

std::uint64_t BatchLoader::training_tokens() const {
  if (held_out_ == 0) return file_.tokens();
  return samples_ * static_cast<std::uint64_t>(plan_.seq_len) + 1;
}

void BatchLoader::read(std::uint64_t sample, std::vector<std::int32_t>& tokens) const {
  tokens.resize(static_cast<std::size_t>(plan_.seq_len) + 1);
  const std::uint64_t first = sample * static_cast<std::uint64_t>(plan_.seq_len);
  file_.read(first, tokens);
  check_vocabulary(file_, first, tokens, vocabulary_);
}

void BatchLoader::check(std::int64_t steps, std::uint64_t most_tokens) const {
  if (file_.cannot_exceed(vocabulary_)) return;
  const auto in_step = static_cast<std::uint64_t>(plan_.global_batch);
  const auto wanted = static_cast<std::uint64_t>(steps);
  const std::uint64_t in_run = wanted > samples_ / in_step ? samples_ : wanted * in_step;
  const std::uint64_t checked =
      std::min(in_run, most_tokens / static_cast<std::uint64_t>(plan_.seq_len));
  std::vector<std::int32_t> sample;
  for (std::uint64_t number = 0; number < checked; ++number) read(order_.sample(number), sample);
}

namespace {

// The place of a replica's microbatch in the step: the replicas take the first microbatches, in
// their order, then the second ones, and so on; replicas on some pools run more of them.
std::int64_t place_of_microbatch(const Plan& plan, std::int64_t replica, std::int64_t microbatch) {
  if (plan.replica_pools.empty()) return microbatch * plan.dp + replica;
  std::int64_t place = 0;
  for (std::size_t part = 0; part < plan.replica_pools.size(); ++part) {
    const std::int64_t replicas = plan.replica_pools[part].replicas;
    const std::int64_t microbatches = plan.replica_pools[part].microbatches;
    const std::int64_t first = first_replica(plan, part);
    place += replicas * std::min(microbatch, microbatches);
    if (microbatch < microbatches) place += std::clamp<std::int64_t>(replica - first, 0, replicas);
  }
  return place;
}

}  // namespace

template <class SampleAt>
Batch BatchLoader::part_of_batch(const SampleAt& sample_at, std::int64_t data_rank,
                                 std::int64_t context_rank) const {
  const SequencePart part = sequence_part(plan_, context_rank);
  const std::int64_t held = plan_.seq_len / plan_.cp;
  Batch batch;
  std::vector<std::int32_t> sample;
  const Plan own = plan_of_part(plan_, part_of_replica(plan_, data_rank));
  for (std::int64_t m = 0; m < own.microbatches(); ++m) {
    for (std::int64_t i = 0; i < plan_.micro_batch; ++i) {
      const std::int64_t in_step = place_of_microbatch(plan_, data_rank, m) * plan_.micro_batch + i;
      read(sample_at(static_cast<std::uint64_t>(in_step)), sample);
      for (std::int64_t t = 0; t < held; ++t) {
        const auto position = static_cast<std::size_t>(part.position(t, held));
        batch.tokens.push_back(sample[position]);
        batch.targets.push_back(sample[position + 1]);
      }
    }
  }
  return batch;
}

Batch BatchLoader::load(std::uint64_t first_sample, std::int64_t data_rank,
                        std::int64_t context_rank) const {
  return part_of_batch([&](std::uint64_t i) { return order_.sample(first_sample + i); }, data_rank,
                       context_rank);
}

Batch BatchLoader::load_held_out(std::uint64_t batch, std::int64_t data_rank,
                                 std::int64_t context_rank) const {
  SHARDWRIGHT_CHECK(batch < held_out_batches(), "a batch beyond those held out");
  const std::uint64_t first = samples_ + batch * static_cast<std::uint64_t>(plan_.global_batch);
  return part_of_batch([&](std::uint64_t i) { return first + i; }, data_rank, context_rank);
}

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
