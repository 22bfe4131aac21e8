// The messages and collectives of a run whose ranks lie on several pools.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "calibration/run_samples.hpp"
#include "core/program/program.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::calibration {

// Collects the exchanges of a run between pools, all of which the profile has.
class PoolExchanges {
 public:
  // The plan, the grid and the profile must outlive this object.
  PoolExchanges(const Plan& plan, const RankGrid& grid, const ClusterSpec& profile)
      : plan_(plan), grid_(grid), profile_(profile) {}

  // Adds an exchange of the ranks that took so many seconds; nothing if it stays on one pool.
  void add(std::int64_t step, const Op& op, const std::vector<std::int64_t>& ranks, double seconds);

  // The exchanges with the mean time of each step.
  std::vector<PoolExchange> timed() &&;

 private:
  struct Samples {
    PoolExchange exchange;
    std::map<std::int64_t, std::vector<double>> of_step;
  };

  std::vector<PoolEnd> ends_of(const std::vector<std::int64_t>& ranks, Group group) const;

  const Plan& plan_;
  const RankGrid& grid_;
  const ClusterSpec& profile_;
  std::vector<Samples> samples_;
};

}  // namespace shardwright::calibration
