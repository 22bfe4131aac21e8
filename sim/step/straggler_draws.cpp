#include "sim/step/straggler_draws.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/base/split_mix.hpp"
#include "sim/cost/placement.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/server_steps.hpp"
#include "sim/step/server_use.hpp"

namespace shardwright::sim {
namespace {

// What is drawn for a rank stands beside the NICs, behind any number of them.
constexpr std::uint64_t kThrottling = ~std::uint64_t{0};

double chance(std::uint64_t seed, std::uint64_t node, std::uint64_t nic) {
  const std::uint64_t bits = split_mix(split_mix(split_mix(~seed) + node) + nic);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Those of a draw, behind the ones that are slow in all of them.
std::vector<SlowNic> degraded_nics(const FullOptions& full, const DrawOptions& options,
                                   const NicCounts& counts, std::uint64_t seed) {
  std::vector<SlowNic> nics = full.slow_nics;
  if (options.degraded_nics <= 0.0) return nics;
  for (std::int64_t node = 0; node < counts.nodes; ++node) {
    for (std::int64_t nic = 0; nic < counts.per_node; ++nic) {
      const auto known = [&](const SlowNic& each) { return each.node == node && each.nic == nic; };
      const bool degraded = chance(seed, static_cast<std::uint64_t>(node),
                                   static_cast<std::uint64_t>(nic)) < options.degraded_nics;
      if (degraded && std::ranges::none_of(nics, known))
        nics.push_back({node, nic, options.degraded_bandwidth});
    }
  }
  return nics;
}

// The draw with its factors stated, so that those of one node can be changed.
FullOptions stated(const FullOptions& full, const DrawOptions& options, const NicCounts& counts,
                   std::int64_t ranks, std::uint64_t seed) {
  FullOptions drawn = full;
  drawn.watched_ranks.clear();
  drawn.progress = nullptr;
  drawn.variation.seed = seed;
  std::vector<double> factors;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const bool throttled =
        chance(seed, static_cast<std::uint64_t>(rank), kThrottling) < options.throttled_ranks;
    factors.push_back(rank_factor(drawn.variation, static_cast<std::uint32_t>(rank)) /
                      (throttled ? options.throttled_speed : 1.0));
  }
  drawn.variation.rank_slowdown = std::move(factors);
  drawn.variation.rank_jitter = 0.0;
  drawn.slow_nics = degraded_nics(full, options, counts, seed);
  return drawn;
}

void replace_node(FullOptions& drawn, std::int64_t node, std::int64_t ranks_of_node) {
  auto& factors = drawn.variation.rank_slowdown;
  const auto first = static_cast<std::size_t>(node * ranks_of_node);
  const auto end = std::min(factors.size(), first + static_cast<std::size_t>(ranks_of_node));
  std::fill(factors.begin() + static_cast<std::ptrdiff_t>(first),
            factors.begin() + static_cast<std::ptrdiff_t>(end), 1.0);
  std::erase_if(drawn.slow_nics, [&](const SlowNic& nic) { return nic.node == node; });
}

// The parameter servers of replicas of which none waits for the others.
std::optional<ServerUse> stale_servers(const Scenario& scenario, const Program& program) {
  if (!scenario.plan.replicas.stale()) return std::nullopt;
  return server_use(served_parameters_of(program), scenario);
}

}  // namespace

Seconds StragglerDraws::quantile(double share) const {
  const double place = share * static_cast<double>(steps.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, steps.size() - 1);
  return steps[below] + (place - static_cast<double>(below)) * (steps[above] - steps[below]);
}

Seconds StragglerDraws::mean() const {
  return std::accumulate(steps.begin(), steps.end(), Seconds()) / static_cast<double>(steps.size());
}

StragglerDraws draw_stragglers(const Scenario& scenario, const PricedStep& step,
                               const FullOptions& full, const DrawOptions& options) {
  const Program& program = step.program;
  const ClusterSpec& cluster = scenario.cluster;
  const Prices prices = full.variation.rank_jitter > 0.0 || options.throttled_ranks > 0.0
                            ? prices_of_alike_ranks(scenario, program)
                            : step.prices;
  check_full_options(full, program.plan, cluster);
  const NicCounts counts = count_nics(program.plan, cluster);
  const std::int64_t ranks_of_node = domain_size(cluster);
  const std::optional<ServerUse> servers = stale_servers(scenario, program);
  // The mean step at the servers where there are any, otherwise that of the replay.
  const auto step_at = [&](Seconds step_of_replay, Seconds uniform,
                           const RankVariation& variation) {
    return servers ? serve(scenario, *servers, uniform, variation, program.stages.front().ops).step
                   : step_of_replay;
  };
  StragglerDraws all;
  Seconds saved;
  for (std::int64_t draw = 0; draw < options.draws; ++draw) {
    FullOptions drawn = stated(full, options, counts, program.plan.world_size(),
                               full.variation.seed + static_cast<std::uint64_t>(draw));
    const FullReplay replay = replay_full(program, cluster, prices, drawn);
    const RankVariation slow = drawn.variation;
    replace_node(drawn, replay.slowest / ranks_of_node, ranks_of_node);
    const FullReplay replaced = replay_full(program, cluster, prices, drawn);
    all.cancelled = replay.cancelled || replaced.cancelled;
    if (all.cancelled) break;
    const Seconds uniform = replay.uniform_step;
    if (all.steps.empty()) all.uniform_step = step_at(uniform, uniform, {});
    all.steps.push_back(step_at(replay.step, uniform, slow));
    saved += all.steps.back() - step_at(replaced.step, replaced.uniform_step, drawn.variation);
    if (full.progress)
      full.progress(static_cast<double>(draw + 1) / static_cast<double>(options.draws));
  }
  if (all.steps.empty()) return all;
  std::ranges::sort(all.steps);
  all.gain_of_replacing = saved / static_cast<double>(all.steps.size()) / all.mean();
  return all;
}

}  // namespace shardwright::sim
