// The ways of tokens to their experts: for each layer and microbatch which rows a rank sends to
// which expert, and which it receives.
//
// A row is a token's copy for one of its experts. A rank sends its rows in the order of all
// experts, so those for one rank are together. They arrive in the order of their senders, and
// within those in the order of the receiver's experts. Ranks that split the same experts
// (expert_tp) then gather each other's rows, one rank's after another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

struct ExpertRouting {
  // Experts of the tokens [tokens, top_k], the likeliest first.
  std::vector<std::int32_t> chosen;
  // The row of each of these, -1 if the expert takes no more tokens; the place in `chosen` and the
  // token of each row.
  std::vector<std::int32_t> row_of, choice_of, token_of;
  // Rows for each expert of the layer.
  std::vector<std::int64_t> sent;
  // Rows from each rank of the group for each expert of this rank, [ranks, experts of the rank],
  // and the same of all ranks that split these experts, [ranks that split, ranks, experts].
  std::vector<std::int64_t> received, gathered;
  // Rows of each expert of this rank.
  std::vector<std::int64_t> rows;
  // The place in the order of arrival of each row in the order of experts, and the other way round.
  std::vector<std::int32_t> arrived_at, sorted_at;
  // Device memory: the shares of the experts in each token, by choice and by row, and their
  // gradients.
  std::shared_ptr<void> shares, share_gradients, row_shares, row_share_gradients;

  // Rows that the rank sends, that it receives, and that its experts work on.
  std::int64_t rows_sent() const;
  std::int64_t rows_received() const;
  std::int64_t rows_gathered() const;
};

// The numbers of a layer's experts that the ranks of a group hold, in the order of the ranks.
std::vector<std::int64_t> experts_by_rank(const Plan& plan, std::int64_t experts);

// Sums of consecutive parts of `counts`, as long as `experts` says: rows by rank.
std::vector<std::size_t> rows_by_rank(std::span<const std::int64_t> counts,
                                      std::span<const std::int64_t> experts);

// The same of so many equal parts.
std::vector<std::size_t> rows_by_rank(std::span<const std::int64_t> counts, std::size_t ranks);

// The most tokens of a microbatch that an expert takes from one rank; `tokens` if it takes all.
// Each rank cuts off by its own tokens, as Megatron Core does (get_capacity in moe/moe_utils.py).
std::int64_t expert_capacity(const MoeSpec& moe, std::int64_t tokens);

// The most rows that a rank with `experts` of the layer's experts can receive from a group of
// `ranks` ranks with `tokens` tokens each: a token goes to an expert once.
std::int64_t most_rows(const MoeSpec& moe, std::int64_t tokens, std::int64_t ranks,
                       std::int64_t experts);

// Lays out the rows that are sent for `chosen`. Of too many, an expert takes those with the largest
// `shares`.
void lay_out_rows(const MoeSpec& moe, std::span<const double> shares, ExpertRouting& routing);

// Lays out the rows that the rank's experts work on, by `gathered`.
void lay_out_gathered(std::size_t experts, ExpertRouting& routing);

// The routings of a step by layer and microbatch. Ops of several streams use it.
class ExpertRoutings {
 public:
  // Returns the routing, a new one if there is none.
  ExpertRouting& of(std::int32_t layer, std::int32_t microbatch);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::unique_ptr<ExpertRouting>> routings_;
};

std::int64_t sum_of(std::span<const std::int64_t> counts);

}  // namespace shardwright::executor
