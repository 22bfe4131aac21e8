#include "executor/runtime/slow_ranks.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/program/program_checks.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/pools.hpp"

namespace shardwright::executor {
namespace {

// Steps in which memory is touched for the first time.
constexpr std::size_t kSettlingSteps = 2;

// The lower one of two in the middle, so that of two ranks the faster one is the measure.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (static_cast<std::ptrdiff_t>(values.size()) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<RankWork> work_of_ranks(const Program& program) {
  std::vector<double> flop;
  for (const RankProgram& stage : program.stages) {
    double sum = 0.0;
    for_each_op(program, stage,
                [&](const PlacedOp& placed) { sum += model_flop(placed.op.work).value(); });
    flop.push_back(sum);
  }
  const RankGrid grid(program.plan);
  std::vector<RankWork> ranks;
  for (std::int64_t rank = 0; rank < grid.world_size(); ++rank)
    ranks.push_back({flop[static_cast<std::size_t>(grid.locate(rank).stage)],
                     grid.dense_coordinates(rank)[Axis::Pipeline]});
  return ranks;
}

SlowRankWatch::SlowRankWatch(std::vector<RankWork> ranks, std::vector<double> expected)
    : ranks_(std::move(ranks)), expected_(std::move(expected)) {
  if (expected_.empty()) expected_.assign(ranks_.size(), 1.0);
  SHARDWRIGHT_CHECK(expected_.size() == ranks_.size(), "a slowdown for each rank");
  first_slowdown_ = expected_;
}

void SlowRankWatch::add(std::span<const double> seconds) {
  SHARDWRIGHT_CHECK(seconds.size() == ranks_.size(), "the time of each rank");
  if (seen_++ < kSettlingSteps) return;
  std::vector<double> unit;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    unit.push_back(seconds[rank] / ranks_[rank].flop);
  if (compares_with_first_steps() && first_steps_.size() < kSteps) {
    first_steps_.push_back(std::move(unit));
    return;
  }
  steps_.push_back(slowdowns(unit));
  if (steps_.size() > kSteps) steps_.pop_front();
}

bool SlowRankWatch::compares_with_first_steps() const {
  return std::none_of(ranks_.begin() + 1, ranks_.end(),
                      [&](const RankWork& other) { return other.peers == ranks_.front().peers; });
}

std::vector<double> SlowRankWatch::slowdowns(std::vector<double> times) const {
  const bool with_first = compares_with_first_steps();
  for (std::size_t rank = 0; with_first && rank < times.size(); ++rank) {
    std::vector<double> first;
    for (const std::vector<double>& step : first_steps_) first.push_back(step[rank]);
    times[rank] *= first_slowdown_[rank] / lower_median(std::move(first));
  }
  std::vector<double> found;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    std::vector<double> others;
    for (std::size_t other = 0; other < times.size(); ++other)
      if (other != rank && (with_first || ranks_[other].peers == ranks_[rank].peers))
        others.push_back(times[other]);
    found.push_back(std::clamp(times[rank] / lower_median(std::move(others)), 1.0, kMostSlowdown));
  }
  return found;
}

double SlowRankWatch::median_slowdown(std::size_t rank) const {
  std::vector<double> values;
  for (const std::vector<double>& step : steps_) values.push_back(step[rank]);
  return lower_median(std::move(values));
}

bool SlowRankWatch::has_changed(std::size_t rank) const {
  const auto steps_with = [&](const auto& condition) {
    return static_cast<std::size_t>(std::count_if(
        steps_.begin(), steps_.end(),
        [&](const std::vector<double>& step) { return condition(step[rank] / expected_[rank]); }));
  };
  return steps_with([](double ratio) { return ratio >= kFactor; }) + 1 >= kSteps ||
         steps_with([](double ratio) { return ratio <= 1.0 / kFactor; }) + 1 >= kSteps;
}

std::optional<std::vector<double>> SlowRankWatch::changed() const {
  if (steps_.size() < kSteps) return std::nullopt;
  bool any = false;
  std::vector<double> found;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    any = any || has_changed(rank);
    const double slowdown = median_slowdown(rank);
    const double least = slowdown < expected_[rank] / kFactor ? kFastAgain : kFactor;
    found.push_back(slowdown < least ? 1.0 : slowdown);
  }
  return any ? std::optional(std::move(found)) : std::nullopt;
}

void SlowRankWatch::expect(std::vector<double> slowdown) {
  expected_ = std::move(slowdown);
  steps_.clear();
}

std::optional<SlowestRank> SlowRankWatch::slowest() const {
  if (steps_.size() < kSteps) return std::nullopt;
  SlowestRank slowest;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const double slowdown = median_slowdown(rank);
    if (slowdown > slowest.slowdown) slowest = {static_cast<std::int64_t>(rank), slowdown};
  }
  return slowest;
}

}  // namespace shardwright::executor
