// The plain reference of max-min fair rates (sim/network/flow_network.hpp): progressive filling in
// O(rounds x (links + flows)).
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "sim/network/flow_network.hpp"

namespace shardwright::sim {

struct MaxMinFlow {
  // The links of the route; a link may occur once.
  std::vector<LinkIndex> route;
  // A weight for each link of the route; empty: 1 each.
  std::vector<double> weights;
  BytesPerSecond rate_cap = infinite<BytesPerSecond>();
};

struct MaxMinProblem {
  // Capacities by link.
  std::vector<BytesPerSecond> capacities;
  std::vector<MaxMinFlow> flows;
};

// Shares that differ by less than this, relatively, are one level.
inline constexpr double kMaxMinTie = 1e-12;

class MaxMinFilling {
 public:
  explicit MaxMinFilling(const MaxMinProblem& problem)
      : problem_(problem),
        stopped_(problem.flows.size(), false),
        rates_(problem.flows.size(), infinite<BytesPerSecond>()) {
    for (const auto capacity : problem.capacities) residual_.push_back(capacity.value());
    growing_.resize(residual_.size(), 0.0);
    count_.resize(residual_.size(), 0);
    for (const auto& flow : problem.flows) add_demand(flow);
  }

  std::vector<BytesPerSecond> run() {
    double level = next_level();
    while (level < kNever) {
      // All flows that this level stops are found before any of them changes a share.
      std::vector<std::size_t> stopping;
      for (std::size_t i = 0; i < stopped_.size(); ++i) {
        if (!stopped_[i] && stops_at(problem_.flows[i], level)) stopping.push_back(i);
      }
      for (const std::size_t i : stopping) stop(i, level);
      level = next_level();
    }
    return std::move(rates_);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  static double weight(const MaxMinFlow& flow, std::size_t hop) {
    return flow.weights.empty() ? 1.0 : flow.weights[hop];
  }

  void add_demand(const MaxMinFlow& flow) {
    SHARDWRIGHT_CHECK(flow.weights.empty() || flow.weights.size() == flow.route.size(),
                      "a flow has not one weight for each link of its route");
    for (std::size_t hop = 0; hop < flow.route.size(); ++hop) {
      SHARDWRIGHT_CHECK(flow.route[hop] < residual_.size(),
                        "a route names a link that is not there");
      growing_[flow.route[hop]] += weight(flow, hop);
      ++count_[flow.route[hop]];
    }
  }

  double share(LinkIndex link) const {
    return count_[link] == 0 ? kNever : std::max(0.0, residual_[link]) / growing_[link];
  }

  double next_level() const {
    double level = kNever;
    for (LinkIndex link = 0; link < residual_.size(); ++link) level = std::min(level, share(link));
    for (std::size_t i = 0; i < stopped_.size(); ++i) {
      if (!stopped_[i]) level = std::min(level, problem_.flows[i].rate_cap.value());
    }
    return level;
  }

  bool stops_at(const MaxMinFlow& flow, double level) const {
    const double limit = level * (1.0 + kMaxMinTie);
    return flow.rate_cap.value() <= limit ||
           std::ranges::any_of(flow.route, [&](LinkIndex link) { return share(link) <= limit; });
  }

  void stop(std::size_t index, double level) {
    const MaxMinFlow& flow = problem_.flows[index];
    stopped_[index] = true;
    rates_[index] = BytesPerSecond(level);
    for (std::size_t hop = 0; hop < flow.route.size(); ++hop) {
      const LinkIndex link = flow.route[hop];
      residual_[link] -= weight(flow, hop) * level;
      growing_[link] -= weight(flow, hop);
      --count_[link];
    }
  }

  const MaxMinProblem& problem_;
  std::vector<bool> stopped_;
  std::vector<BytesPerSecond> rates_;
  // The capacity that the stopped flows leave, by link.
  std::vector<double> residual_;
  // The weights of the growing flows, by link.
  std::vector<double> growing_;
  // The number of growing flows, by link.
  std::vector<std::size_t> count_;
};

// The rate of each flow; infinite for a flow with neither route nor cap.
inline std::vector<BytesPerSecond> max_min_rates(const MaxMinProblem& problem) {
  return MaxMinFilling(problem).run();
}

}  // namespace shardwright::sim
