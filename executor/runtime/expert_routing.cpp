#include "executor/runtime/expert_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright::executor {

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int64_t ExpertRouting::rows_sent() const {
  return sum_of(sent);
}

std::int64_t ExpertRouting::rows_received() const {
  return sum_of(received);
}

std::int64_t ExpertRouting::rows_gathered() const {
  return sum_of(rows);
}

// The copies of an expert lie in one part of the replicas, and the ranks of a group follow each
// other in the order of the parts.
std::vector<std::int64_t> experts_by_rank(const Plan& plan, std::int64_t experts) {
  if (!numbers_experts(plan))
    return std::vector(static_cast<std::size_t>(plan.ep), experts / plan.ep);
  std::vector<std::int64_t> held;
  for (const PoolReplicas& part : plan.replica_pools) {
    const std::int64_t ranks = part.replicas * plan.tp * plan.cp / expert_replicas(plan);
    held.insert(held.end(), static_cast<std::size_t>(ranks), part.experts);
  }
  return held;
}

std::vector<std::size_t> rows_by_rank(std::span<const std::int64_t> counts,
                                      std::span<const std::int64_t> experts) {
  std::vector<std::size_t> sums;
  std::size_t first = 0;
  for (const std::int64_t each : experts) {
    const auto length = static_cast<std::size_t>(each);
    sums.push_back(static_cast<std::size_t>(sum_of(counts.subspan(first, length))));
    first += length;
  }
  return sums;
}

std::vector<std::size_t> rows_by_rank(std::span<const std::int64_t> counts, std::size_t ranks) {
  const auto each = static_cast<std::int64_t>(counts.size() / ranks);
  return rows_by_rank(counts, std::vector(ranks, each));
}

std::int64_t expert_capacity(const MoeSpec& moe, std::int64_t tokens) {
  if (moe.capacity_factor == 0.0) return tokens;
  const double even = static_cast<double>(tokens * moe.top_k) / static_cast<double>(moe.experts);
  return std::min(tokens, static_cast<std::int64_t>(std::ceil(moe.capacity_factor * even)));
}

std::int64_t most_rows(const MoeSpec& moe, std::int64_t tokens, std::int64_t ranks,
                       std::int64_t experts) {
  return ranks *
         std::min(tokens * std::min(moe.top_k, experts), experts * expert_capacity(moe, tokens));
}

void lay_out_rows(const MoeSpec& moe, std::span<const double> shares, ExpertRouting& routing) {
  const auto choices = static_cast<std::int32_t>(routing.chosen.size());
  const auto capacity = static_cast<std::size_t>(
      expert_capacity(moe, static_cast<std::int64_t>(choices) / moe.top_k));
  std::vector<std::vector<std::int32_t>> of_expert(static_cast<std::size_t>(moe.experts));
  for (std::int32_t choice = 0; choice < choices; ++choice) {
    const auto expert = routing.chosen[static_cast<std::size_t>(choice)];
    of_expert[static_cast<std::size_t>(expert)].push_back(choice);
  }
  routing.row_of.assign(routing.chosen.size(), -1);
  routing.choice_of.clear();
  routing.token_of.clear();
  routing.sent.clear();
  for (std::vector<std::int32_t>& taken : of_expert) {
    if (taken.size() > capacity) {
      std::stable_sort(taken.begin(), taken.end(), [&](std::int32_t a, std::int32_t b) {
        return shares[static_cast<std::size_t>(a)] > shares[static_cast<std::size_t>(b)];
      });
      taken.resize(capacity);
      std::sort(taken.begin(), taken.end());
    }
    for (const std::int32_t choice : taken) {
      routing.row_of[static_cast<std::size_t>(choice)] =
          static_cast<std::int32_t>(routing.choice_of.size());
      routing.choice_of.push_back(choice);
      routing.token_of.push_back(choice / static_cast<std::int32_t>(moe.top_k));
    }
    routing.sent.push_back(static_cast<std::int64_t>(taken.size()));
  }
}

void lay_out_gathered(std::size_t experts, ExpertRouting& routing) {
  routing.rows.assign(experts, 0);
  std::vector<std::int32_t> first(routing.gathered.size());
  std::int32_t place = 0;
  for (std::size_t part = 0; part < routing.gathered.size(); ++part) {
    first[part] = place;
    place += static_cast<std::int32_t>(routing.gathered[part]);
    routing.rows[part % experts] += routing.gathered[part];
  }
  routing.arrived_at.clear();
  routing.sorted_at.assign(static_cast<std::size_t>(place), 0);
  for (std::size_t expert = 0; expert < experts; ++expert) {
    for (std::size_t part = expert; part < routing.gathered.size(); part += experts) {
      for (std::int32_t row = 0; row < routing.gathered[part]; ++row) {
        routing.sorted_at[static_cast<std::size_t>(first[part] + row)] =
            static_cast<std::int32_t>(routing.arrived_at.size());
        routing.arrived_at.push_back(first[part] + row);
      }
    }
  }
}

ExpertRouting& ExpertRoutings::of(std::int32_t layer, std::int32_t microbatch) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ExpertRouting>& routing = routings_[{layer, microbatch}];
  if (!routing) routing = std::make_unique<ExpertRouting>();
  return *routing;
}

}  // namespace shardwright::executor
