// Finds ranks that have become slower than others, or fast again, by the time that each computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/program/program.hpp"

namespace shardwright::executor {

// The work of a rank in a step.
struct RankWork {
  double flop = 1.0;
  // Ranks of one number do the same kind of work, perhaps more or less of it: they are peers.
  std::int64_t peers = 0;
};

// The work of each rank of a program. Ranks of one pipeline stage are peers.
std::vector<RankWork> work_of_ranks(const Program& program);

struct SlowestRank {
  std::int64_t rank = 0;
  double slowdown = 1.0;
};

// A rank's slowdown in a step is the time of its kernels per FLOP over the median of its peers. A
// rank without peers, of a pipeline without replicas, is compared with its own first steps, and
// that ratio with the median of the others. No slowdown counts as less than 1.
class SlowRankWatch {
 public:
  // A rank's speed has changed if its slowdown is so many times the expected one, or so many times
  // less, in all but one of the last steps.
  static constexpr double kFactor = 1.3;
  static constexpr std::size_t kSteps = 10;
  // A rank that has become faster counts as fast below this: it may have so little work that what
  // it does once in a step tells.
  static constexpr double kFastAgain = 1.5;

  // `expected` has the slowdowns that the plan was made for; empty: all are 1.
  SlowRankWatch(std::vector<RankWork> ranks, std::vector<double> expected);

  // Adds the seconds that each rank has computed in a step.
  void add(std::span<const double> seconds);
  // The slowdowns of all ranks, the medians of the last steps, once the speed of one has changed.
  // Those below kFactor, or kFastAgain, count as 1.
  std::optional<std::vector<double>> changed() const;
  // Expects these slowdowns from now on.
  void expect(std::vector<double> slowdown);
  // The slowest rank by the medians of the last steps; nothing before there are enough.
  std::optional<SlowestRank> slowest() const;

 private:
  // True if no rank has peers. All stages of a plan have equal numbers of ranks.
  bool compares_with_first_steps() const;
  // By the ranks' times per FLOP.
  std::vector<double> slowdowns(std::vector<double> times) const;
  double median_slowdown(std::size_t rank) const;
  bool has_changed(std::size_t rank) const;

  std::vector<RankWork> ranks_;
  std::vector<double> expected_;
  std::size_t seen_ = 0;
  // If no rank has peers: the slowdowns in the first steps, and the ranks' times per FLOP there.
  std::vector<double> first_slowdown_;
  std::vector<std::vector<double>> first_steps_;
  // The slowdowns in each of the last steps.
  std::deque<std::vector<double>> steps_;
};

}  // namespace shardwright::executor
