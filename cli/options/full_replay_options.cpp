#include "cli/options/full_replay_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>

#include "cli/options/option_values.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/pools.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kSlowRank = "--slow-rank";
constexpr const char* kSlowNic = "--slow-nic";
constexpr const char* kRankJitter = "--rank-jitter";
constexpr const char* kOpJitter = "--op-jitter";
constexpr const char* kSeed = "--seed";
constexpr const char* kWatch = "--watch";
constexpr const char* kDraws = "--draws";
constexpr const char* kDegradedNics = "--degraded-nics";
constexpr const char* kThrottledGpus = "--throttled-gpus";

// Splits the text at the first `separator`; without one, adds a problem.
std::optional<std::pair<std::string, std::string>> split(const std::string& option,
                                                         const std::string& text, char separator,
                                                         const std::string& form,
                                                         ProblemList& problems) {
  const auto at = text.find(separator);
  if (at != std::string::npos) return std::pair{text.substr(0, at), text.substr(at + 1)};
  problems.add(option, fmt::format("\"{}\"", text), form);
  return std::nullopt;
}

void read_slow_ranks(const FullReplayOptions& options, std::int64_t ranks, sim::FullOptions& full,
                     ProblemList& problems) {
  if (options.slow_ranks.empty()) return;
  std::vector<double>& factors = full.variation.rank_slowdown;
  factors.assign(static_cast<std::size_t>(ranks), 1.0);
  for (const std::string& text : options.slow_ranks) {
    const auto parts = split(kSlowRank, text, ':', "RANK:FACTOR, as in 5:1.2", problems);
    if (!parts) continue;
    const std::int64_t rank = read_index(kSlowRank, parts->first, ranks, problems);
    factors[static_cast<std::size_t>(rank)] = read_ratio(kSlowRank, parts->second, problems);
  }
}

void read_slow_nics(const FullReplayOptions& options, const Scenario& scenario,
                    sim::FullOptions& full, ProblemList& problems) {
  for (const std::string& text : options.slow_nics) {
    const std::string form = "NODE/NIC:SHARE, as in 3/0:50%";
    const auto parts = split(kSlowNic, text, ':', form, problems);
    if (!parts) continue;
    const auto place = split(kSlowNic, parts->first, '/', form, problems);
    if (!place) continue;
    const sim::NicCounts counts = sim::count_nics(scenario.plan, scenario.cluster);
    sim::SlowNic nic;
    nic.node = read_index(kSlowNic, place->first, counts.nodes, problems);
    nic.nic = read_index(kSlowNic, place->second, counts.per_node, problems);
    nic.bandwidth_ratio = read_ratio(kSlowNic, parts->second, problems);
    if (nic.bandwidth_ratio > 1.0)
      problems.add(kSlowNic, fmt::format("\"{}\"", text), "a share of at most 100 %");
    full.slow_nics.push_back(nic);
  }
}

double read_jitter(const char* option, const std::string& text, ProblemList& problems) {
  if (text.empty()) return 0.0;
  const double sigma = read_ratio(option, text, problems);
  if (sigma > sim::kMostJitter) {
    problems.add(option, fmt::format("\"{}\"", text),
                 fmt::format("at most {}", format_number(sim::kMostJitter)));
  }
  return sigma;
}

}  // namespace

void add_full_replay_options(CLI::App& command, FullReplayOptions& options) {
  const char* group = "Simulation of every rank (--fidelity full)";
  const auto add = [&](const char* name, auto& target, const char* type, const char* text) {
    command.add_option(name, target, text)->type_name(type)->group(group);
  };
  add(kSlowRank, options.slow_ranks, "RANK:FACTOR",
      "Make the kernels of a rank take FACTOR times as long, as in 5:1.2");
  add(kSlowNic, options.slow_nics, "NODE/NIC:SHARE",
      "Leave a NIC only this share of its bandwidth, as in 3/0:50%");
  add(kRankJitter, options.rank_jitter, "SIGMA",
      "Random variation of the ranks' speeds: log-normal with mean 1 and this sigma");
  add(kOpJitter, options.op_jitter, "SIGMA", "Random variation of each kernel's time, likewise");
  add(kSeed, options.seed, "N", "Seed of the random variation (default 1)");
  add(kDraws, options.draws, "N",
      "Draw the random variation so often: step time P50, P95, P99, and what it saves to replace "
      "the "
      "slowest node");
  add(kDegradedNics, options.degraded_nics, "SHARE:BANDWIDTH",
      "With --draws: this share of the NICs keeps this share of its bandwidth, as in 1%:50%");
  add(kThrottledGpus, options.throttled_gpus, "SHARE:SPEED",
      "With --draws: this share of the GPUs keeps this share of its speed, as in 0.5%:70%");
  add(kWatch, options.watched, "RANK",
      "Report this rank's breakdown too, and include it in the trace (repeatable)");
}

std::string given_full_replay_options(const FullReplayOptions& options) {
  std::vector<const char*> given;
  if (!options.slow_ranks.empty()) given.push_back(kSlowRank);
  if (!options.slow_nics.empty()) given.push_back(kSlowNic);
  if (!options.rank_jitter.empty()) given.push_back(kRankJitter);
  if (!options.op_jitter.empty()) given.push_back(kOpJitter);
  if (!options.seed.empty()) given.push_back(kSeed);
  if (!options.draws.empty()) given.push_back(kDraws);
  if (!options.degraded_nics.empty()) given.push_back(kDegradedNics);
  if (!options.throttled_gpus.empty()) given.push_back(kThrottledGpus);
  if (!options.watched.empty()) given.push_back(kWatch);
  return fmt::format("{}", fmt::join(given, ", "));
}

namespace {

// Reads "1%:50%": the share of the parts that are slow, and the share of its speed that each keeps.
void read_slow_share(const char* option, const std::string& text, const char* form, double& share,
                     double& kept, ProblemList& problems) {
  if (text.empty()) return;
  const auto parts = split(option, text, ':', form, problems);
  if (!parts) return;
  share = read_ratio(option, parts->first, problems);
  kept = read_ratio(option, parts->second, problems);
  if (share > 1.0 || kept > 1.0) problems.add(option, text, "shares of at most 100 %");
}

}  // namespace

std::optional<sim::DrawOptions> read_draws(const FullReplayOptions& options,
                                           const Scenario& scenario, sim::FullOptions& full,
                                           const std::string& source) {
  constexpr std::int64_t kMostDraws = 100'000;
  ProblemList problems(source);
  sim::DrawOptions draws;
  for (const auto& [option, text] : {std::pair(kDegradedNics, &options.degraded_nics),
                                     std::pair(kThrottledGpus, &options.throttled_gpus)}) {
    if (options.draws.empty() && !text->empty())
      problems.add(option, *text, fmt::format("{}, which draws them", kDraws));
  }
  if (!options.draws.empty()) draws.draws = read_count(kDraws, options.draws, kMostDraws, problems);
  read_slow_share(kDegradedNics, options.degraded_nics, "SHARE:BANDWIDTH, as in 1%:50%",
                  draws.degraded_nics, draws.degraded_bandwidth, problems);
  read_slow_share(kThrottledGpus, options.throttled_gpus, "SHARE:SPEED, as in 0.5%:70%",
                  draws.throttled_ranks, draws.throttled_speed, problems);
  sim::RankVariation& variation = full.variation;
  if (!options.draws.empty() && options.rank_jitter.empty())
    variation.rank_jitter = scenario.cluster.accelerator.speed_variation;
  if (!options.draws.empty() && variation.rank_jitter == 0.0 && variation.op_jitter == 0.0 &&
      draws.degraded_nics == 0.0 && draws.throttled_ranks == 0.0)
    problems.add(
        kDraws, "nothing that varies",
        fmt::format("{}, {}, {} or {}", kRankJitter, kOpJitter, kDegradedNics, kThrottledGpus));
  problems.throw_if_any();
  return options.draws.empty() ? std::nullopt : std::optional(draws);
}

sim::FullOptions read_full_replay_options(const FullReplayOptions& options,
                                          const Scenario& scenario, const std::string& source) {
  ProblemList problems(source);
  const std::int64_t ranks = scenario.plan.world_size();
  sim::FullOptions full;
  full.contention = alike_links(scenario.cluster, scenario.plan);
  read_slow_ranks(options, ranks, full, problems);
  read_slow_nics(options, scenario, full, problems);
  full.variation.rank_jitter = read_jitter(kRankJitter, options.rank_jitter, problems);
  full.variation.op_jitter = read_jitter(kOpJitter, options.op_jitter, problems);
  full.variation.seed = 1;
  if (!options.seed.empty()) {
    full.variation.seed = static_cast<std::uint64_t>(
        read_count(kSeed, options.seed, std::numeric_limits<std::int64_t>::max(), problems));
  }
  for (const std::string& text : options.watched)
    full.watched_ranks.push_back(read_index(kWatch, text, ranks, problems));
  problems.throw_if_any();
  return full;
}

}  // namespace shardwright::cli
