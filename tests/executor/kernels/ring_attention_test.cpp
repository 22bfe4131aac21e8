// A ring gives the outputs and gradients of attention over whole sequences, which gradient_test.cpp
// compares with central differences.
#include <gtest/gtest.h>

#include <vector>

#include "executor/data/hash.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"

namespace shardwright::executor {
namespace {

using Rows = std::vector<double>;

constexpr std::int64_t kSequences = 2, kTokens = 24, kHeads = 4, kKvHeads = 2;
constexpr std::int64_t kWidth = 3, kValueWidth = 2;
constexpr std::int64_t kQueries = kHeads * kWidth, kKeys = kKvHeads * (kWidth + kValueWidth);
constexpr std::int64_t kRow = kQueries + kKeys, kOut = kHeads * kValueWidth;

Rows random_rows(std::int64_t width, std::uint64_t key) {
  Rows values(static_cast<std::size_t>(kSequences * kTokens * width));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 4.0 * random_unit(key, i) - 2.0;
  return values;
}

Rows zeros(std::int64_t rows, std::int64_t width) {
  return Rows(static_cast<std::size_t>(rows * width));
}

AttentionWork work_of(std::int64_t tokens) {
  AttentionWork work;
  work.batch = kSequences;
  work.heads = kHeads;
  work.kv_heads = kKvHeads;
  work.q_tokens = work.kv_tokens = tokens;
  work.qk_head_dim = kWidth;
  work.v_head_dim = kValueWidth;
  return work;
}

// The columns `first` to `first` + `columns` of rows of `width`.
struct Columns {
  std::int64_t width = 0, first = 0, columns = 0;
};
constexpr Columns kWholeRow{kRow, 0, kRow}, kKeysOfRow{kRow, kQueries, kKeys},
    kWholeOut{kOut, 0, kOut};

// Visits the elements of the columns of a rank's tokens, which `whole` has among the others.
template <class Whole, class Visit>
void for_each_of(SequencePart part, Columns columns, Whole& whole, Visit visit) {
  const std::int64_t held = kTokens / part.ranks;
  for (std::int64_t row = 0; row < kSequences * held; ++row) {
    const std::int64_t place = row / held * kTokens + part.position(row % held, held);
    for (std::int64_t c = 0; c < columns.columns; ++c)
      visit(whole[static_cast<std::size_t>(place * columns.width + columns.first + c)]);
  }
}

Rows part_of(SequencePart part, Columns columns, const Rows& whole) {
  Rows own;
  for_each_of(part, columns, whole, [&](double value) { own.push_back(value); });
  return own;
}

void add_part(SequencePart part, Columns columns, const Rows& own, Rows& whole) {
  auto next = own.begin();
  for_each_of(part, columns, whole, [&](double& value) { value += *next++; });
}

void expect_near(const Rows& found, const Rows& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-13) << i;
}

// One rank's queries against all blocks of keys and values.
class RingRank {
 public:
  RingRank(SequencePart part, const Rows& qkv)
      : part_(part),
        work_(work_of(kTokens / part.ranks)),
        whole_qkv_(qkv),
        qkv_(part_of(part, kWholeRow, qkv)),
        out_(zeros(rows(), kOut)),
        statistics_(zeros(rows(), kHeads)) {}

  const Rows& forward() {
    for (std::int64_t step = 0; step < part_.ranks; ++step) {
      const SequencePart owner = above(part_.ranks - step);
      const Rows block = part_of(owner, kKeysOfRow, whole_qkv_);
      kernels_.ring_attention(work_, part_, owner, qkv_.data(), step == 0 ? nullptr : block.data(),
                              out_.data(), statistics_.data(), nullptr);
    }
    return out_;
  }

  // Adds to the gradients of all ranks' rows. The first block lies in the rows of the queries.
  void backward(const Rows& dout, Rows& whole_dqkv) {
    const Rows own_dout = part_of(part_, kWholeOut, dout);
    Rows dqkv = zeros(rows(), kRow);
    for (std::int64_t step = 0; step < part_.ranks; ++step) {
      const SequencePart owner = above(1 + step);
      const bool is_last = step + 1 == part_.ranks;
      const Rows block = part_of(owner, kKeysOfRow, whole_qkv_);
      if (step == 0) {
        kernels_.copy_columns(rows(), kKeys, block.data(), kKeys, qkv_.data() + kQueries, kRow,
                              nullptr);
      }
      // What is in the buffer before does not count.
      Rows dblock(block.size(), 7.0);
      kernels_.ring_attention_backward(work_, part_, owner, qkv_.data(),
                                       step == 0 ? nullptr : block.data(), out_.data(),
                                       statistics_.data(), own_dout.data(), dqkv.data(),
                                       is_last ? nullptr : dblock.data(), nullptr);
      if (!is_last) add_part(owner, kKeysOfRow, dblock, whole_dqkv);
    }
    add_part(part_, kWholeRow, dqkv, whole_dqkv);
  }

 private:
  std::int64_t rows() const { return kSequences * work_.q_tokens; }
  SequencePart above(std::int64_t distance) const {
    return {part_.ranks, (part_.rank + distance) % part_.ranks};
  }

  CpuKernels<double> kernels_;
  SequencePart part_;
  AttentionWork work_;
  const Rows& whole_qkv_;
  Rows qkv_, out_, statistics_;
};

TEST(RingAttention, IsAttentionOverWholeSequences) {
  const Rows qkv = random_rows(kRow, 1), dout = random_rows(kOut, 2);
  constexpr std::int64_t kAll = kSequences * kTokens;
  Rows out = zeros(kAll, kOut), statistics = zeros(kAll, kHeads), dqkv = zeros(kAll, kRow);
  CpuKernels<double> kernels;
  kernels.attention(work_of(kTokens), qkv.data(), out.data(), statistics.data(), nullptr);
  kernels.attention_backward(work_of(kTokens), qkv.data(), out.data(), statistics.data(),
                             dout.data(), dqkv.data(), nullptr);
  for (const std::int64_t ranks : {2, 3, 4, 6}) {
    Rows ring_dqkv = zeros(kAll, kRow);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const SequencePart part{ranks, rank};
      RingRank ring(part, qkv);
      expect_near(ring.forward(), part_of(part, kWholeOut, out));
      ring.backward(dout, ring_dqkv);
    }
    expect_near(ring_dqkv, dqkv);
  }
}

TEST(SequencePart, CountsItsTokensUpToAPosition) {
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    for (const bool mirrored : {true, false}) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const SequencePart part{ranks, rank, mirrored};
        const std::int64_t held = kTokens / ranks;
        for (std::int64_t position = 0; position < kTokens; ++position) {
          std::int64_t expected = 0;
          for (std::int64_t i = 0; i < held; ++i) expected += part.position(i, held) <= position;
          EXPECT_EQ(part.held_up_to(position, held), expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::executor
